import type { UnixMs } from '../../domain/time.ts';
import type { Encrypted } from '../../runtime/key-ring.ts';
import { answerOf, commandOf, rowOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_RECEIPT_KEY } from '../db/sealed-tables.ts';
import { listColumns, type Row, sealed } from '../db/statement.ts';

// A constraint guarantees that only the current key has `masterKeyId` and `sealed`.
const current = {
  id: 'text',
  publicKey: 'bytea',
  masterKeyId: 'text',
  sealed: 'bytea',
  seal: sealed(SEALED_RECEIPT_KEY),
} as const;

/** The key that currently signs receipts. `id` is the thumbprint of its public key; `sealed` is the encrypted private key. */
export type CurrentReceiptKey = Omit<Row<typeof current>, 'seal'>;

/** Stores the current key. The previous one must have been retired. */
export const insertReceiptKey = commandOf(
  'receipt-key-insert',
  `insert into receipt_keys (id, public_key, master_key_id, sealed, created_at, mac)
   values ($1, $2, $3, $4, $5, $6)`,
  ({ id, publicKey, masterKeyId, sealed }: CurrentReceiptKey, createdAt: UnixMs) => [
    id,
    publicKey,
    masterKeyId,
    sealed,
    new Date(createdAt),
    sealOf(SEALED_RECEIPT_KEY, { id, publicKey }),
  ],
);

/** Returns `null` before the first key is created. */
export const findCurrentReceiptKey = rowOf(
  'receipt-key-current',
  current,
  `select ${listColumns(current)} from receipt_keys where retired_at is null`,
  () => [],
);

const publicKeys = { publicKey: 'bytea', seal: sealed(SEALED_RECEIPT_KEY) } as const;

/** Returns up to a thousand public keys that were ever used for signing, newest first. */
export const readPublicReceiptKeys = answerOf(
  'receipt-keys-public',
  publicKeys,
  `select ${listColumns(publicKeys)} from receipt_keys order by created_at desc, id limit 1000`,
  () => [],
  (rows) => rows.map((row) => row.publicKey),
);

/** Replaces the current key's private part with the same key encrypted under another master key. */
export const reencryptReceiptKeyRow = commandOf(
  'receipt-key-reseal',
  'update receipt_keys set master_key_id = $2, sealed = $3 where id = $1 and retired_at is null',
  (id: string, { masterKeyId, sealed }: Encrypted) => [id, masterKeyId, sealed],
);

/** Retires a key: its private part is erased, its public part stays. */
export const retireReceiptKey = commandOf(
  'receipt-key-retire',
  'update receipt_keys set retired_at = $2, master_key_id = null, sealed = null where id = $1',
  (id: string, now: UnixMs) => [id, new Date(now)],
);
