import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { Match } from '../../domain/match.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { ResolutionKind } from '../../domain/resolution.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { rowOf, rowsOf } from '../../store/db/rows-of.ts';
import { hexSeal, sealColumn } from '../../store/db/seal.ts';
import { SEALED_RESOLUTION, SEALED_TRANSFER } from '../../store/db/sealed-tables.ts';
import { maybe, maybeText, micro, type Row, sealedBefore, statement, text } from '../../store/db/statement.ts';
import { stands } from '../../store/ledger/standing.ts';

export type TransferKind = Match['kind'];

const namedInvoice = { id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() } as const;
/** An invoice as the desk names it. `id` is a UUID. */
export type NamedInvoice = Row<typeof namedInvoice>;

export type DeskFilter = {
  kinds: readonly TransferKind[];
  state: 'open' | 'resolved' | 'all';
  /** By the time of the block: at or after `from`, before `until`. */
  from: UnixMs | null;
  until: UnixMs | null;
  /** Only those that were recorded before this one (UUID). */
  before: string | null;
  limit: number;
};

const listed = {
  id: 'uuid',
  txId: 'text',
  logIndex: 'int4',
  blockTime: 'timestamptz',
  from: 'text',
  to: 'address',
  amountMicro: micro<MicroUsdt>(),
  kind: text<TransferKind>(),
  /** The invoice that it pays, or, of a duplicate, that was paid before. */
  invoice: maybe(namedInvoice),
  /** The resolution in force. */
  resolution: maybeText<ResolutionKind>(),
  seal: sealedBefore(SEALED_TRANSFER),
} as const;

/** A transfer to one of our addresses as the desk shows it in a list. Ids are UUIDs, `txId` is 64 hex characters. */
export type DeskTransfer = Omit<Row<typeof listed>, 'seal'>;

const IS_OPEN = 'not exists (select from transfer_resolutions where transfer_id = u.id)';
const isClaimed = (id: string) => `exists (select from transfer_claims where transfer_id = ${id})`;

// What payers claim and nobody has decided about comes first: it is little, and found by the claims. The page is cut out of both in the order
// of an index. Then lateral, so that PostgreSQL looks up each row's invoice and
// resolution, however small it believes the tables to be.
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
     select resolution from transfer_resolutions where transfer_id = t.id order by id desc limit 1) r on true
   order by t.is_claimed desc, t.id desc`;

function asked(only: string): string {
  return `u.project_id = $1 and u.kind = any($2::text[]) and ${only} and ${stands('u')}
       and ($4::timestamptz is null or u.block_time >= $4) and ($5::timestamptz is null or u.block_time < $5)`;
}

const listUnsettled = statement('desk-list-unsettled', listed, listText("u.kind <> 'matched'"));
const listAll = statement('desk-list', listed, listText('true'));

/** Transfers to the addresses of a project, what payers claim first, then the newest, but for those that were taken back. */
export function listDeskTransfers(db: Sql, projectId: string, filter: DeskFilter): Promise<DeskTransfer[]> {
  const { kinds, state, from, until, before, limit } = filter;
  // Said in the text of the statement, it lets PostgreSQL read the index of those that pay nothing.
  const select = kinds.includes('matched') ? listAll : listUnsettled;
  return db.run(select, [projectId, kinds, before, ...toDates({ from, until }), state, limit]);
}

/** The bounds of a time as PostgreSQL takes them. */
export function toDates({ from, until }: Pick<DeskFilter, 'from' | 'until'>): (Date | null)[] {
  return [from, until].map((time) => (time === null ? null : new Date(time)));
}

/** The most that are read for one transfer; an operator who decided more often sees the newest. */
const MAX_RESOLUTIONS = 100;

const selectResolutions = statement(
  'resolution-select',
  {
    transferId: 'uuid',
    resolution: text<ResolutionKind>(),
    note: 'text',
    /** The invoice that the money was for. */
    invoice: maybe(namedInvoice),
    resolvedBy: 'text',
    resolvedAt: 'timestamptz',
    seal: sealedBefore(SEALED_RESOLUTION),
  },
  `select r.transfer_id, r.resolution, r.note, i.id as invoice_id, i.external_id as invoice_external_id,
     i.status as invoice_status, r.resolved_by, r.resolved_at, ${sealColumn(SEALED_RESOLUTION, 'r.')} as seal
   from unnest($1::uuid[]) as asked (id)
   cross join lateral (
     select * from transfer_resolutions where transfer_id = asked.id order by id desc limit ${MAX_RESOLUTIONS}) r
   left join lateral (
     select id, external_id, status from invoices where project_id = r.project_id and id = r.invoice_id limit 1) i on true
   order by r.id`,
);

/** An operator's record about a transfer that paid nothing. Ids are UUIDs. */
export type Resolution = Omit<Row<typeof selectResolutions.shape>, 'seal'>;

/** The resolutions of transfers (UUIDs), oldest first, the newest 100 of each. A transfer without resolutions has no entry. */
export async function findResolutions(db: Sql, transferIds: readonly string[]): Promise<Map<string, Resolution[]>> {
  const found = new Map<string, Resolution[]>();
  for (const row of await db.run(selectResolutions, [transferIds])) {
    found.set(row.transferId, [...(found.get(row.transferId) ?? []), row]);
  }
  return found;
}

const locked = {
  id: 'uuid',
  projectId: 'uuid',
  kind: text<TransferKind>(),
  isAnnulled: 'bool',
  externalId: 'text?',
} as const;

export type LockedTransfer = Row<typeof locked>;

/** Holds transfers until the transaction ends, so that whoever resolves them at the same time sees what was there before. */
export const lockTransfers = rowsOf(
  'desk-lock',
  locked,
  `select t.id, t.project_id, t.kind, not ${stands('t')} as is_annulled,
     (select external_id from invoices where project_id = t.project_id and id = t.invoice_id) as external_id
   from lock_transfers($1::uuid[]) locked join transfers t on t.id = locked order by t.id`,
  (ids: readonly string[]) => [ids],
);

/** `eventId`: of its `transfer.resolved` (UUID), which was recorded before it. */
export type NewResolution = Omit<Resolution, 'invoice' | 'resolvedAt'> & {
  projectId: string;
  invoiceId: string | null;
  eventId: string;
};

const addResolutions = statement(
  'resolution-insert',
  {},
  `insert into transfer_resolutions (project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at, is_untold, event_id, mac)
   select (r->>'projectId')::uuid, (r->>'transferId')::uuid, r->>'resolution', r->>'note', (r->>'invoiceId')::uuid,
     r->>'resolvedBy', $2, false, (r->>'eventId')::uuid, decode(r->>'mac', 'hex')
   from jsonb_array_elements($1::text::jsonb) with ordinality as entries (r, place) order by place`,
);

/** Adds resolutions. The constraints refuse those of matched transfers and invoices of another project. */
export async function insertResolutions(tx: Sql, resolutions: readonly NewResolution[], now: UnixMs): Promise<void> {
  const sealer = await tx.sealer();
  const rows = resolutions.map((row) => ({
    ...row,
    mac: hexSeal(sealer, SEALED_RESOLUTION, { ...row, resolvedAt: now }),
  }));
  await tx.run(addResolutions, [JSON.stringify(rows), new Date(now)]);
}

/** An invoice of the project by its id (UUID) or by its external id; the id comes first. */
export const findNamedInvoice = rowOf(
  'desk-invoice-select',
  namedInvoice,
  `select id, external_id, status from invoices
   where project_id = $1 and (id = $2 or external_id = $3) order by id = $2 desc limit 1`,
  (projectId: string, name: { id: string | null; externalId: string }) => [projectId, name.id, name.externalId],
);

const eventShape = {
  transferId: 'uuid',
  eventId: 'uuid',
  type: 'text',
  createdAt: 'timestamptz',
  /** `null` where the project had no endpoint at the time. */
  delivery: maybe({
    endpointId: 'uuid',
    isDisabled: 'bool',
    status: text<'pending' | 'delivered' | 'dead'>(),
    attemptCount: 'int4',
    nextAttemptAt: 'timestamptz',
    finishedAt: 'timestamptz?',
    lastStatus: 'int4?',
    lastError: 'text?',
  }),
} as const;
/** A delivery of an event about a transfer. */
export type TransferEvent = Row<typeof eventShape>;

/** The events about transfers (UUIDs) with their deliveries, oldest first; `limitOfEach` bounds those of one transfer. */
export const findTransferEvents = rowsOf(
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
