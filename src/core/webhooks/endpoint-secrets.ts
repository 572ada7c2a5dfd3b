import { uuidV7 } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import { type Decrypted, decrypt, encrypt, type KeyRing, reencrypt } from '../runtime/key-ring.ts';
import type { Sql } from '../store/db/database.ts';
import {
  findNewestSecrets,
  insertWebhookSecret,
  joinEncryption,
  reencryptWebhookSecret,
  type StoredSecret,
} from '../store/outbox/webhook-secrets.ts';
import { formatSecret, parseSecret } from './sign.ts';

/** `endsAt` is `null` for the current secret. */
export type SigningSecret = { secret: string; endsAt: UnixMs | null };

/**
 * Encrypts and stores an endpoint's current secret. The end of the endpoint's previous secret must already be set. Throws a RangeError for
 * a malformed secret; the message doesn't contain the secret.
 */
export async function addEndpointSecret(tx: Sql, ring: KeyRing, secret: NewSecret): Promise<void> {
  // Acquire the lock and reload the keys, so that no rotation drops a key that is about to be used.
  await joinEncryption(tx);
  await ring.reload();
  await storeEndpointSecret(tx, ring, secret);
}

/** Like `addEndpointSecret`, for a caller that already holds the encryption lock and has reloaded the keys since acquiring it. */
export async function storeEndpointSecret(
  tx: Sql,
  ring: KeyRing,
  { endpointId, secret, now, random }: NewSecret,
): Promise<void> {
  const id = uuidV7(now, random(10));
  const sealed = encrypt(ring, parseSecret(secret), placeOf({ id, endpointId }));
  await insertWebhookSecret(tx, { id, endpointId, ...sealed, createdAt: now });
}

/** Ids are UUIDs. `secret` is `whsec_…`. */
type NewSecret = { endpointId: string; secret: string; now: UnixMs; random: (size: number) => Uint8Array };

type OpenedSecret = { kind: 'ok'; secret: string } | Exclude<Decrypted, { kind: 'ok' }>;

/**
 * Decrypts stored secrets and returns one result per row, in order. If a key is unknown, reloads the keys once, because they may have been
 * rotated in the meantime.
 */
export async function openEndpointSecrets(ring: KeyRing, rows: readonly StoredSecret[]): Promise<OpenedSecret[]> {
  const opened = rows.map((row) => openEndpointSecret(ring, row));
  if (opened.every(({ kind }) => kind !== 'unknown-key')) return opened;
  // If the file can't be read, the key remains unknown, but the other secrets can still be decrypted.
  await ring.reload().catch(() => undefined);
  return rows.map((row) => openEndpointSecret(ring, row));
}

/**
 * Returns an endpoint's newest secrets that can be decrypted, including expired ones, because they show which secret a receiver still uses.
 */
export async function openNewestSecrets(
  { db, keyRing }: { db: Sql; keyRing: KeyRing },
  endpointId: string,
): Promise<SigningSecret[]> {
  const rows = await findNewestSecrets(db, endpointId);
  const opened = await openEndpointSecrets(keyRing, rows);
  return rows.flatMap(({ endsAt }, index) => {
    const each = opened[index];
    return each?.kind === 'ok' ? [{ secret: each.secret, endsAt }] : [];
  });
}

/** Decrypts a stored secret to `whsec_…`. */
function openEndpointSecret(ring: KeyRing, row: StoredSecret): OpenedSecret {
  const opened = decrypt(ring, row, placeOf(row));
  return opened.kind === 'ok' ? { kind: 'ok', secret: formatSecret(opened.plain) } : opened;
}

/** Encrypts a stored secret with the ring's current key. `false` means that the secret couldn't be decrypted and hasn't changed. */
export async function reencryptEndpointSecret(tx: Sql, ring: KeyRing, row: StoredSecret): Promise<boolean> {
  const sealed = reencrypt(ring, row, placeOf(row));
  if (sealed !== null) await reencryptWebhookSecret(tx, row.id, sealed);
  return sealed !== null;
}

/** The ciphertext is bound to this context, so it can't be decrypted in another row, column or endpoint. */
function placeOf({ id, endpointId }: { id: string; endpointId: string }): string {
  return `webhook_secrets.sealed:${id}:${endpointId}`;
}
