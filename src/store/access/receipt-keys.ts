import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { statement } from '../db/statement.ts';

/** The key that signs receipts now. `id`: the thumbprint of its public key; `sealed`: the private one. */
export type CurrentReceiptKey = { id: string; publicKey: Buffer; masterKeyId: string; sealed: Buffer };

const insert = statement(
  'receipt-key-insert',
  {},
  `insert into receipt_keys (id, public_key, master_key_id, sealed, created_at) values ($1, $2, $3, $4, $5)`,
);

/** Stores the current key. The one before must have been retired. */
export async function insertReceiptKey(tx: Sql, key: CurrentReceiptKey & { createdAt: UnixMs }): Promise<void> {
  await tx.run(insert, [key.id, key.publicKey, key.masterKeyId, key.sealed, new Date(key.createdAt)]);
}

const selectCurrent = statement(
  'receipt-key-current',
  { id: 'text', publicKey: 'bytea', masterKeyId: 'text?', sealed: 'bytea?' },
  `select id, public_key, master_key_id, sealed from receipt_keys where retired_at is null`,
);

/** `null` before the first one is made. */
export async function findCurrentReceiptKey(db: Sql): Promise<CurrentReceiptKey | null> {
  const [row] = await db.run(selectCurrent, []);
  // A current key has both, by a constraint.
  if (row === undefined || row.masterKeyId === null || row.sealed === null) return null;
  return { id: row.id, publicKey: row.publicKey, masterKeyId: row.masterKeyId, sealed: row.sealed };
}

const selectPublic = statement(
  'receipt-keys-public',
  { publicKey: 'bytea' },
  'select public_key from receipt_keys order by created_at desc, id limit 1000',
);

/** The public keys that ever signed, newest first: the first thousand. */
export async function readPublicReceiptKeys(db: Sql): Promise<Buffer[]> {
  return (await db.run(selectPublic, [])).map((row) => row.publicKey);
}

const updateSealed = statement(
  'receipt-key-reseal',
  {},
  'update receipt_keys set master_key_id = $2, sealed = $3 where id = $1 and retired_at is null',
);

/** Replaces the current key's private part by the same one sealed under another master key. */
export async function reencryptReceiptKeyRow(tx: Sql, id: string, masterKeyId: string, sealed: Buffer): Promise<void> {
  await tx.run(updateSealed, [id, masterKeyId, sealed]);
}

const retire = statement(
  'receipt-key-retire',
  {},
  'update receipt_keys set retired_at = $2, master_key_id = null, sealed = null where id = $1',
);

/** Lets a key sign no more: its private part is erased, its public one stays. */
export async function retireReceiptKey(tx: Sql, id: string, now: UnixMs): Promise<void> {
  await tx.run(retire, [id, new Date(now)]);
}
