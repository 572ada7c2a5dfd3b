import { NIL_UUID } from '../domain/ids.ts';
import { type Decrypted, decrypt, encrypt, type KeyRing } from '../runtime/key-ring.ts';
import type { Database, Sql } from '../store/db/database.ts';
import {
  type ChannelKind,
  type ChannelSettings,
  insertNotifyChannel,
  lockTargetsUnderOtherKeys,
  reencryptTargetRow,
  type SealedTarget,
} from '../store/outbox/notify-channels.ts';
import { joinEncryption, stopEncryption } from '../store/outbox/webhook-secrets.ts';

/** What every target says: whether it may be in the operator's own network, and speak without TLS there. */
type Own = { isOwnNetwork: boolean };
export type MailTarget = Own & {
  kind: 'email';
  host: string;
  port: number;
  /** TLS from the first byte, and not by STARTTLS. */
  isTls: boolean;
  login: { user: string; password: string } | null;
  from: string;
  to: readonly string[];
};
export type HttpTarget = Own &
  (
    | { kind: 'telegram'; url: string; token: string; chat: string }
    | { kind: 'slack' | 'discord'; url: string }
    | { kind: 'ntfy'; url: string; topic: string; token: string | null }
    | { kind: 'webhook'; url: string; secret: string }
  );
/** Where a channel leads, with its passwords and tokens. */
export type Target = MailTarget | HttpTarget;

/** Stores a channel with its target encrypted. `false`: there is one of this name. */
export async function storeChannel(
  tx: Sql,
  ring: KeyRing,
  { channel, target }: { channel: ChannelSettings; target: Target },
): Promise<boolean> {
  // Under the lock and with the keys as they are now, so that no rotation drops a key that this is about to use.
  await joinEncryption(tx);
  await ring.reload();
  return insertNotifyChannel(tx, channel, encrypt(ring, Buffer.from(JSON.stringify(target)), placeOf(channel)));
}

export type OpenedTarget = { kind: 'ok'; target: Target } | Exclude<Decrypted, { kind: 'ok' }>;

/** Opens a stored target. Where its key is unknown the keys are read again: they may have been rotated. */
export async function openTarget(ring: KeyRing, row: SealedTarget): Promise<OpenedTarget> {
  let opened = decrypt(ring, row, placeOf(row));
  if (opened.kind === 'unknown-key') {
    // A file that cannot be read now leaves the key unknown.
    await ring.reload().catch(() => undefined);
    opened = decrypt(ring, row, placeOf(row));
  }
  return opened.kind === 'ok' ? { kind: 'ok', target: JSON.parse(opened.plain.toString()) as Target } : opened;
}

/**
 * Encrypts every target under the current master key, in batches of 500. `lost`: the ids of channels whose target no key opens; they stay
 * as they are, and are to be added anew.
 */
export async function reencryptTargets(db: Database, ring: KeyRing): Promise<{ resealed: number; lost: string[] }> {
  const done = { resealed: 0, lost: [] as string[] };
  for (let after: string | null = NIL_UUID; after !== null; ) {
    const from: string = after;
    const batch = await db.transaction((tx) => reencryptBatch(tx, ring, from));
    done.resealed += batch.resealed;
    done.lost.push(...batch.lost);
    after = batch.last;
  }
  return done;
}

async function reencryptBatch(tx: Sql, ring: KeyRing, after: string) {
  await stopEncryption(tx);
  const rows = await lockTargetsUnderOtherKeys(tx, ring.current().id, after);
  const lost: string[] = [];
  for (const row of rows) {
    const opened = decrypt(ring, row, placeOf(row));
    if (opened.kind === 'ok') await reencryptTargetRow(tx, row.id, encrypt(ring, opened.plain, placeOf(row)));
    else lost.push(row.id);
  }
  return { resealed: rows.length - lost.length, lost, last: rows.at(-1)?.id ?? null };
}

/** Bound to the ciphertext: in the row of another channel it does not open. */
function placeOf({ id, kind }: { id: string; kind: ChannelKind }): string {
  return `notify_channels.sealed:${id}:${kind}`;
}
