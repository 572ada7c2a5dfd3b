import { deniedPayments, type PlannedDifference, planRepair, type RepairPlan, repair } from '../chain/repair.ts';
import { decodeId, encodeId } from '../domain/ids.ts';
import type { Network } from '../domain/network.ts';
import { describeDifference, describePlanned, tableOfDifferences } from './chain-differences.ts';
import { hintOf, progressOf, type RangeOptions, readRange, refuseAboveLedger } from './chain-range.ts';
import { CliError, EXIT, type Problem } from './cli-error.ts';
import { clip, quote } from './clip.ts';
import { readOperator } from './operator.ts';
import { readReason } from './read-reason.ts';
import type { Result, Terminal } from './terminal.ts';
import { withNodes } from './with-nodes.ts';

export type RepairOptions = RangeOptions & { yes?: boolean; reason?: string; invoice?: string[]; by?: string };

/**
 * Shows where the ledger is not what the chain is and what each such transfer did, and changes nothing, with exit code 1. With
 * `--yes` it takes back what the chain denies and records what was missing, unless an invoice that was `PAID` by it is not named.
 */
export async function repairChain(terminal: Terminal, options: RepairOptions): Promise<Result> {
  const range = readRange(options);
  const named = new Set((options.invoice ?? []).map(readInvoiceId));
  const order =
    options.yes === true ? { reason: readReason(options.reason), by: readOperator(options.by, terminal.env) } : null;
  return withNodes(terminal, options.network, async (deps) => {
    await refuseAboveLedger(deps, range);
    const plan = await planRepair(deps, range, progressOf(terminal, range));
    const { blockCount, attestedCount, differences } = plan;
    const data = { network: deps.network, ...range, blockCount, attestedCount };
    const shown = { ...data, differences: differences.map(describePlanned) };
    if (differences.length === 0) {
      const text = `${blockCount} blocks read: the ledger is the same, there is nothing to repair`;
      return { data: { ...shown, isChanged: false }, text, ...hintOf(plan) };
    }
    const table = tableOfDifferences(differences);
    if (order === null) {
      const text = `${table}\n\n${blockCount} blocks read, ${differences.length} differences; nothing was changed`;
      return { data: { ...shown, isChanged: false }, text, next: adviceOn(deps.network, plan), exitCode: EXIT.failed };
    }
    refuseUnnamed(plan, named);
    const { takenBack, added, left } = await repair(deps, plan, order);
    const found = Object.entries(added).map(([kind, count]) => `${count} ${kind}`);
    const payments = deniedPayments(plan).map(
      (each) => `${nameInvoice(each)} stays PAID, and the chain denies its payment`,
    );
    const still = left.length === 0 ? '' : `\n\nstill different:\n${tableOfDifferences(left)}`;
    return {
      data: { ...shown, isChanged: true, ...order, takenBack, added, left: left.map(describeDifference) },
      text: `${[table, '', `${takenBack} taken back; new in the ledger: ${found.join(', ')}`, ...payments].join('\n')}${still}`,
      next: `see whether the books are right now: quittance reconcile --network ${deps.network}`,
      ...(left.length === 0 ? {} : { exitCode: EXIT.failed }),
    };
  });
}

function readInvoiceId(text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--invoice ${clip(text)} is not an invoice id: it is "inv_" and 26 characters`,
  );
}

/** Each invoice whose payment is denied is named by whoever repairs, and no other. */
function refuseUnnamed(plan: RepairPlan, named: ReadonlySet<string>): void {
  const payments = deniedPayments(plan);
  const known = new Set(payments.map(({ recorded }) => recorded?.incoming?.invoice?.id));
  const stranger = [...named].find((id) => !known.has(id));
  if (stranger !== undefined) {
    throw new CliError(
      'INVALID_ARGUMENT',
      `--invoice ${encodeId('inv', stranger)} was paid by nothing that the chain denies in these blocks: leave it out`,
    );
  }
  const problems = payments.flatMap((each): Problem[] => {
    const invoice = each.recorded?.incoming?.invoice;
    if (invoice == null || named.has(invoice.id)) return [];
    const invoiceId = encodeId('inv', invoice.id);
    return [
      {
        subject: invoiceId,
        message: `${nameInvoice(each)} is PAID by transfer ${each.txId} (${each.logIndex}), which the chain denies: add --invoice ${invoiceId}`,
      },
    ];
  });
  if (problems.length === 0) return;
  throw new CliError(
    'CONFLICT',
    'nothing was changed: PAID is never left, so look at each of these invoices, and name it when you know that it was not paid',
    { problems },
  );
}

function nameInvoice({ recorded }: PlannedDifference): string {
  const invoice = recorded?.incoming?.invoice;
  return invoice == null ? '' : `${encodeId('inv', invoice.id)} (${quote(invoice.externalId)})`;
}

function adviceOn(network: Network, plan: RepairPlan): string {
  const invoices = deniedPayments(plan).flatMap(({ recorded }) => {
    const invoice = recorded?.incoming?.invoice;
    return invoice == null ? [] : [` --invoice ${encodeId('inv', invoice.id)}`];
  });
  const { from, to } = plan.range;
  const command = `quittance chain repair --network ${network} --from ${from} --to ${to}${invoices.join('')} --yes --reason "…"`;
  return invoices.length === 0
    ? `when you know why: ${command}`
    : `an invoice is PAID by what the chain denies and will stay so: ship nothing for it. When you know why: ${command}`;
}
