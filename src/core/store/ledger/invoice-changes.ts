import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { hexSeal, type LeftOut } from '../db/seal.ts';
import { SEALED_PAID, SEALED_STATUS } from '../db/sealed-tables.ts';
import { jsonRows, listColumns, maybeHex, micro, type Row, statement, text } from '../db/statement.ts';
import { projected } from './invoices.ts';

/** The fields needed for a status change and its event. */
const changeable = {
  ...projected,
  projectId: 'uuid',
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  eventCount: 'int4',
  options: 'text?',
} as const;

export type ChangeableInvoice = Row<typeof changeable>;

const SELECT = `select ${listColumns(changeable, 'i.', { address: addressColumn('a') })}
   from invoices i join addresses a on a.id = i.address_id`;

const selectByIds = statement(
  'invoice-changeable-select',
  changeable,
  `${SELECT} where (i.project_id, i.id) in (select * from unnest($1::uuid[], $2::uuid[])) and i.network = $3`,
);

/** Returns invoices by (project, id). `leftOut` receives the rows that fail their integrity check, with their `id`. */
export async function findChangeable(
  tx: Sql,
  network: Network,
  invoices: readonly { projectId: string; invoiceId: string }[],
  leftOut?: LeftOut[],
): Promise<ChangeableInvoice[]> {
  if (invoices.length === 0) return [];
  const projectIds = invoices.map(({ projectId }) => projectId);
  return tx.run(selectByIds, [projectIds, invoices.map(({ invoiceId }) => invoiceId), network], leftOut);
}

/** The statement that finds invoices to expire. */
export const OVERDUE = 'invoice-overdue-select';

const selectOverdue = statement(
  OVERDUE,
  changeable,
  `${SELECT} where i.network = $1 and i.status = 'PENDING' and i.expires_at <= $2 and i.id <> all($4::uuid[])
   order by i.expires_at, i.id limit $3`,
);

/**
 * Returns pending invoices whose deadline isn't later than `clock`, earliest first, except the ones in `without`. `leftOut` is the same as
 * for `findChangeable`.
 */
export function findOverdue(
  tx: Sql,
  network: Network,
  { clock, limit, without = [] }: { clock: UnixMs; limit: number; without?: readonly string[] },
  leftOut?: LeftOut[],
): Promise<ChangeableInvoice[]> {
  return tx.run(selectOverdue, [network, new Date(clock), limit, without], leftOut);
}

const statusUpdate = {
  projectId: 'uuid',
  id: 'uuid',
  from: text<InvoiceStatus>(),
  to: text<InvoiceStatus>(),
  eventCount: 'int4',
  paidTransferId: 'uuid?',
} as const;

export type StatusUpdate = Row<typeof statusUpdate>;

const rows = jsonRows({ ...statusUpdate, paidMac: maybeHex });

const update = statement(
  'invoice-update-status',
  { id: 'uuid' },
  `update invoices i set status = t.to, event_count = i.event_count + 1, paid_transfer_id = t.paid_transfer_id,
     paid_mac = t.paid_mac
   from ${rows.table('$1')}
   where i.project_id = t.project_id and i.id = t.id and i.status = t.from and i.event_count = t.event_count
   returning i.id`,
);

/** Applies status changes to invoices that haven't changed since they were read, and counts their events. Throws if one has changed. */
export async function updateStatuses(tx: Sql, network: Network, updates: StatusUpdate[]): Promise<void> {
  const sealer = await tx.sealer();
  const paidMac = (row: StatusUpdate) => {
    const after = { ...row, network, status: row.to, eventCount: row.eventCount + 1 };
    return row.to === 'PAID' ? hexSeal(sealer, SEALED_PAID, after) : hexSeal(sealer, SEALED_STATUS, after);
  };
  const { length } = await tx.run(update, [rows.bind(updates.map((row) => ({ ...row, paidMac: paidMac(row) })))]);
  if (length !== updates.length) {
    throw new Error(
      `${updates.length - length} of ${updates.length} invoices changed while the watcher was updating them`,
    );
  }
}
