import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { type Hint, say } from '../../domain/message.ts';
import type { TransferCounts } from '../../payments/record-transfers.ts';
import type { Recording } from '../../payments/watching.ts';
import type { Actor } from '../actor.ts';
import { clip, quote } from '../input/clip.ts';
import type { NodeDeps, ReadSolidDeps } from '../node-connection.ts';
import { findRecorded, type Recorded } from './annulments.ts';
import { keyOf } from './chain-ledger.ts';
import { compareBlocks, type Difference, describeDifference } from './compare-blocks.ts';
import { type Range, rangeInput } from './read-range.ts';
import { type ReadSolid, readSolid } from './read-solid.ts';
import { type DeniedTransfer, recordRepaired, type Writing } from './record-repaired.ts';
import type { PlannedView, RepairView } from './views.ts';

/** The UUID of an invoice that is named. Errors: `INVALID_ARGUMENT`. */
export function readInvoiceId(text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${{ field: 'invoice' }} ${clip(text)} is not an invoice id: it is "inv_" and 26 characters`,
  );
}

/**
 * Shows where the ledger is not what the chain is and what each such transfer did, and changes nothing; `hint` does. With an `order` it
 * takes back what the chain denies and records what was missing, unless an invoice that was `PAID` by it is not among `invoiceIds`
 * (UUIDs). Errors as of `planRepair`, `CONFLICT`, `INVALID_ARGUMENT`.
 */
export async function repairRange(
  deps: NodeDeps & Writing & { onProgress(blockCount: number): void },
  actor: Actor,
  { range, invoiceIds, order }: { range: Range; invoiceIds: readonly string[]; order: { reason: string } | null },
): Promise<{ view: RepairView; hint: Hint | null }> {
  const { network } = deps;
  const plan = await planRepair(deps, range, deps.onProgress);
  const { blockCount, attestedCount, differences } = plan;
  const shown = { network, ...range, blockCount, attestedCount, differences: differences.map(describePlanned) };
  if (differences.length === 0) return { view: { ...shown, isChanged: false }, hint: null };
  if (order === null) {
    const invoice = deniedPayments(plan).flatMap(({ recorded }) => {
      const id = recorded?.incoming?.invoice?.id;
      return id === undefined ? [] : [encodeId('inv', id)];
    });
    const input = { ...rangeInput(network, range), invoice, isConfirmed: true, reason: '…' } as const;
    return { view: { ...shown, isChanged: false }, hint: { command: 'chain repair', input } };
  }
  refuseUnnamed(plan, new Set(invoiceIds));
  const { reason } = order;
  const { takenBack, added, left } = await repair(deps, plan, { reason, actor });
  const done = { reason, by: actor.name, takenBack, added, left: left.map(describeDifference) };
  return { view: { ...shown, isChanged: true, ...done }, hint: { command: 'reconcile', input: { network } } };
}

function describePlanned({ recorded, ...difference }: PlannedDifference): PlannedView {
  const { id, kind, invoice } = recorded?.incoming ?? { id: null, kind: null, invoice: null };
  return {
    ...describeDifference(difference),
    transferId: id && encodeId('trf', id),
    match: kind,
    invoice: invoice && {
      ...{ invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, status: invoice.status },
    },
  };
}

/** Each invoice whose payment is denied is named by whoever repairs, and no other. */
function refuseUnnamed(plan: RepairPlan, named: ReadonlySet<string>): void {
  const payments = deniedPayments(plan);
  const known = new Set(payments.map(({ recorded }) => recorded?.incoming?.invoice?.id));
  const stranger = [...named].find((id) => !known.has(id));
  if (stranger !== undefined) {
    throw new AppError(
      'INVALID_ARGUMENT',
      say`${{ field: 'invoice' }} ${encodeId('inv', stranger)} was paid by nothing that the chain denies in these blocks: leave it out`,
    );
  }
  const problems = payments.flatMap(({ recorded, txId, logIndex }): FieldProblem[] => {
    const invoice = recorded?.incoming?.invoice;
    if (invoice == null || named.has(invoice.id)) return [];
    const subject = encodeId('inv', invoice.id);
    const message = say`${subject} (${quote(invoice.externalId)}) is PAID by transfer ${txId} (${logIndex}), which the chain denies: add ${{ field: 'invoice' }} ${subject}`;
    return [{ subject, message }];
  });
  if (problems.length === 0) return;
  throw new AppError(
    'CONFLICT',
    'nothing was changed: PAID is never left, so look at each of these invoices, and name it when you know that it was not paid',
    { problems },
  );
}

/** A difference, with what only the ledger says of a transfer that the chain denies. */
type PlannedDifference = Difference & { recorded: Recorded | null };

/** The differences in a range, and the blocks of the chain that show them. */
export type RepairPlan = ReadSolid & { range: Range; differences: PlannedDifference[]; blocks: SolidBlock[] };

/** A command changes no more than a person can look at. */
const MAX_DIFFERENCES = 1000;

/**
 * Reads the blocks from `from` to `to` again, compares them with the ledger, and changes nothing. Errors as of `readSolid`, and
 * `INVALID_ARGUMENT` where more is different than one repair takes.
 */
export async function planRepair(
  deps: ReadSolidDeps,
  range: Range,
  onProgress: (blockCount: number) => void,
): Promise<RepairPlan> {
  const differences: PlannedDifference[] = [];
  const kept: SolidBlock[] = [];
  let done = 0;
  const read = await readSolid(deps, range, async (blocks) => {
    const { differences: found } = await compareBlocks(deps.db, deps.network, blocks);
    if (differences.length + found.length > MAX_DIFFERENCES) {
      throw new AppError(
        'INVALID_ARGUMENT',
        say`more than ${MAX_DIFFERENCES} differences up to block ${blocks.at(-1)?.number ?? ''}: repair ${{ field: 'from' }} ${range.from} ${{ field: 'to' }} ${range.from + Math.max(0, done - 1)} first, then go on`,
      );
    }
    differences.push(...(await withRecorded(deps, found)));
    const numbers = new Set(found.flatMap((each) => [each.blockNumber, each.onChain?.blockNumber]));
    kept.push(...blocks.filter(({ number }) => numbers.has(number)));
    done += blocks.length;
    onProgress(done);
  });
  return { ...read, range, differences, blocks: kept };
}

async function withRecorded(
  { db, network }: Pick<ReadSolidDeps, 'db' | 'network'>,
  differences: readonly Difference[],
): Promise<PlannedDifference[]> {
  const found = await findRecorded(db, network, differences.filter(isDenied));
  const byKey = new Map(found.map((recorded) => [keyOf(recorded), recorded]));
  return differences.map((each) => ({ ...each, recorded: isDenied(each) ? (byKey.get(keyOf(each)) ?? null) : null }));
}

/** Whether the ledger has it and the chain denies it. */
function isDenied({ kind }: Pick<Difference, 'kind'>): boolean {
  return kind === 'not-on-chain' || kind === 'wrong';
}

/** The differences that are a payment: invoices which what never was made `PAID`. */
export function deniedPayments({ differences }: RepairPlan): PlannedDifference[] {
  return differences.filter(({ recorded }) => recorded?.incoming?.kind === 'matched');
}

/** `left`: what is different in those blocks after the repair; normally nothing. */
type Repaired = { takenBack: number; added: TransferCounts; left: Difference[] };

/**
 * Does what a plan says: takes back what the chain denies, and records what the ledger misses. To repeat it is harmless. The caller
 * has shown the plan, and has been told to go on for each of its denied payments.
 */
export async function repair(
  deps: ReadSolidDeps & Recording & Writing,
  { differences, blocks, range }: RepairPlan,
  order: { actor: Actor; reason: string },
): Promise<Repaired> {
  const denied = differences.flatMap((each): DeniedTransfer[] =>
    each.recorded === null ? [] : [{ transfer: each, recorded: each.recorded, deniedBy: each.chainBlockId }],
  );
  const done = await recordRepaired(deps, { denied, blocks, range, ...order });
  const left: Difference[] = [];
  for (const block of blocks) left.push(...(await compareBlocks(deps.db, deps.network, [block])).differences);
  return { ...done, left };
}
