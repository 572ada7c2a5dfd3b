import { uuidV7 } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import { type Decrypted, decrypt, encrypt, type KeyRing } from '../runtime/key-ring.ts';
import type { Sql } from '../store/db/database.ts';
import {
  findNewestSecrets,
  insertWebhookSecret,
  joinEncryption,
  reencryptWebhookSecret,
  type StoredSecret,
} from '../store/outbox/webhook-secrets.ts';
import { formatSecret, parseSecret } from './sign.ts';

/** `endsAt` `null`: the current one. */
export type SigningSecret = { secret: string; endsAt: UnixMs | null };

/**
 * Seals and stores the current secret of an endpoint; the one before must have been given its end. Throws a RangeError for a
 * malformed secret, without it in the message.
 */
export async function addEndpointSecret(tx: Sql, ring: KeyRing, secret: NewSecret): Promise<void> {
  // Under the lock and with the keys as they are now, so that no rotation drops a key that this is about to use.
  await joinEncryption(tx);
  await ring.reload();
  await storeEndpointSecret(tx, ring, secret);
}

/** `addEndpointSecret` for a caller who holds the lock of sealing and has read the keys since. */
export async function storeEndpointSecret(
  tx: Sql,
  ring: KeyRing,
  { endpointId, secret, now, random }: NewSecret,
): Promise<void> {
  const id = uuidV7(now, random(10));
  const sealed = encrypt(ring, parseSecret(secret), placeOf({ id, endpointId }));
  await insertWebhookSecret(tx, { id, endpointId, ...sealed, createdAt: now });
}

/** Ids are UUIDs; `secret` is `whsec_…`. */
type NewSecret = { endpointId: string; secret: string; now: UnixMs; random: (size: number) => Uint8Array };

type OpenedSecret = { kind: 'ok'; secret: string } | Exclude<Decrypted, { kind: 'ok' }>;

/**
 * Opens stored secrets, one result a row in their order. Where a key is unknown, the keys are read again once: they may have been
 * rotated since this process read them.
 */
export async function openEndpointSecrets(ring: KeyRing, rows: readonly StoredSecret[]): Promise<OpenedSecret[]> {
  const opened = rows.map((row) => openEndpointSecret(ring, row));
  if (opened.every(({ kind }) => kind !== 'unknown-key')) return opened;
  // A file that cannot be read now is no reason to drop what can be opened: the key stays unknown.
  await ring.reload().catch(() => undefined);
  return rows.map((row) => openEndpointSecret(ring, row));
}

/** The newest secrets of an endpoint that can be opened. Those that have ended tell which one a receiver still holds. */
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

/** Opens a stored secret to `whsec_…`. */
function openEndpointSecret(ring: KeyRing, row: StoredSecret): OpenedSecret {
  const opened = decrypt(ring, row, placeOf(row));
  return opened.kind === 'ok' ? { kind: 'ok', secret: formatSecret(opened.plain) } : opened;
}

/** Seals a stored secret under the current key of the ring. Anything but `ok`: it could not be opened, and is as it was. */
export async function reencryptEndpointSecret(tx: Sql, ring: KeyRing, row: StoredSecret): Promise<Decrypted['kind']> {
  const opened = decrypt(ring, row, placeOf(row));
  if (opened.kind !== 'ok') return opened.kind;
  await reencryptWebhookSecret(tx, row.id, encrypt(ring, opened.plain, placeOf(row)));
  return 'ok';
}

/** Bound to the ciphertext: moved to another row, column or endpoint it does not open. */
function placeOf({ id, endpointId }: { id: string; endpointId: string }): string {
  return `webhook_secrets.sealed:${id}:${endpointId}`;
}
