import type { InvoiceStatus } from '../domain/invoice.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { ResolutionKind } from '../domain/resolution.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { stands } from './standing.ts';
import { type Row, statement } from './statement.ts';
import type { NewTransfer } from './transfers.ts';

export type TransferKind = NewTransfer['kind'];

/** An invoice as the desk names it. `id` is a UUID. */
export type NamedInvoice = { id: string; externalId: string; status: InvoiceStatus };

/** A transfer to one of our addresses as the desk shows it in a list. Ids are UUIDs, `txId` is 64 hex characters. */
export type DeskTransfer = {
  id: string;
  txId: string;
  logIndex: number;
  blockTime: UnixMs;
  from: string;
  to: string;
  amountMicro: MicroUsdt;
  kind: TransferKind;
  /** The invoice that it pays, or, of a duplicate, that was paid before. */
  invoice: NamedInvoice | null;
  /** The resolution in force. */
  resolution: ResolutionKind | null;
};

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
  tx_id: 'text',
  log_index: 'int4',
  block_time: 'timestamptz',
  from_address: 'text',
  to_address: 'address',
  amount_micro: 'numeric',
  kind: 'text',
  invoice_id: 'uuid?',
  external_id: 'text?',
  invoice_status: 'text?',
  resolution: 'text?',
} as const;

// The page is cut out first, in the order of the index. Then lateral, so that PostgreSQL looks up each row's invoice and
// resolution, however small it believes the tables to be.
const listText = (
  only: string,
) => `select t.id, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_time, t.from_address,
     ${addressColumn('a')} as to_address, t.amount_micro, t.kind, i.id as invoice_id, i.external_id, i.status as invoice_status,
     r.resolution
   from (
     select * from transfers u
     where u.project_id = $1 and u.kind = any($2::text[]) and ${only} and ${stands('u')}
       and u.id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
       and ($4::timestamptz is null or u.block_time >= $4) and ($5::timestamptz is null or u.block_time < $5)
       and case $6::text
         when 'open' then u.kind <> 'matched' and not exists (select from transfer_resolutions where transfer_id = u.id)
         when 'resolved' then exists (select from transfer_resolutions where transfer_id = u.id)
         else true end
     order by u.id desc limit $7::int8) t
   join addresses a on a.id = t.address_id
   left join lateral (
     select id, external_id, status from invoices where project_id = t.project_id and id = t.invoice_id limit 1) i on true
   left join lateral (
     select resolution from transfer_resolutions where transfer_id = t.id order by id desc limit 1) r on true
   order by t.id desc`;

const listUnsettled = statement('desk-list-unsettled', listed, listText("u.kind <> 'matched'"));
const listAll = statement('desk-list', listed, listText('true'));

/** Transfers to the addresses of a project, the newest first, but for those that were taken back. */
export async function listDeskTransfers(db: Sql, projectId: string, filter: DeskFilter): Promise<DeskTransfer[]> {
  const { kinds, state, from, until, before, limit } = filter;
  // Said in the text of the statement, it lets PostgreSQL read the index of those that pay nothing.
  const select = kinds.includes('matched') ? listAll : listUnsettled;
  return (await db.run(select, [projectId, kinds, before, ...toDates({ from, until }), state, limit])).map(
    toDeskTransfer,
  );
}

/** The bounds of a time as PostgreSQL takes them. */
export function toDates({ from, until }: Pick<DeskFilter, 'from' | 'until'>): (Date | null)[] {
  return [from, until].map((time) => (time === null ? null : new Date(time)));
}

function toDeskTransfer(row: Row<typeof listed>): DeskTransfer {
  return {
    id: row.id,
    txId: row.tx_id,
    logIndex: row.log_index,
    blockTime: row.block_time,
    from: row.from_address,
    to: row.to_address,
    amountMicro: row.amount_micro as MicroUsdt,
    kind: row.kind as TransferKind,
    invoice: toInvoice(row.invoice_id, row.external_id, row.invoice_status),
    resolution: row.resolution as ResolutionKind | null,
  };
}

function toInvoice(id: string | null, externalId: string | null, status: string | null): NamedInvoice | null {
  if (id === null || externalId === null || status === null) return null;
  return { id, externalId, status: status as InvoiceStatus };
}

/** What an operator noted about a transfer that paid nothing. Ids are UUIDs; `invoice` is what the money was for. */
export type Resolution = {
  transferId: string;
  resolution: ResolutionKind;
  note: string;
  invoice: NamedInvoice | null;
  resolvedBy: string;
  resolvedAt: UnixMs;
};

/** So many of one transfer are read; an operator who changed their mind more often sees the newest. */
const MAX_RESOLUTIONS = 100;

const selectResolutions = statement(
  'resolution-select',
  {
    transfer_id: 'uuid',
    resolution: 'text',
    note: 'text',
    invoice_id: 'uuid?',
    external_id: 'text?',
    invoice_status: 'text?',
    resolved_by: 'text',
    resolved_at: 'timestamptz',
  },
  `select r.transfer_id, r.resolution, r.note, r.invoice_id, i.external_id, i.status as invoice_status, r.resolved_by,
     r.resolved_at
   from unnest($1::uuid[]) as asked (id)
   cross join lateral (
     select * from transfer_resolutions where transfer_id = asked.id order by id desc limit ${MAX_RESOLUTIONS}) r
   left join lateral (
     select external_id, status from invoices where project_id = r.project_id and id = r.invoice_id limit 1) i on true
   order by r.id`,
);

/** The resolutions of transfers (UUIDs), oldest first, the newest 100 of each. One without any has no entry. */
export async function findResolutions(db: Sql, transferIds: readonly string[]): Promise<Map<string, Resolution[]>> {
  const found = new Map<string, Resolution[]>();
  for (const row of await db.run(selectResolutions, [transferIds])) {
    const resolutions = found.get(row.transfer_id) ?? [];
    found.set(row.transfer_id, resolutions);
    resolutions.push({
      transferId: row.transfer_id,
      resolution: row.resolution as ResolutionKind,
      note: row.note,
      invoice: toInvoice(row.invoice_id, row.external_id, row.invoice_status),
      resolvedBy: row.resolved_by,
      resolvedAt: row.resolved_at,
    });
  }
  return found;
}

const lock = statement(
  'desk-lock',
  { id: 'uuid', project_id: 'uuid', kind: 'text', is_annulled: 'bool', external_id: 'text?' },
  `select t.id, t.project_id, t.kind, not ${stands('t')} as is_annulled,
     (select external_id from invoices where project_id = t.project_id and id = t.invoice_id) as external_id
   from lock_transfers($1::uuid[]) locked join transfers t on t.id = locked order by t.id`,
);

export type LockedTransfer = {
  id: string;
  projectId: string;
  kind: TransferKind;
  isAnnulled: boolean;
  externalId: string | null;
};

/** Holds transfers until the transaction ends, so that whoever resolves them at the same time sees what was there before. */
export async function lockTransfers(tx: Sql, ids: readonly string[]): Promise<LockedTransfer[]> {
  return (await tx.run(lock, [ids])).map((row) => ({
    id: row.id,
    projectId: row.project_id,
    kind: row.kind as TransferKind,
    isAnnulled: row.is_annulled,
    externalId: row.external_id,
  }));
}

const insertMany = statement(
  'resolution-insert',
  {},
  `insert into transfer_resolutions (project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at)
   select (r->>'projectId')::uuid, (r->>'transferId')::uuid, r->>'resolution', r->>'note', (r->>'invoiceId')::uuid,
     r->>'resolvedBy', $2
   from jsonb_array_elements($1::text::jsonb) with ordinality as entries (r, place) order by place`,
);

export type NewResolution = Omit<Resolution, 'invoice' | 'resolvedAt'> & {
  projectId: string;
  invoiceId: string | null;
};

/** Adds resolutions. The constraints refuse those of matched transfers and invoices of another project. */
export async function insertResolutions(tx: Sql, resolutions: NewResolution[], now: UnixMs): Promise<void> {
  await tx.run(insertMany, [JSON.stringify(resolutions), new Date(now)]);
}

const selectInvoice = statement(
  'desk-invoice-select',
  { id: 'uuid', external_id: 'text', status: 'text' },
  `select id, external_id, status from invoices
   where project_id = $1 and (id = $2 or external_id = $3) order by id = $2 desc limit 1`,
);

/** An invoice of the project by its id (UUID) or by its external id; the id comes first. */
export async function findNamedInvoice(
  db: Sql,
  projectId: string,
  name: { id: string | null; externalId: string },
): Promise<NamedInvoice | null> {
  const [row] = await db.run(selectInvoice, [projectId, name.id, name.externalId]);
  return row === undefined ? null : toInvoice(row.id, row.external_id, row.status);
}

/** One delivery of an event about a transfer. `status` is `null` where the project had no endpoint at the time. */
export type TransferEvent = {
  transferId: string;
  eventId: string;
  type: string;
  createdAt: UnixMs;
  delivery: null | {
    endpointId: string;
    url: string;
    isDisabled: boolean;
    status: 'pending' | 'delivered' | 'dead';
    attemptCount: number;
    nextAttemptAt: UnixMs;
    finishedAt: UnixMs | null;
    lastStatus: number | null;
    lastError: string | null;
  };
};

const selectEvents = statement(
  'desk-events',
  {
    transfer_id: 'uuid',
    event_id: 'uuid',
    type: 'text',
    created_at: 'timestamptz',
    endpoint_id: 'uuid?',
    url: 'text?',
    is_disabled: 'bool?',
    status: 'text?',
    attempt_count: 'int4?',
    next_attempt_at: 'timestamptz?',
    finished_at: 'timestamptz?',
    last_status: 'int4?',
    last_error: 'text?',
  },
  `select e.transfer_id, e.id as event_id, e.type, e.created_at, d.endpoint_id, w.url,
     w.disabled_at is not null as is_disabled, d.status, d.attempt_count, d.next_attempt_at, d.finished_at, d.last_status,
     d.last_error
   from unnest($1::uuid[]) as asked (id)
   cross join lateral (
     select e.transfer_id, e.id, e.type, e.created_at, d.endpoint_id
     from events e left join deliveries d on d.event_id = e.id
     where e.transfer_id = asked.id order by e.id, d.endpoint_id limit $2::int8) e
   left join deliveries d on d.event_id = e.id and d.endpoint_id = e.endpoint_id
   left join webhook_endpoints w on w.id = d.endpoint_id
   order by e.id, d.endpoint_id`,
);

/** The events about transfers (UUIDs) with their deliveries, oldest first; `limitOfEach` bounds those of one transfer. */
export async function findTransferEvents(
  db: Sql,
  transferIds: readonly string[],
  limitOfEach: number,
): Promise<TransferEvent[]> {
  const rows = await db.run(selectEvents, [transferIds, limitOfEach]);
  return rows.map((row) => ({
    transferId: row.transfer_id,
    eventId: row.event_id,
    type: row.type,
    createdAt: row.created_at,
    delivery: toDelivery(row),
  }));
}

function toDelivery(row: Row<typeof selectEvents.columns>): TransferEvent['delivery'] {
  const { endpoint_id, url, status, attempt_count, next_attempt_at } = row;
  if (endpoint_id === null || url === null || status === null) return null;
  if (attempt_count === null || next_attempt_at === null) return null;
  return {
    endpointId: endpoint_id,
    url,
    isDisabled: row.is_disabled === true,
    status: status as 'pending' | 'delivered' | 'dead',
    attemptCount: attempt_count,
    nextAttemptAt: next_attempt_at,
    finishedAt: row.finished_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
  };
}
