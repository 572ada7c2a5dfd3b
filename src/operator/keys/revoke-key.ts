import { readApiKey } from '../../domain/api-key.ts';
import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import { revokeApiKey } from '../../store/access/api-keys.ts';
import type { Database } from '../../store/db/database.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { recordActions } from '../record-actions.ts';
import type { RevokedKeyView } from './views.ts';

/** The UUID behind a `key_…`. A secret key holds its id: that is named, the secret is not repeated. Errors: `INVALID_ARGUMENT`. */
export function readKeyId(keyId: string): string {
  const uuid = decodeId('key', keyId);
  if (uuid !== null) return uuid;
  const secret = readApiKey(keyId);
  if (secret !== null) {
    const id = encodeId('key', secret.keyUuid);
    throw new AppError(
      'INVALID_ARGUMENT',
      say`this is a secret key, not its id: run "${{ command: 'key revoke', args: [id] }}"`,
    );
  }
  const shown = keyId.startsWith('qt_') ? 'this' : clip(keyId);
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${shown} is not a key id: it is "key_" and 26 characters, as "${{ command: 'key list' }}" shows it`,
  );
}

/** Revokes a key (its UUID) at once and for ever. Errors: `NOT_FOUND`. */
export async function revokeKey(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { uuid }: { uuid: string },
): Promise<RevokedKeyView> {
  const keyId = encodeId('key', uuid);
  await db.transaction(async (tx) => {
    const key = await revokeApiKey(tx, uuid, now());
    if (key === null || !maySee(actor, key.projectId)) {
      throw new AppError(
        'NOT_FOUND',
        say`there is no key ${keyId}: "${{ command: 'key list' }}" shows those there are`,
      );
    }
    if (key.isNew) {
      const { projectId, name } = key;
      await recordActions(tx, actor, now(), [{ projectId, action: 'key.revoked', subject: keyId, detail: { name } }]);
    }
  });
  return { keyId, status: 'revoked' };
}
