import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Logger } from '../../runtime/log.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { readVersion } from '../../runtime/version.ts';
import type { Connection, Database } from '../../store/db/database.ts';
import { commandActor } from '../actor.ts';
import type { BackupDirectory, KeptBackup } from './backup-directory.ts';
import { createAgePair, pairOfMasterKey } from './backup-encryption.ts';
import { createBackup } from './create-backup.ts';
import { withScratch } from './scratch.ts';
import { verifyBackup } from './verify-backup.ts';

export type MakeDeps = {
  db: Database;
  connection: Connection;
  keyRing: KeyRing;
  needsOwnUser: boolean;
  /** The machine, for the audit log. */
  host: string;
  log: Logger;
  now(): UnixMs;
};

/**
 * Makes an encrypted backup, restores it to a scratch database, compares it with itself and with the running ledger, and only then gives it
 * the name of a backup. Without `recipients` the master key opens it. With them a further key does, which is in memory alone and gone when
 * this ends: so it can be verified here, and nobody can read it here later. `signal` ends it. Any failure throws, and the kept ones stay.
 */
export async function makeVerifiedBackup(
  { db, connection, keyRing, needsOwnUser, host, log, now }: MakeDeps,
  directory: BackupDirectory,
  { recipients, signal }: { recipients: readonly string[]; signal: AbortSignal },
): Promise<KeptBackup & { bytes: number }> {
  const actor = commandActor('scheduled backup', host);
  const own = recipients.length === 0 ? await pairOfMasterKey(keyRing.current()) : await createAgePair();
  const path = await directory.begin(now());
  const source = {
    db,
    kind: 'external',
    isStartedHere: false,
    connection,
    now,
    keyRing,
    release: readVersion(),
  } as const;
  const encryption = { path, recipients: [...recipients, own.recipient], isFinal: false, signal };
  const { bytes } = await createBackup(source, actor, encryption);
  await directory.removeOthers(path);
  const { view } = await verifyBackup(
    {
      ...{ keyRing, identities: [own.identity], hooks: {}, now },
      follow: async () => 'the chain is not read for it',
      onRead: () => undefined,
      withScratch: (work) =>
        withScratch({ log, needsOwnUser }, (scratch) => unlessAborted(AbortSignal.any([signal]), work(scratch))),
      withRunning: (work) => work({ db }),
      describeError: reasonOf,
    },
    actor,
    { path, takesUnauthenticated: false, readsChain: false },
  );
  if (!view.good) throw new Error(`the backup ${path} is not good: ${describeFault(view)}`);
  return { ...(await directory.keep(path)), bytes };
}

type View = Awaited<ReturnType<typeof verifyBackup>>['view'];

function describeFault(view: View): string {
  if (!('differences' in view)) return String(view.reason);
  if (view.auditProblem !== null) return view.auditProblem;
  return view.differences.length > 0 ? 'its sums are not those of its rows' : 'the running ledger has less than it';
}

/** What goes on meanwhile fails by itself when its database is gone. */
function unlessAborted<Output>(signal: AbortSignal, work: Promise<Output>): Promise<Output> {
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
  return Promise.race([work, stopped]);
}
