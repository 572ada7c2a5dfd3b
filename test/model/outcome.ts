import type pg from 'pg';
import { decodeId } from '../../src/core/domain/ids.ts';
import type { Outcome } from './model.ts';

/** The outcome of an operation without an answer. */
export const NOTHING: Outcome = {
  ...{ status: 0, code: null, invoice: null, isReplayed: false, conflict: null, reserved: null, events: null },
  ...{ hasMore: false, page: null, withdrawnAt: null, endpoints: null },
};

/** Returns the UUID of an invoice id. */
export function uuidOf(invoiceId: string): string {
  const uuid = decodeId('inv', invoiceId);
  if (uuid === null) throw new Error(`${invoiceId} is no id of an invoice`);
  return uuid;
}

/** Reads an invoice from the database. */
export async function findReserved(database: pg.Pool, invoiceId: string) {
  const { rows } = await database.query(
    'select a.address, i.payable_micro, i.external_id, i.created_at, i.expires_at from invoices i join addresses a on a.id = i.address_id where i.id = $1',
    [uuidOf(invoiceId)],
  );
  const { address, payable_micro, external_id, created_at, expires_at } = rows[0];
  return {
    ...{ address: String(address), payableMicro: BigInt(payable_micro), externalId: String(external_id) },
    createdMs: created_at.getTime() as number,
    expiresAt: expires_at.toISOString() as string,
  };
}
