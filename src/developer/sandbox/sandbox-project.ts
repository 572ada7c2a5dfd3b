import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { statement } from '../../store/db/statement.ts';

const bringForward = statement(
  'sandbox-invoice-bring-deadline-forward',
  { expiresAt: 'timestamptz?' },
  'select hurry_devnet_invoice($1, $2) as expires_at',
);

/**
 * Brings the deadline of a pending invoice forward, so that a trial of what comes after it need not wait for it. Returns the
 * deadline, or `null` where nothing was done: only invoices of a local network can be hurried.
 */
export async function bringDeadlineForward(db: Sql, checkoutToken: string, to: UnixMs): Promise<UnixMs | null> {
  const [row] = await db.run(bringForward, [checkoutToken, new Date(to)]);
  return row?.expiresAt ?? null;
}

const selectHit = statement(
  'sandbox-invoice-of-amount',
  { id: 'uuid' },
  `select i.id from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $2
   where a.network = 'devnet' and a.address = $1`,
);

/** The invoice (UUID) of a local network that waits, or waited, for exactly this amount at this address. */
export async function findInvoiceOfAmount(db: Sql, address: string, amountMicro: bigint): Promise<string | null> {
  const [row] = await db.run(selectHit, [address, amountMicro]);
  return row?.id ?? null;
}
