import { type Decrypted, decryptCurrent, encrypt, type KeyRing, reencrypt } from '../../core/runtime/key-ring.ts';
import type { Database, Sql } from '../../core/store/db/database.ts';
import {
  type ChannelKind,
  type ChannelSettings,
  insertNotifyChannel,
  lockTargetsUnderOtherKeys,
  reencryptTargetRow,
  type SealedTarget,
} from '../../core/store/outbox/notify-channels.ts';
import { joinEncryption, reencryptInBatches, stopEncryption } from '../../core/store/outbox/webhook-secrets.ts';

/** Whether the target may be in the operator's own network, where it also works without TLS. */
type Own = { isOwnNetwork: boolean };
export type MailTarget = Own & {
  kind: 'email';
  host: string;
  port: number;
  /** Uses TLS from the first byte, instead of STARTTLS. */
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
/** A channel's address, including its passwords and tokens. */
export type Target = MailTarget | HttpTarget;

/** Encrypts the target and stores it with its channel. Returns `false` if the name is already in use. */
export async function storeChannel(
  tx: Sql,
  ring: KeyRing,
  { channel, target }: { channel: ChannelSettings; target: Target },
): Promise<boolean> {
  // Take the lock and reload the keys so that no rotation drops a key that is about to be used.
  await joinEncryption(tx);
  await ring.reload();
  return insertNotifyChannel(tx, channel, encrypt(ring, Buffer.from(JSON.stringify(target)), placeOf(channel)));
}

export type OpenedTarget = { kind: 'ok'; target: Target } | Exclude<Decrypted, { kind: 'ok' }>;

/** Decrypts a stored target. If its key is unknown, reloads the keys, because they may have been rotated. */
export async function openTarget(ring: KeyRing, row: SealedTarget): Promise<OpenedTarget> {
  const opened = await decryptCurrent(ring, row, placeOf(row));
  return opened.kind === 'ok' ? { kind: 'ok', target: JSON.parse(opened.plain.toString()) as Target } : opened;
}

/**
 * Encrypts every target with the current master key, in batches of 500. `lost` holds the channels whose target can't be decrypted with any
 * key. Their rows don't change, and the operator must add these channels again.
 */
export function reencryptTargets(db: Database, ring: KeyRing) {
  const lock = async (tx: Sql, after: string) => {
    await stopEncryption(tx);
    return lockTargetsUnderOtherKeys(tx, ring.current().id, after);
  };
  const reencryptRow = async (tx: Sql, row: SealedTarget) => {
    const sealed = reencrypt(ring, row, placeOf(row));
    if (sealed !== null) await reencryptTargetRow(tx, row.id, sealed);
    return sealed !== null;
  };
  return reencryptInBatches((work) => db.transaction(work), lock, reencryptRow);
}

/** The ciphertext is bound to this context, so it can't be decrypted in another channel's row. */
function placeOf({ id, kind }: { id: string; kind: ChannelKind }): string {
  return `notify_channels.sealed:${id}:${kind}`;
}
