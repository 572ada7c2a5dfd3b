import { formatFields } from '../../operator/command-text.ts';
import { type RotatedMasterKeyView, rotateMasterKey } from '../../operator/subjects/master-keys.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

export async function printRotatedKey(terminal: Terminal): Promise<Result> {
  const data = await withDatabase(
    terminal,
    (deps) => rotateMasterKey({ ...deps, warn: terminal.note }, cliActor(terminal)),
    // It gives rows another MAC.
    { mayCreate: false, mayMigrate: false, asOwner: true },
  );
  const { source, keyId, isNew, resealed, rows, dropped, droppable, needed } = data;
  const { lostPeople = [], lostChannels = [] } = data;
  const lost = [
    ...data.lostEndpoints,
    ...(data.isReceiptKeyLost ? ['the signing key of receipts'] : []),
    ...lostPeople,
    ...lostChannels,
  ];
  const next = nextOf(data);
  return {
    data,
    text: formatFields([
      ['keys from', source],
      ['key', `${keyId}${isNew ? ' (new)' : ''}`],
      ['secrets sealed anew', String(resealed)],
      ['rows sealed anew', String(rows)],
      ['dropped', dropped.join(', ') || null],
      ['can be dropped', droppable.join(', ') || null],
      ['needed for rows', needed.map((key) => `${key.keyId} (${key.rows})`).join(', ') || null],
      ['cannot be opened', lost.join(', ') || null],
    ]),
    ...(next === null ? {} : { next }),
    exitCode: lost.length === 0 ? EXIT.ok : EXIT.failed,
  };
}

function nextOf({
  source,
  isNew,
  droppable,
  needed,
  lostEndpoints,
  isReceiptKeyLost,
  lostPeople,
  lostChannels,
}: RotatedMasterKeyView): string | null {
  if (lostEndpoints.length > 0) {
    return 'these endpoints have secrets that no key opens: add their key, or if it is lost for ever, give each a new secret with "quittance webhook rotate --key-is-lost"';
  }
  if (isReceiptKeyLost) {
    return 'no key opens the signing key of receipts: add its key, or if it is lost for ever, make a new signing key with "quittance receipt rotate --key-is-lost"';
  }
  if (lostPeople !== undefined) {
    return 'no key opens what the codes of these people come of: add its key, or if it is lost for ever, let them choose anew what they sign in with by "quittance user reset"';
  }
  if (lostChannels !== undefined) {
    return 'no key opens where these notification channels lead: add its key, or if it is lost for ever, remove each with "quittance notify remove" and add it anew';
  }
  if (needed.length > 0) {
    return source === 'QUITTANCE_MASTER_KEY'
      ? 'the former key is needed for rows, which only the owner of the tables seals anew: run this again with DATABASE_OWNER_URL'
      : 'the former key is needed for rows, which only the owner of the tables seals anew: stop the service, run this again, and start it';
  }
  if (droppable.length > 0) {
    return 'once every process has this key first, run this again, and then take the other keys out of QUITTANCE_MASTER_KEY';
  }
  if (source === 'QUITTANCE_MASTER_KEY') return null;
  return isNew
    ? 'backups of the database from before need the former file; make a new backup of both'
    : 'a rotation that was cut off is finished now; run this again for another new key';
}
