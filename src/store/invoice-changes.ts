import type { InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** What a status change and its event need to know of an invoice. */
export type ChangeableInvoice = {
  id: string;
  projectId: string;
  externalId: string;
  status: InvoiceStatus;
  checkoutToken: string;
  expiresAt: UnixMs;
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  address: string;
  eventCount: number;
};

const columns = {
  id: 'uuid',
  project_id: 'uuid',
  external_id: 'text',
  status: 'text',
  checkout_token: 'text',
  expires_at: 'timestamptz',
  requested_micro: 'int8',
  payable_micro: 'int8',
  address: 'address',
  event_count: 'int4',
} as const;

const SELECT = `select i.id, i.project_id, i.external_id, i.status, i.checkout_token, i.expires_at, i.requested_micro,
     i.payable_micro, ${addressColumn('a')} as address, i.event_count
   from invoices i join addresses a on a.id = i.address_id`;

const selectByIds = statement(
  'invoice-changeable-select',
  columns,
  `${SELECT} where (i.project_id, i.id) in (select * from unnest($1::uuid[], $2::uuid[])) and i.network = $3`,
);

/** The invoices by (project, id). */
export async function findChangeable(
  tx: Sql,
  network: Network,
  invoices: { projectId: string; invoiceId: string }[],
): Promise<ChangeableInvoice[]> {
  if (invoices.length === 0) return [];
  const rows = await tx.run(selectByIds, [
    invoices.map(({ projectId }) => projectId),
    invoices.map(({ invoiceId }) => invoiceId),
    network,
  ]);
  return rows.map(toChangeable);
}

const selectOverdue = statement(
  'invoice-overdue-select',
  columns,
  `${SELECT} where i.network = $1 and i.status = 'PENDING' and i.expires_at <= $2 order by i.expires_at, i.id limit $3`,
);

/** Pending invoices whose deadline is at or before `clock`, the earliest first. */
export async function findOverdue(
  tx: Sql,
  network: Network,
  clock: UnixMs,
  limit: number,
): Promise<ChangeableInvoice[]> {
  return (await tx.run(selectOverdue, [network, new Date(clock), limit])).map(toChangeable);
}

function toChangeable(row: Awaited<ReturnType<typeof runSelect>>[number]): ChangeableInvoice {
  return {
    id: row.id,
    projectId: row.project_id,
    externalId: row.external_id,
    status: row.status as InvoiceStatus,
    checkoutToken: row.checkout_token,
    expiresAt: row.expires_at,
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    address: row.address,
    eventCount: row.event_count,
  };
}

function runSelect(tx: Sql) {
  return tx.run(selectByIds, []);
}

export type StatusUpdate = {
  projectId: string;
  id: string;
  from: InvoiceStatus;
  to: InvoiceStatus;
  eventCount: number;
  paidTransferId: string | null;
};

const update = statement(
  'invoice-update-status',
  { id: 'uuid' },
  `update invoices i set status = u.to, event_count = i.event_count + 1, paid_transfer_id = u.paid_transfer_id
   from (select (u->>'projectId')::uuid as project_id, (u->>'id')::uuid as id, u->>'from' as from, u->>'to' as to,
       (u->>'eventCount')::int4 as event_count, (u->>'paidTransferId')::uuid as paid_transfer_id
     from jsonb_array_elements($1::text::jsonb) u) u
   where i.project_id = u.project_id and i.id = u.id and i.status = u.from and i.event_count = u.event_count
   returning i.id`,
);

/** Applies status changes to invoices that still are as they were read, and counts their event. Throws if one is not. */
export async function updateStatuses(tx: Sql, updates: StatusUpdate[]): Promise<void> {
  const rows = await tx.run(update, [JSON.stringify(updates)]);
  if (rows.length !== updates.length) {
    throw new Error(`${updates.length - rows.length} of ${updates.length} invoices changed under the watcher's feet`);
  }
}
