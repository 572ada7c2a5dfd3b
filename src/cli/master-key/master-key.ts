import { formatFields } from '../../faces/operator/command-words.ts';
import { type RotatedMasterKeyView, rotateMasterKey } from '../../faces/operator/subjects/master-keys.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';

import { withDatabase } from '../terminal/with-database.ts';

export async function printRotatedKey(terminal: Terminal): Promise<Result> {
  const data = await withDatabase(
    terminal,
    (deps) => rotateMasterKey({ ...deps, warn: terminal.note }, cliActor(terminal)),
    // Only the owner may give rows another MAC.
    { asOwner: true },
  );
  const { source, keyId, isNew, resealed, rows, dropped, droppable, needed } = data;
  const receiptKey = data.isReceiptKeyLost ? ['the receipt signing key'] : [];
  const lost = [...data.lostEndpoints, ...receiptKey, ...(data.lostPeople ?? []), ...(data.lostChannels ?? [])];
  return {
    data,
    text: formatFields([
      ['keys from', source],
      ['key', `${keyId}${isNew ? ' (new)' : ''}`],
      ['secrets re-encrypted', String(resealed)],
      ['rows resealed', String(rows)],
      ['removed', dropped.join(', ') || null],
      ['can be removed', droppable.join(', ') || null],
      ['needed for rows', needed.map((key) => `${key.keyId} (${key.rows})`).join(', ') || null],
      ['cannot be opened', lost.join(', ') || null],
    ]),
    next: nextOf(data),
    exitCode: lost.length === 0 ? EXIT.ok : EXIT.failed,
  };
}

function nextOf({ source, isNew, droppable, needed, ...lost }: RotatedMasterKeyView): string | null {
  if (lost.lostEndpoints.length > 0) {
    return 'no configured key decrypts the secrets for these endpoints: add their key or, if it is lost permanently, give each endpoint a new secret with "quittance webhook rotate --key-is-lost"';
  }
  if (lost.isReceiptKeyLost) {
    return 'no configured key decrypts the receipt signing key: add its key or, if it is lost permanently, create a new signing key with "quittance receipt rotate --key-is-lost"';
  }
  if (lost.lostPeople !== undefined) {
    return 'no configured key decrypts the sign-in secrets for these users: add their key or, if it is lost permanently, reset their sign-in with "quittance user reset"';
  }
  if (lost.lostChannels !== undefined) {
    return 'no configured key decrypts the targets for these notification channels: add their key or, if it is lost permanently, remove each with "quittance notify remove" and add it again';
  }
  if (needed.length > 0) {
    return source === 'QUITTANCE_MASTER_KEY'
      ? 'rows still need the previous key, and only the table owner can reseal them: run this again with DATABASE_OWNER_URL'
      : 'rows still need the previous key, and only the table owner can reseal them: stop the service, run this again, and start the service';
  }
  if (droppable.length > 0) {
    return 'when every process lists this key first, run this again, and then remove the other keys from QUITTANCE_MASTER_KEY';
  }
  if (source === 'QUITTANCE_MASTER_KEY') return null;
  return isNew
    ? 'earlier database backups need the previous key file; back up the database and the key file again'
    : 'an interrupted rotation is now finished; to rotate to a new key, run this again';
}
