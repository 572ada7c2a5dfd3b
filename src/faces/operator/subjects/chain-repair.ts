import type { SolidBlock } from '../../../core/domain/chain-block.ts';
import { AppError, type FieldProblem, invalidArgument } from '../../../core/domain/errors.ts';
import { decodeId, encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../../core/domain/invoice.ts';
import { say } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import { recordTransfers } from '../../../core/payments/record-transfers.ts';
import type { Recording } from '../../../core/payments/watching.ts';
import { Type } from '../../../core/runtime/type.ts';
import { raiseAlarm } from '../../../core/store/chain/alarms.ts';
import { markChecksDue } from '../../../core/store/chain/balance-checks.ts';
import { lockCursor } from '../../../core/store/chain/cursor.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { hexSeal } from '../../../core/store/db/seal.ts';
import { SEALED_ANNULMENT } from '../../../core/store/db/sealed-tables.ts';
import { maybe, type Row, statement, text } from '../../../core/store/db/statement.ts';
import { type Annulment, notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import type { Actor } from '../actor.ts';
import { type Column, columnsText, writeText } from '../command-words.ts';
import { clip, quote } from '../input/problems.ts';
import { readReason } from '../input/readers.ts';
import { localOperation, type NodeDeps, type ReadSolidDeps } from '../operation.ts';
import { DECIDED_BY, flag, line, lines, networkName } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { withNodesOf } from '../select.ts';
import {
  compareBlocks,
  concerns,
  type Difference,
  describeDifference,
  keyOf,
  type LedgerTransfer,
  type Range,
  type ReadSolid,
  rangeInput,
  readRange,
  readSolid,
  TRANSFER_KEY,
  type TransferKey,
} from './chain-blocks.ts';
import { DIFFERENCES, listCounts, ofRange, progressOf, sayUnattested } from './chain-ranges.ts';

const recorded = statement(
  'annulment-recorded',
  {
    ...TRANSFER_KEY,
    correction: 'int4',
    incoming: maybe({
      ...{ id: 'uuid', projectId: 'uuid', kind: text<'matched' | 'duplicate' | 'unmatched'>() },
      /** The invoice that it paid. For a duplicate, the invoice that was already paid. */
      invoice: maybe({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() }),
    }),
  },
  `select asked.side, asked.tx_id, asked.log_index, t.correction, t.id as incoming_id, t.project_id as incoming_project_id,
     t.kind as incoming_kind, i.id as incoming_invoice_id, i.external_id as incoming_invoice_external_id,
     i.status as incoming_invoice_status
   from unnest($2::text[], $3::text[], $4::int8[]) with ordinality as given (side, tx_id, log_index, place)
   cross join lateral (select given.side, given.tx_id, given.log_index::int4 as log_index) asked
   cross join lateral (
     select t.correction, t.id, t.project_id, t.kind, t.invoice_id from transfers t
     where asked.side = 'in' and t.network = $1 and t.tx_id = decode(asked.tx_id, 'hex') and t.log_index = asked.log_index
       and ${notAnnulled('t')}
     union all
     select o.correction, null, null, null, null from outgoing_transfers o
     where asked.side = 'out' and o.network = $1 and o.tx_id = decode(asked.tx_id, 'hex') and o.log_index = asked.log_index
       and ${outgoingNotAnnulled('o')}) t
   left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   order by given.place`,
);

/** A transfer in the ledger, with facts that only the ledger has. `incoming` is `null` for an outgoing one. */
type Recorded = Row<typeof recorded.shape>;

/** Returns the transfers in the list that the ledger has, in the given order. */
async function findRecorded(db: Sql, network: Network, transfers: readonly TransferKey[]): Promise<Recorded[]> {
  if (transfers.length === 0) return [];
  return db.run(recorded, [
    network,
    transfers.map(({ side }) => side),
    transfers.map(({ txId }) => txId),
    transfers.map(({ logIndex }) => BigInt(logIndex)),
  ]);
}

const insertIncoming = statement(
  'annulment-insert',
  {},
  `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason, mac)
   select (t->>'transferId')::uuid, (t->>'projectId')::uuid, (t->>'invoiceId')::uuid, decode(t->>'deniedBy', 'hex'), $2, $3, $4,
     decode(t->>'mac', 'hex')
   from jsonb_array_elements($1::text::jsonb) t`,
);

const insertOutgoing = statement(
  'annulment-insert-outgoing',
  {},
  `insert into outgoing_annulments (network, tx_id, log_index, correction, denied_by, annulled_at, annulled_by, reason)
   select $2, decode(t->>'txId', 'hex'), (t->>'logIndex')::int4, (t->>'correction')::int4, decode(t->>'deniedBy', 'hex'), $3,
     $4, $5
   from jsonb_array_elements($1::text::jsonb) t`,
);

/** Takes transfers back. Constraints refuse a second annulment of the same transfer, and an annulment that hides which invoice was paid. */
async function insertAnnulments(
  tx: Sql,
  network: Network,
  denied: readonly (Recorded & { deniedBy: string })[],
  { at, by, reason }: Omit<Annulment, 'deniedBy'>,
): Promise<void> {
  const sealer = await tx.sealer();
  const incoming = denied.flatMap(({ incoming: found, deniedBy }) => {
    if (found === null) return [];
    const { id, projectId, kind, invoice } = found;
    const invoiceId = kind === 'matched' ? (invoice?.id ?? null) : null;
    const row = { transferId: id, projectId, invoiceId, deniedBy, annulledAt: at, annulledBy: by, reason };
    return [{ ...row, mac: hexSeal(sealer, SEALED_ANNULMENT, row) }];
  });
  const outgoing = denied.flatMap(({ incoming: found, ...rest }) => (found === null ? [rest] : []));
  if (incoming.length > 0) await tx.run(insertIncoming, [JSON.stringify(incoming), new Date(at), by, reason]);
  if (outgoing.length > 0) await tx.run(insertOutgoing, [JSON.stringify(outgoing), network, new Date(at), by, reason]);
}

/** A transfer in the ledger that the chain denies, and the block that proves it. */
type DeniedTransfer = { transfer: LedgerTransfer; recorded: Recorded; deniedBy: string };

/** An operator's decision: the transfers to take back, and the chain's blocks with the missing ones. */
type Repair = {
  denied: readonly DeniedTransfer[];
  blocks: readonly SolidBlock[];
  range: Range;
  actor: Actor;
  reason: string;
};

/**
 * Takes back the transfers that the chain denies, and records missing transfers as a rescan does, in one transaction that holds the
 * cursor's lock. An invoice that a denied transfer had made `PAID` stays so, and an alarm reports it. Transfers that someone else has
 * already taken back are left alone.
 */
export function recordRepaired(recording: Recording, { denied, blocks, range, actor, reason }: Repair) {
  const { db, network, now } = recording;
  return db.transaction(async (tx) => {
    const cursor = await lockCursor(tx, network);
    if (cursor === null) throw new Error(`network ${network} has no cursor`);
    const at = now();
    const by = actor.name;
    const standing = await stillStanding(tx, network, denied);
    const annulled = standing.map(({ recorded, deniedBy }) => ({ ...recorded, deniedBy }));
    await insertAnnulments(tx, network, annulled, { at, by, reason });
    const { counts } = await recordTransfers(recording, tx, blocks, cursor.head.number, { concerns, isAgain: true });
    for (const each of standing) await alarmOf(recording, tx, each, { by, reason });
    const subjects = standing.map(({ transfer }) => keyOf(transfer));
    const detail = { ...range, reason, takenBack: subjects, added: counts };
    await markChecksDue(tx, network);
    await recordAction(tx, actor, at, 'chain.repaired', { subject: network, detail });
    return { takenBack: standing.length, added: counts };
  });
}

async function stillStanding(tx: Sql, network: Network, denied: readonly DeniedTransfer[]): Promise<DeniedTransfer[]> {
  const transfers = denied.map(({ transfer }) => transfer);
  const found = await findRecorded(tx, network, transfers);
  const standing = new Set(found.map(correctionOf));
  return denied.filter(({ recorded }) => standing.has(correctionOf(recorded)));
}

const correctionOf = (recorded: Recorded) => `${keyOf(recorded)} ${recorded.correction}`;

/** Only this alarm reports an invoice that is `PAID` by a payment that never happened. */
async function alarmOf(
  { network, now, random }: Recording,
  tx: Sql,
  { transfer, recorded }: DeniedTransfer,
  { by, reason }: { by: string; reason: string },
): Promise<void> {
  const { kind, invoice } = recorded.incoming ?? { kind: null, invoice: null };
  if (kind !== 'matched' || invoice === null) return;
  const invoiceId = encodeId('inv', invoice.id);
  const { txId, logIndex, blockNumber, address, amountMicro } = transfer;
  const detail =
    `the payment of ${invoiceId} (${invoice.externalId}) is not on the chain: transfer ${txId} (${logIndex}) of ` +
    `${formatAmount(amountMicro as MicroUsdt)} USDT to ${address} was recorded in block ${blockNumber}, but that block does not contain it. ${by} took it ` +
    `back: ${reason}. The invoice stays PAID, because PAID is final, but you did not receive this money: do not ship the order. After you have informed your shop: ` +
    // Alarms are stored as text.
    writeText(
      say`${{ command: 'chain acknowledge', input: { network, alarm: 'payment-denied', subject: invoiceId } }}`,
    );
  await raiseAlarm(tx, network, { id: uuidV7(now(), random(10)), kind: 'payment-denied', subject: invoiceId, detail });
}

/** Reads a named invoice's UUID. Throws `INVALID_ARGUMENT`. */
function readInvoiceId(text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw invalidArgument`${{ field: 'invoice' }} ${clip(text)} is not an invoice id, which is "inv_" followed by 26 characters`;
}

/**
 * Shows where the ledger differs from the chain and what each such transfer did. Without an `order`, changes nothing, and `hint` is the
 * command that makes the repair. With an `order`, takes back the transfers that the chain denies and records missing ones. Refuses if a
 * denied transfer had paid an invoice that `invoiceIds` (UUIDs) doesn't name. Throws `CONFLICT`, `INVALID_ARGUMENT`, or an error from
 * `planRepair`.
 */
async function repairRange(
  deps: NodeDeps & { onProgress(blockCount: number): void },
  actor: Actor,
  { range, invoiceIds, order }: { range: Range; invoiceIds: readonly string[]; order: { reason: string } | null },
) {
  const { network } = deps;
  const plan = await planRepair(deps, range, deps.onProgress);
  const { blockCount, attestedCount, differences } = plan;
  const shown = { network, ...range, blockCount, attestedCount, differences: differences.map(describePlanned) };
  if (differences.length === 0) return { view: { ...shown, isChanged: false as const }, hint: null };
  if (order === null) {
    const invoice = deniedPayments(plan).flatMap(({ recorded }) => {
      const id = recorded?.incoming?.invoice?.id;
      return id === undefined ? [] : [encodeId('inv', id)];
    });
    const input = { ...rangeInput(network, range), invoice, isConfirmed: true, reason: '…' } as const;
    return { view: { ...shown, isChanged: false as const }, hint: { command: 'chain repair', input } };
  }
  refuseUnnamed(plan, new Set(invoiceIds));
  const { reason } = order;
  const { takenBack, added, left } = await repair(deps, plan, { reason, actor });
  const done = { reason, by: actor.name, takenBack, added, left: left.map(describeDifference) };
  return { view: { ...shown, isChanged: true as const, ...done }, hint: { command: 'reconcile', input: { network } } };
}

type PlannedView = ReturnType<typeof describePlanned>;

function describePlanned({ recorded, ...difference }: PlannedDifference) {
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

/** The operator must name exactly those invoices whose payment is denied. */
function refuseUnnamed(plan: RepairPlan, named: ReadonlySet<string>): void {
  const payments = deniedPayments(plan);
  const known = new Set(payments.map(({ recorded }) => recorded?.incoming?.invoice?.id));
  const stranger = [...named].find((id) => !known.has(id));
  if (stranger !== undefined)
    throw invalidArgument`${{ field: 'invoice' }} ${encodeId('inv', stranger)} was not paid by a transfer that must be taken back in these blocks: leave it out`;
  const problems = payments.flatMap(({ recorded, txId, logIndex }): FieldProblem[] => {
    const invoice = recorded?.incoming?.invoice;
    if (invoice == null || named.has(invoice.id)) return [];
    const subject = encodeId('inv', invoice.id);
    const message = say`${subject} (${quote(invoice.externalId)}) is PAID by transfer ${txId} (${logIndex}), which is not on the chain: add ${{ field: 'invoice' }} ${subject}`;
    return [{ subject, message }];
  });
  if (problems.length === 0) return;
  throw new AppError(
    'CONFLICT',
    'nothing was changed, because PAID is final: check each of these invoices, and add an invoice to the command when you know that it was not paid',
    { problems },
  );
}

/** A difference, with the ledger's own facts if the chain denies the transfer. */
type PlannedDifference = Difference & { recorded: Recorded | null };

/** One command changes no more than a person can review. */
const MAX_DIFFERENCES = 1000;

/** The differences in a range, and the chain's blocks that show them. */
export type RepairPlan = ReadSolid & { range: Range; differences: PlannedDifference[]; blocks: SolidBlock[] };

/**
 * Reads the blocks from `from` to `to` again and compares them with the ledger, without changing anything. Throws the errors of
 * `readSolid`, or `INVALID_ARGUMENT` if there are more differences than one repair allows.
 */
export async function planRepair(deps: ReadSolidDeps, range: Range, onProgress: (blockCount: number) => void) {
  const differences: PlannedDifference[] = [];
  const kept: SolidBlock[] = [];
  const read = await readSolid(deps, range, async (blocks, done) => {
    const { differences: found } = await compareBlocks(deps.db, deps.network, blocks);
    if (differences.length + found.length > MAX_DIFFERENCES)
      throw invalidArgument`more than ${MAX_DIFFERENCES} differences up to block ${blocks.at(-1)?.number ?? ''}: repair ${{ field: 'from' }} ${range.from} ${{ field: 'to' }} ${range.from + Math.max(0, done - blocks.length - 1)} first, then continue with the rest`;
    differences.push(...(await withRecorded(deps, found)));
    const numbers = new Set(found.flatMap((each) => [each.blockNumber, each.onChain?.blockNumber]));
    kept.push(...blocks.filter(({ number }) => numbers.has(number)));
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

/** Whether the ledger has the transfer and the chain denies it. */
function isDenied({ kind }: Pick<Difference, 'kind'>): boolean {
  return kind === 'not-on-chain' || kind === 'wrong';
}

/** Returns the differences that made an invoice `PAID` by a payment that never happened. */
export function deniedPayments({ differences }: RepairPlan): PlannedDifference[] {
  return differences.filter(({ recorded }) => recorded?.incoming?.kind === 'matched');
}

/**
 * Carries out a plan: takes back the transfers that the chain denies, and records the ones that the ledger missed. Repeating it is
 * harmless. The caller has shown the plan, and an operator has confirmed each denied payment. `left` contains the remaining differences in
 * those blocks; normally, there are none.
 */
export async function repair(
  deps: ReadSolidDeps & Recording,
  { differences, blocks, range }: RepairPlan,
  order: { actor: Actor; reason: string },
) {
  const denied = differences.flatMap(({ recorded, ...transfer }): DeniedTransfer[] =>
    recorded === null ? [] : [{ transfer, recorded, deniedBy: transfer.chainBlockId }],
  );
  const done = await recordRepaired(deps, { denied, blocks, range, ...order });
  const left: Difference[] = [];
  for (const block of blocks) left.push(...(await compareBlocks(deps.db, deps.network, [block])).differences);
  return { ...done, left };
}

/** Without `isConfirmed` it changes nothing, and fails if there is anything to repair. */
const repairOperation = localOperation({
  action: 'repairRange',
  command: 'chain repair',
  does: say`show where the ledger differs from the chain; with ${{ field: 'isConfirmed' }}, correct the ledger`,
  input: Type.Object({
    ...ofRange,
    isConfirmed: flag('change the ledger: remove transfers that are not on the chain, and record missing transfers'),
    reason: line('<text>', say`with ${{ field: 'isConfirmed' }}: reason (recorded in the audit log)`),
    invoice: lines(
      '<inv_…>',
      'an invoice that was PAID by a transfer that is not on the chain; repeat the option for each invoice',
    ),
    network: networkName(),
  }),
  by: DECIDED_BY,
  read: ({ network, isConfirmed = false, reason, invoice = [], ...range }) => ({
    ...{ network, range: readRange(range), invoiceIds: invoice.map(readInvoiceId) },
    order: isConfirmed ? { reason: readReason(reason) } : null,
  }),
  run: (deps, actor, { network, range, ...wanted }) =>
    withNodesOf(deps, network, (nodes) =>
      repairRange({ ...nodes, onProgress: progressOf(deps.note, range) }, actor, { range, ...wanted }),
    ),
  print: ({ view, hint }) => {
    const { blockCount, differences } = view;
    if (hint === null) {
      return {
        text: `${blockCount} blocks read: no differences, so there is nothing to repair`,
        next: sayUnattested(view),
      };
    }
    const table = columnsText(differences, PLANNED);
    const payments = differences.filter(({ match }) => match === 'matched');
    if (!view.isChanged) {
      const denied =
        'an invoice is PAID by a transfer that is not on the chain, and will stay PAID: do not ship the order. ';
      return {
        text: [table, `${blockCount} blocks read, ${differences.length} differences; nothing was changed`],
        next: say`${payments.length === 0 ? 'when' : `${denied}When`} you know the cause, repair the ledger with: ${hint}`,
        hasFailed: true,
      };
    }
    const { takenBack, added, left } = view;
    const denied = payments.map((each) => `${nameInvoice(each)} stays PAID, but its payment is not on the chain`);
    const done = `${takenBack} taken back; added to the ledger: ${listCounts(added)}`;
    const still = left.length === 0 ? '' : `still different:\n${columnsText(left, DIFFERENCES)}`;
    return {
      text: [table, [done, ...denied].join('\n'), still],
      next: say`check that all balances are correct now: ${hint}`,
      hasFailed: left.length > 0,
    };
  },
});

const PLANNED: readonly Column<PlannedView>[] = [
  ...DIFFERENCES,
  [
    'WHAT IT DID',
    (planned) => {
      const { match, invoice } = planned;
      if (match === null) return '';
      if (invoice === null) return 'paid no invoice';
      const name = `${nameInvoice(planned)}, ${invoice.status}`;
      return match === 'matched' ? `paid ${name}` : `paid no invoice: duplicate payment of ${name}`;
    },
  ],
];

function nameInvoice({ invoice }: PlannedView): string {
  return invoice === null ? '' : `${invoice.invoiceId} (${quote(invoice.externalId)})`;
}

export const operations = [repairOperation];
