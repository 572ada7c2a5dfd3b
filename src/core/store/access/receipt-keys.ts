import { type ReceiptKey, receiptKeyId, receiptKeyOf, toJwk } from '../../domain/receipt/receipt.ts';
import type { UnixMs } from '../../domain/time.ts';
import {
  type Decrypted,
  decryptCurrent,
  type Encrypted,
  encrypt,
  type KeyRing,
  reencrypt,
} from '../../runtime/key-ring.ts';
import type { Database, Sql } from '../db/database.ts';
import { answerOf, commandOf, rowOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_RECEIPT_KEY } from '../db/sealed-tables.ts';
import { listColumns, type Row, sealed } from '../db/statement.ts';
import { findSecretsUnderOtherKeys, stopEncryption } from '../outbox/webhook-secrets.ts';

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
const insertReceiptKey = commandOf(
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
const reencryptReceiptKeyRow = commandOf(
  'receipt-key-reseal',
  'update receipt_keys set master_key_id = $2, sealed = $3 where id = $1 and retired_at is null',
  (id: string, { masterKeyId, sealed }: Encrypted) => [id, masterKeyId, sealed],
);

export type ReceiptKeyDeps = { db: Database; keyRing: KeyRing; now(): UnixMs; random(size: number): Uint8Array };

/**
 * Creates the first key for signing receipts, unless one exists. `refused` means that other secrets are encrypted with master keys that
 * this process doesn't have, so processes with those keys couldn't decrypt the new key.
 */
export async function ensureReceiptKey(deps: ReceiptKeyDeps): Promise<'there' | 'refused'> {
  if ((await findCurrentReceiptKey(deps.db)) !== null) return 'there';
  return deps.db.transaction(async (tx) => {
    // Serialises processes that start at the same time.
    await stopEncryption(tx);
    if ((await findCurrentReceiptKey(tx)) !== null) return 'there';
    await deps.keyRing.reload();
    const has = deps.keyRing.keys().map(({ id }) => id);
    if ((await findSecretsUnderOtherKeys(tx, has, deps.now())).length > 0) return 'refused';
    await storeNewReceiptKey(tx, deps);
    return 'there';
  });
}

/** Stores a new receipt key. The caller must hold the encryption lock and must have read the master keys since acquiring it. */
export async function storeNewReceiptKey(tx: Sql, { keyRing, now, random }: ReceiptKeyDeps): Promise<string> {
  const { id, publicKey, privateKey } = receiptKeyOf(random(PRIVATE_KEY_BYTES));
  const encrypted = encrypt(keyRing, privateKey, placeOf(id));
  await insertReceiptKey(tx, { id, publicKey: Buffer.from(publicKey), ...encrypted }, now());
  return id;
}

const PRIVATE_KEY_BYTES = 32;

/**
 * Encrypts the receipt signing key with the current master key. When this returns, the key is no longer encrypted with any other master key
 * in the ring. `lost` means that no master key can decrypt it, so it's left unchanged.
 */
export async function reencryptReceiptKey(db: Database, keyRing: KeyRing): Promise<'unchanged' | 'resealed' | 'lost'> {
  return db.transaction(async (tx) => {
    await stopEncryption(tx);
    const key = await findCurrentReceiptKey(tx);
    if (key === null || key.masterKeyId === keyRing.current().id) return 'unchanged';
    const sealed = reencrypt(keyRing, key, placeOf(key.id));
    if (sealed === null) return 'lost';
    await reencryptReceiptKeyRow(tx, key.id, sealed);
    return 'resealed';
  });
}

type OpenedReceiptKey = { kind: 'ok'; key: ReceiptKey } | Exclude<Decrypted, { kind: 'ok' }>;

/** Decrypts the stored key. If its master key is unknown, this reloads the master keys, because they may have been rotated. */
export async function openReceiptKey(keyRing: KeyRing, stored: CurrentReceiptKey): Promise<OpenedReceiptKey> {
  const opened = await decryptCurrent(keyRing, stored, placeOf(stored.id));
  if (opened.kind !== 'ok') return opened;
  const { id, publicKey } = stored;
  // The ciphertext is bound to the id, and the id to the public key. Deriving the public key from the private one instead would take a
  // fifteenth of the start-up time.
  if (receiptKeyId(toJwk(publicKey)) !== id) return { kind: 'damaged' };
  return { kind: 'ok', key: { id, publicKey, privateKey: opened.plain } };
}

/** Returns whether the current receipt key can be decrypted, or `null` if no key exists yet. */
export async function tryReceiptKey(
  db: Sql,
  keyRing: KeyRing,
): Promise<{ kind: OpenedReceiptKey['kind']; masterKeyId: string } | null> {
  const stored = await findCurrentReceiptKey(db);
  if (stored === null) return null;
  return { kind: (await openReceiptKey(keyRing, stored)).kind, masterKeyId: stored.masterKeyId };
}

/** The ciphertext is bound to this context, so it can't be decrypted in another row or column. */
function placeOf(id: string): string {
  return `receipt_keys.sealed:${id}`;
}
