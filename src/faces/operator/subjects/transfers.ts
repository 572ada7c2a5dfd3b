import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { formatSigned } from '../../../core/chain/reconcile.ts';
import { invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { describeRefund } from '../../../core/domain/event.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { INVOICE_STATUSES } from '../../../core/domain/invoice.ts';
import { readTransactionReference } from '../../../core/domain/lookup/pasted.ts';
import { type Hint, say, type Text } from '../../../core/domain/message.ts';
import { CAUSE_CODES, type Cause } from '../../../core/domain/mismatch.ts';
import type { MicroUsdt } from '../../../core/domain/money.ts';
import { RESOLUTIONS, type ResolutionKind } from '../../../core/domain/resolution.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { findClaims } from '../../../core/payments/claims.ts';
import { diagnoseTransfers } from '../../../core/payments/mismatch/diagnose-transfers.ts';
import { Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_TRANSFER } from '../../../core/store/db/sealed-tables.ts';
import {
  text as column,
  maybeText,
  maybe as mayLack,
  micro,
  type Row,
  sealedBefore,
  statement,
} from '../../../core/store/db/statement.ts';
import { notAnnulled, resolutionColumn } from '../../../core/store/ledger/annulments.ts';
import { soundRefund } from '../../../core/store/ledger/transfer-refunds.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText, formatFields, isoSecond, joinParts, shortCell } from '../command-words.ts';
import {
  choice,
  type Field,
  id,
  list,
  listOf,
  maybe,
  of,
  part,
  type Shown,
  show,
  text,
  texts,
  time,
  usdt,
  whole,
  yes,
} from '../fields.ts';
import { clip } from '../input/problems.ts';
import { readId, readLengthLimit, readPeriod } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { argument, flags, limit, line, period, projectId } from '../option.ts';
import { namedInvoice, selectProject } from '../select.ts';
import {
  findResolutions,
  findTransfers,
  findTransfersOfTransaction,
  readKinds,
  TRANSFER_KINDS,
  type TransferKind,
  type TransferRecord,
  toDates,
} from './transfer-export.ts';

const named = { invoiceId: of('id', id('inv')), externalId: text, status: choice(INVOICE_STATUSES) };
export const resolutionFields = {
  ...{ resolution: choice(RESOLUTIONS), note: text, invoice: maybe(part(named)) },
  ...{ resolvedBy: text, resolvedAt: time },
};
export type ResolutionView = Shown<typeof resolutionFields>;
const likely = { code: choice(CAUSE_CODES), confidence: choice(['high', 'medium', 'low']) };
const place = {
  ...{ txId: text, logIndex: whole, time: of('blockTime', time), amount: of('amountMicro', usdt), from: text },
};
/**
 * A transfer in a list. `nearestInvoice` belongs to the likeliest reason. `claimedBy` lists the invoices whose payers looked up the
 * transfer.
 */
const listed = {
  ...{ transferId: of('id', id('trf')), ...place, to: text, kind: choice(TRANSFER_KINDS), invoice: maybe(part(named)) },
  ...{ reason: maybe(part(likely)), nearestInvoice: maybe(part(named)), claimedBy: list(part(named)) },
  resolution: maybe(choice(RESOLUTIONS)),
};
export type ListedTransferView = Shown<typeof listed>;
/** `nextBefore` is the last transfer on this page if there is another page. */
export type TransferListView = { data: ListedTransferView[]; nextBefore: string | null };

const signed: Field<bigint, string> = { ...text, show: formatSigned };
const figures: Field<Cause['evidence'], Cause['evidence']> = {
  schema: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
  show: (evidence) => evidence,
};
const causeFields = {
  ...{ ...likely, explanation: text, evidence: figures },
  invoices: list(
    part({ ...named, payableAmount: of('payableMicro', usdt), difference: of('differenceMicro', signed) }),
  ),
};
export type CauseView = Shown<typeof causeFields>;
export const viewCause = (cause: Cause): CauseView => show(causeFields, cause);

/** The transfer that refunded it: `from` is one of our addresses, `to` the original sender. Events have the same fields. */
export const refundFields = {
  ...{ txId: text, logIndex: whole, blockNumber: whole, blockTime: { ...text, schema: time.schema } },
  ...{ from: text, to: text, amount: text },
};
export type RefundView = Shown<typeof refundFields>;
/** An event about a transfer, with one of its deliveries. */
const eventFields = {
  ...{ eventId: id('evt'), type: text, createdAt: time },
  delivery: maybe(
    part({
      ...{ endpointId: id('whe'), status: choice(['pending', 'delivered', 'dead']) },
      ...{ isEndpointDisabled: of('isDisabled', yes), attempts: of('attemptCount', whole) },
      nextAttemptAt: {
        ...{ of: '*', schema: maybe(time).schema },
        show: ({ status, nextAttemptAt }: { status: string; nextAttemptAt: UnixMs }) =>
          status === 'pending' ? toIso(nextAttemptAt) : null,
      },
      ...{ finishedAt: maybe(time), lastStatus: maybe(whole), lastError: maybe(text) },
    }),
  ),
};
const producer = maybe({ ...text, show: (hex: AccountHex): string => accountToAddress(hex) });
const evidence = {
  ...{ blockNumber: whole, blockId: text, producer, verified: text, nodes: texts, recordedAt: time },
};
/** Everything known about one transfer. `claims` lists the invoices whose payers looked up the transfer. */
const transferFields = {
  ...{ transferId: of('id', id('trf')), projectId: id('prj'), network: text, kind: choice(TRANSFER_KINDS) },
  ...{
    amount: place.amount,
    from: text,
    to: of('address', text),
    toRetiredAt: of('retiredAt', maybe(time)),
    time: place.time,
  },
  ...{ txId: text, logIndex: whole, evidence: of('*', part(evidence)), invoice: maybe(part(named)) },
  takenBack: of('annulment', maybe(part({ deniedBy: text, at: time, by: text, reason: text }))),
  ...{ refund: maybe(part(refundFields)), causes: list(part(causeFields)) },
  claims: list(part({ invoice: part(named), claimedAt: time })),
  ...{ events: list(part(eventFields)), resolutions: list(part(resolutionFields)) },
};
export type TransferView = Shown<typeof transferFields>;

type DeskFilter = {
  kinds: readonly TransferKind[];
  state: 'open' | 'resolved' | 'all';
  /** The period for the block time: at or after `from`, before `until`. */
  from: UnixMs | null;
  until: UnixMs | null;
  /** Selects only transfers recorded before this one (UUID). */
  before: string | null;
  limit: number;
};

/** The maximum number of transfers that are diagnosed at once. A terminal shows fewer. */
const MAX_LIMIT = 500;

/**
 * Lists transfers to a project's addresses: first the ones that payers claim, then the newest. By default, lists only transfers that paid
 * nothing and have no resolution yet.
 */
export const listTransfers = operation({
  action: 'listTransfers',
  summary:
    "List transfers to a project's addresses; by default, only transfers that paid no invoice and need a decision",
  route: 'GET /transfers',
  command: 'transfers list',
  does: 'list transfers that paid no invoice and need your decision, newest first',
  output: listOf(listed, { nextBefore: maybe(text).schema }),
  input: Type.Object({
    projectId: projectId(),
    kind: line('<kind>', 'unmatched, duplicate, matched or all (default: unmatched and duplicate)'),
    state: flags({
      open: say`only transfers without a resolution (the default, unless ${{ field: 'kind' }} is matched or all)`,
      resolved: 'only transfers with a resolution',
      all: 'transfers with and without a resolution',
    }),
    ...period(),
    limit: limit(MAX_LIMIT, '50'),
    before: line('<trf_…>', 'show transfers recorded before this one'),
  }),
  read: ({ projectId, kind, state, before, limit: most = '50', ...times }) => {
    const kinds = kind === undefined ? (['unmatched', 'duplicate'] as const) : readKinds(kind);
    if (kind === 'matched' && (state === 'open' || state === 'resolved'))
      throw invalidArgument`matched transfers need no resolution: leave out --${state}`;
    const limit = readLengthLimit(most, { least: 1, most: MAX_LIMIT });
    return {
      ...{ projectId, kinds, limit, ...readPeriod(times) },
      // A caller who requests matched transfers wants to see them, although they don't need a resolution.
      state: state ?? (kinds.some((each) => each === 'matched') ? 'all' : 'open'),
      before: before === undefined ? null : readId('trf', before),
    };
  },
  run: async ({ db }: { db: Sql }, actor, { projectId, ...filter }: DeskFilter & { projectId: string | undefined }) => {
    const project = await selectProject(db, actor, projectId);
    // Reads one more than requested, to find out whether there is another page.
    const found = await listDeskTransfers(db, project.id, { ...filter, limit: filter.limit + 1 });
    const page = found.slice(0, filter.limit);
    const ids = page.map(({ id }) => id);
    const causes = await diagnoseTransfers(db, ids, true);
    const claims = await findClaims(db, ids);
    const last = found.length > page.length ? page.at(-1) : undefined;
    const data = page.map((transfer) => {
      const cause = causes.get(transfer.id)?.[0] ?? null;
      const claimedBy = (claims.get(transfer.id) ?? []).map(({ invoice }) => invoice);
      return show(listed, { ...transfer, reason: cause, nearestInvoice: cause?.invoices[0] ?? null, claimedBy });
    });
    const view: TransferListView = { data, nextBefore: last === undefined ? null : encodeId('trf', last.id) };
    return { view, state: filter.state, isFirst: filter.before === null };
  },
  print: ({ view: { data, nextBefore }, state, isFirst }) => ({
    text: columnsText(data, [
      ['TRANSFER', 'transferId'],
      ['TIME (UTC)', ({ time }) => isoSecond(time)],
      ['AMOUNT', 'amount'],
      ['FROM', ({ from }) => shortAddress(from)],
      ['TO', ({ to }) => shortAddress(to)],
      ['KIND', 'kind'],
      ['LIKELY CAUSE', ({ reason }) => reason && `${reason.code} (${reason.confidence})`],
      ['NEAREST INVOICE', ({ invoice, nearestInvoice }) => shortCell((invoice ?? nearestInvoice)?.externalId ?? '')],
      ['CLAIMED BY', ({ claimedBy }) => shortCell(claimedBy.map(({ externalId }) => externalId).join(', '))],
      ['RESOLUTION', ({ kind, resolution }) => (kind === 'matched' ? null : (resolution ?? 'open'))],
    ]),
    next: adviceOnList({ data, nextBefore }, state, isFirst),
  }),
});

/** This part is enough to tell addresses apart in a list, but not to pay to one, because no one should copy an address from here. */
function shortAddress(address: string): string {
  return `${address.slice(0, 5)}…${address.slice(-5)}`;
}

function adviceOnList({ data, nextBefore }: TransferListView, state: DeskFilter['state'], isFirst: boolean): Text {
  if (nextBefore !== null)
    return say`there are more: for the next page, repeat the command with ${{ field: 'before' }} ${nextBefore}`;
  if (data.length > 0)
    return say`show a transfer with "${{ command: 'transfers show', args: ['trf_…'] }}", and record your decision with "${{ command: 'transfers resolve' }}"`;
  if (!isFirst) return 'no more transfers';
  return state === 'open'
    ? say`no transfers await a decision; use ${{ field: 'all' }} to include resolved ones, and ${{ field: 'kind' }} all to include payments of invoices`
    : 'no matching transfers';
}

const row = {
  id: 'uuid',
  txId: 'text',
  logIndex: 'int4',
  blockTime: 'timestamptz',
  from: 'text',
  to: 'address',
  amountMicro: micro<MicroUsdt>(),
  kind: column<TransferKind>(),
  /** The invoice that it pays. For a duplicate, the invoice that was already paid. */
  invoice: mayLack(namedInvoice),
  /** The current resolution. */
  resolution: maybeText<ResolutionKind>(),
  seal: sealedBefore(SEALED_TRANSFER),
} as const;

/** A transfer to one of our addresses in a list for operators. Ids are UUIDs, `txId` is 64 hex characters. */
type DeskTransfer = Omit<Row<typeof row>, 'seal'>;

const IS_OPEN = 'not exists (select from transfer_resolutions where transfer_id = u.id)';
const isClaimed = (id: string) => `exists (select from transfer_claims where transfer_id = ${id})`;

// Open transfers that payers claim appear first. There are few of them, and they are found through their claims. The page is taken from
// both lists in index order. The join is lateral so that PostgreSQL looks up each row's invoice and resolution, however small it believes
// the tables to be.
const listText = (
  only: string,
) => `select t.id, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_time, t.from_address as "from",
     ${addressColumn('a')} as "to", t.amount_micro, t.kind, i.id as invoice_id, i.external_id as invoice_external_id,
     i.status as invoice_status, r.resolution, ${sealColumn(SEALED_TRANSFER, 't.')} as seal
   from (
     (select u.*, true as is_claimed from transfers u
      where u.id in (select transfer_id from transfer_claims where project_id = $1) and ${asked(only)} and ${IS_OPEN}
        and ($3::uuid is null or ${isClaimed('$3')} and u.id < $3)
      order by u.id desc limit $7::int8)
     union all
     (select u.*, false from transfers u
      where ${asked(only)} and not (${isClaimed('u.id')} and ${IS_OPEN})
        and case $6::text
          when 'open' then u.kind <> 'matched' and ${IS_OPEN}
          when 'resolved' then not ${IS_OPEN}
          else true end
        and u.id < case when $3::uuid is null or ${isClaimed('$3')} then 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid else $3 end
      order by u.id desc limit $7::int8)
     order by is_claimed desc, id desc limit $7::int8) t
   join addresses a on a.id = t.address_id
   left join lateral (
     select id, external_id, status from invoices where project_id = t.project_id and id = t.invoice_id limit 1) i on true
   left join lateral (
     select ${resolutionColumn('')} as resolution from transfer_resolutions where transfer_id = t.id order by id desc limit 1) r on true
   order by t.is_claimed desc, t.id desc`;

function asked(only: string): string {
  return `u.project_id = $1 and u.kind = any($2::text[]) and ${only} and ${notAnnulled('u')}
       and ($4::timestamptz is null or u.block_time >= $4) and ($5::timestamptz is null or u.block_time < $5)`;
}

const listUnsettled = statement('desk-list-unsettled', row, listText("u.kind <> 'matched'"));
const listAll = statement('desk-list', row, listText('true'));

/** Returns transfers to a project's addresses: first those that payers claim, then the newest. Omits transfers that were taken back. */
function listDeskTransfers(db: Sql, projectId: string, filter: DeskFilter): Promise<DeskTransfer[]> {
  const { kinds, state, from, until, before, limit } = filter;
  // With this condition in its text, the statement can use the index of transfers that paid nothing.
  const select = kinds.includes('matched') ? listAll : listUnsettled;
  return db.run(select, [projectId, kinds, before, ...toDates({ from, until }), state, limit]);
}

/** One multisend can send 200 transfers. At most this many transfers can be diagnosed at once. */
const MAX_TRANSFERS = 500;
/** The maximum number of deliveries to read for one transfer; no one has this many endpoints. */
const MAX_DELIVERIES = 100;

/** `projectNames` has each transfer's project name, for people. `hint` is the command that resolves the first open one. */
type ShownTransfers = { view: { data: TransferView[] }; projectNames: string[]; hint: Hint | null };

/**
 * Shows everything known about one transfer (`trf_…`), or about each transfer to us in a transaction (its id or Tronscan link), from one
 * snapshot. Throws `NOT_FOUND` or `INVALID_ARGUMENT`.
 */
export const showTransfers = operation({
  action: 'showTransfers',
  summary: 'Show a transfer, or all transfers of a transaction: evidence, likely causes, webhooks and resolution',
  route: 'GET /transfers/:reference',
  command: 'transfers show',
  does: 'show a transfer: evidence, likely causes, webhooks and resolution',
  output: listOf(transferFields),
  input: Type.Object({
    reference: argument(
      '<transfer>',
      'trf_…; or a transaction (id or Tronscan link), for all its transfers to you',
      'trf_…, or a transaction id',
    ),
  }),
  run: ({ db }: { db: Database }, actor, { reference }): Promise<ShownTransfers> => {
    return db.snapshot(async (tx) => {
      const transfers = await findReferenced(tx, actor, reference);
      const ids = transfers.map(({ id }) => id);
      const causes = await diagnoseTransfers(tx, ids);
      const events = await findTransferEvents(tx, ids, MAX_DELIVERIES);
      const claims = await findClaims(tx, ids);
      const resolutions = await findResolutions(tx, ids);
      const open = transfers.find(({ id, kind, annulment }) => {
        return kind !== 'matched' && annulment === null && !resolutions.has(id);
      });
      const data = transfers.map((transfer) => {
        const refund = soundRefund(transfer.refund);
        return show(transferFields, {
          ...{ ...transfer, refund: refund && describeRefund(refund, transfer), causes: causes.get(transfer.id) ?? [] },
          ...{ claims: claims.get(transfer.id) ?? [], resolutions: resolutions.get(transfer.id) ?? [] },
          events: events.filter(({ transferId }) => transferId === transfer.id),
        });
      });
      const args = open && [encodeId('trf', open.id)];
      return {
        view: { data },
        projectNames: transfers.map(({ projectName }) => projectName),
        hint: args === undefined ? null : { command: 'transfers resolve', args, input: { resolution: '…' } },
      };
    });
  },
  print: ({ view, projectNames, hint }) => ({
    text: view.data.map((transfer, index) => toText(transfer, projectNames[index] ?? '')),
    next: hint && say`to record your decision: ${hint}`,
  }),
});

async function findReferenced(db: Sql, actor: Actor, reference: string): Promise<TransferRecord[]> {
  const transaction = readTransactionReference(reference.trim().replace(/^0x(?=[0-9a-f]{64}$)/i, ''));
  if (transaction.kind !== 'id') {
    if (!reference.startsWith('trf_'))
      throw invalidArgument`${clip(reference)} is neither a transfer id (trf_…) nor a transaction id (64 hexadecimal characters, or its Tronscan link)`;
    const transfers = await findTransfers(db, [readId('trf', reference)]);
    const found = transfers.filter(({ projectId }) => maySee(actor, projectId));
    if (found.length === 0) throw notFound`there is no transfer ${reference}`;
    return found;
  }
  const { txId } = transaction;
  const found = await findTransfersOfTransaction(db, txId, actor.projects, MAX_TRANSFERS);
  if (found.length > 0) return found;
  throw notFound`the ledger has no transfer to any of your addresses in transaction ${txId}. Transfers are recorded when their block is irreversible, about a minute after they were sent. Quittance never records transfers of 0, of another token or to another address. For details, run "${{ command: 'explain', args: [txId] }}"`;
}

const KIND_MEANS = {
  matched: 'the transfer paid its invoice',
  duplicate: 'exactly the payable amount of an invoice that was already paid',
  unmatched: 'no invoice is waiting for exactly this amount at this address',
} as const;

function toText(transfer: TransferView, projectName: string): string {
  const { invoice, kind, evidence, toRetiredAt, takenBack, refund, causes, claims, events, resolutions } = transfer;
  const { nodes, verified } = evidence;
  const isDecided = kind === 'matched' || takenBack !== null;
  const fields = formatFields([
    ['transfer', transfer.transferId],
    ['project', `${transfer.projectId} (${projectName}), ${transfer.network}`],
    ['kind', `${kind}: ${KIND_MEANS[kind]}`],
    ['annulled', takenBack && describeTakenBack(takenBack, transfer)],
    ['resolution', isDecided ? null : (resolutions.at(-1)?.resolution ?? 'open: no decision yet')],
    [
      'refund',
      refund && `in transaction ${refund.txId}, log ${refund.logIndex}, ${refund.blockTime}, from ${refund.from}`,
    ],
    ['amount', `${transfer.amount} USDT`],
    ['from', transfer.from],
    ['to', toRetiredAt === null ? transfer.to : `${transfer.to} (retired ${toRetiredAt})`],
    ['invoice', invoice && `${invoice.invoiceId} (${invoice.externalId}), ${invoice.status}`],
    ['time', transfer.time],
    ['transaction', `${transfer.txId}, log ${transfer.logIndex}`],
    ['block', `${evidence.blockNumber}, ${evidence.blockId}`],
    ['made by', evidence.producer ?? 'not recorded at that time'],
    ['verified', nodes.length === 0 ? verified : `${verified}, shown by ${nodes.join(', ')}`],
    ['recorded', evidence.recordedAt],
  ]);
  return joinParts([
    fields,
    causes.length === 0 ? '' : causesText(causes),
    columnsText(claims, [
      ['CLAIMED', 'claimedAt'],
      ['BY THE PAYER OF', ({ invoice }) => invoice.invoiceId],
      ['STATUS', ({ invoice }) => invoice.status],
      ['EXTERNAL ID', ({ invoice }) => invoice.externalId],
    ]),
    columnsText(events, [
      ['EVENT', 'eventId'],
      ['TYPE', 'type'],
      ['CREATED', 'createdAt'],
      ['ENDPOINT', ({ delivery }) => delivery?.endpointId ?? 'no endpoint existed at that time'],
      ['DELIVERY', ({ delivery }) => delivery && deliveryText(delivery)],
    ]),
    columnsText(resolutions, [
      ['RESOLVED', 'resolvedAt'],
      ['AS', 'resolution'],
      ['BY', 'resolvedBy'],
      ['INVOICE', ({ invoice }) => invoice?.externalId ?? null],
      ['NOTE', 'note'],
    ]),
  ]);
}

function describeTakenBack(
  { at, by, reason, deniedBy }: NonNullable<TransferView['takenBack']>,
  { kind }: TransferView,
): string {
  const means =
    kind === 'matched'
      ? 'this payment is not on the chain, but the invoice stays PAID'
      : 'this transfer is not on the chain';
  return `${means}; by ${by}, ${at}: ${reason} (the chain has the block ${deniedBy} at this height)`;
}

function causesText(causes: readonly CauseView[]): string {
  const parts = causes.flatMap(({ code, confidence, explanation, invoices }, index) => [
    formatFields([[`${index + 1}. ${code}, ${confidence}`, explanation]]),
    columnsText(invoices, [
      ['   INVOICE', ({ invoiceId }) => `   ${invoiceId}`],
      ['STATUS', 'status'],
      ['TO PAY', 'payableAmount'],
      ['DIFFERENCE', ({ difference }) => (/^-|^0\.0+$/.test(difference) ? difference : `+${difference}`)],
      ['EXTERNAL ID', 'externalId'],
    ]),
  ]);
  return `LIKELY CAUSES, most likely first; the chain shows amounts, not intentions\n${parts.filter(Boolean).join('\n')}`;
}

function deliveryText(delivery: NonNullable<TransferView['events'][number]['delivery']>): string {
  const { status, isEndpointDisabled, attempts, nextAttemptAt, lastStatus, lastError } = delivery;
  const next = isEndpointDisabled ? 'its endpoint is disabled' : `next ${nextAttemptAt}`;
  const parts = [
    `${status} after ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}`,
    lastError ?? (lastStatus === null ? null : `status ${lastStatus}`),
    status === 'pending' ? next : null,
  ];
  return parts.filter((part) => part !== null).join(', ');
}

const eventShape = {
  transferId: 'uuid',
  eventId: 'uuid',
  type: 'text',
  createdAt: 'timestamptz',
  /** `null` if the project had no endpoint at the time. */
  delivery: mayLack({
    endpointId: 'uuid',
    isDisabled: 'bool',
    status: column<'pending' | 'delivered' | 'dead'>(),
    attemptCount: 'int4',
    nextAttemptAt: 'timestamptz',
    finishedAt: 'timestamptz?',
    lastStatus: 'int4?',
    lastError: 'text?',
  }),
} as const;
/** Returns the events about transfers (UUIDs) with their deliveries, oldest first. `limitOfEach` is the limit for one transfer. */
const findTransferEvents = rowsOf(
  'desk-events',
  eventShape,
  `select e.transfer_id, e.id as event_id, e.type, e.created_at, d.endpoint_id as delivery_endpoint_id,
     w.disabled_at is not null as delivery_is_disabled, d.status as delivery_status,
     d.attempt_count as delivery_attempt_count, d.next_attempt_at as delivery_next_attempt_at,
     d.finished_at as delivery_finished_at, d.last_status as delivery_last_status, d.last_error as delivery_last_error
   from unnest($1::uuid[]) as asked (id)
   cross join lateral (
     select e.transfer_id, e.id, e.type, e.created_at, d.endpoint_id
     from events e left join deliveries d on d.event_id = e.id
     where e.transfer_id = asked.id order by e.id, d.endpoint_id limit $2::int8) e
   left join deliveries d on d.event_id = e.id and d.endpoint_id = e.endpoint_id
   left join webhook_endpoints w on w.id = d.endpoint_id
   order by e.id, d.endpoint_id`,
  (transferIds: readonly string[], limitOfEach: number) => [transferIds, limitOfEach],
);

export const operations = [listTransfers, showTransfers];
