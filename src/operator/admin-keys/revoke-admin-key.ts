import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import { revokeAdminKey as revoke } from '../../store/access/admin-keys.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { recordActions } from '../record-actions.ts';
import type { RevokedAdminKeyView } from './views.ts';

/** The UUID behind an `adm_…`. A secret key is not repeated. Errors: `INVALID_ARGUMENT`. */
export function readAdminKeyId(text: string): string {
  const uuid = decodeId('adm', text);
  if (uuid !== null) return uuid;
  const shown = text.startsWith('qa_') ? 'this' : clip(text);
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${shown} is not the id of an admin key: it is "adm_" and 26 characters, as "${{ command: 'admin-key list' }}" shows it`,
  );
}

/** Revokes a key (its UUID) at once and for ever. Errors: `NOT_FOUND`. */
export async function revokeAdminKey(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { uuid }: { uuid: string },
): Promise<RevokedAdminKeyView> {
  const adminKeyId = encodeId('adm', uuid);
  const revoked = await db.transaction(async (tx) => {
    const key = await revoke(tx, uuid, now());
    if (key?.isNew === true) {
      const detail = { name: key.name };
      await recordActions(tx, actor, now(), [
        { projectId: null, action: 'admin-key.revoked', subject: adminKeyId, detail },
      ]);
    }
    return key;
  });
  if (revoked !== null) return { adminKeyId, status: 'revoked' };
  throw new AppError(
    'NOT_FOUND',
    say`there is no admin key ${adminKeyId}: "${{ command: 'admin-key list' }}" shows those there are`,
  );
}
