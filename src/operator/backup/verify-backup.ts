import { AppError } from '../../domain/errors.ts';
import { isNetwork } from '../../domain/network.ts';
import type { Database } from '../../store/db/database.ts';
import { findLedgerIdentity, takeLedger } from '../../store/db/ledger-identity.ts';
import type { MigrationHooks } from '../../store/db/migrate.ts';
import type { Actor } from '../actor.ts';
import { verifyAudit } from '../audit/verify-audit.ts';
import type { BackupHeader } from './backup-format.ts';
import type { Authenticity } from './backup-mac.ts';
import { describeEncryption, type Opening } from './backup-read.ts';
import { type LedgerTotal, sumLedger } from './backup-totals.ts';
import { findDifferences, findLosses, ofHeader } from './compare-totals.ts';
import { loadBackup } from './load-backup.ts';
import { type FollowDeps, rescanScratch } from './rescan-scratch.ts';
import type { Scratch } from './scratch.ts';
import type { RefusedBackupView, Rescanned, VerifiedBackupView } from './views.ts';

type Deps = Required<Opening> &
  FollowDeps & {
    hooks: MigrationHooks;
    withScratch<Output>(work: (scratch: Scratch) => Promise<Output>): Promise<Output>;
    /** Works with the database that runs here, and fails where there is none. */
    withRunning<Output>(work: (database: { db: Database }) => Promise<Output>): Promise<Output>;
    describeError(error: unknown): string;
  };
type Input = { path: string; takesUnauthenticated: boolean; readsChain: boolean };

/** `authenticity` is `null` for a file of which nothing further was examined. */
type Verified =
  | { view: VerifiedBackupView; authenticity: Authenticity }
  | { view: RefusedBackupView; authenticity: null };

/** The `authenticity` of a refused file, by error code. */
const REFUSED: Readonly<Record<string, string>> = {
  BACKUP_TAMPERED: 'tampered',
  BACKUP_UNAUTHENTICATED: 'not-authenticated',
  BACKUP_ENCRYPTED: 'not-read',
};

/**
 * Restores a backup to a scratch database, compares its sums with what the backup says and with the running ledger, and reads the
 * chain since. Leaves nothing behind and changes nothing.
 */
export async function verifyBackup(deps: Deps, actor: Actor, input: Input): Promise<Verified> {
  try {
    return await deps.withScratch((scratch) => verifyIn(scratch, deps, actor, input));
  } catch (error) {
    const authenticity = error instanceof AppError ? REFUSED[error.code] : undefined;
    if (authenticity === undefined || !(error instanceof AppError)) throw error;
    const recipients = (await describeEncryption(input.path))?.recipients ?? 0;
    const view = { file: input.path, good: false, authenticity, reason: error.text, recipients } as const;
    return { view, authenticity: null };
  }
}

async function verifyIn(scratch: Scratch, deps: Deps, actor: Actor, { path, takesUnauthenticated, readsChain }: Input) {
  const { header, authenticity, rowCounts } = await loadBackup({
    ...{ connection: scratch.owner, path, takesUnauthenticated, keyRing: deps.keyRing, identities: deps.identities },
    // No key is made for a database that is thrown away.
    hooks: deps.keyRing === null ? {} : deps.hooks,
    finish: async (tx, { ledger }) => {
      if (ledger !== null) await takeLedger(tx, ledger, { isAnew: true });
    },
  });
  const db = scratch.open();
  const restored = await sumLedger(db);
  const differences = findDifferences(ofHeader(header.totals), restored);
  const written = await verifyAudit({ db }, actor, { kept: null });
  const { running, chain, auditProblem } = await besideRunning(deps, header, async (found, reason) => {
    const losses = found && findLosses(ofHeader(header.totals), await sumLedger(found));
    const compared =
      losses === null ? ({ compared: false, reason: reason ?? '' } as const) : ({ compared: true, losses } as const);
    const log = found && (await verifyAudit({ db: found }, actor, { kept: written.head }));
    const auditProblem = log?.problem ?? null;
    if (!readsChain) return { running: compared, chain: null, auditProblem };
    const chain: Rescanned[] = [];
    const at = { db, connection: scratch.connection };
    for (const { network } of header.cursors)
      if (isNetwork(network)) chain.push(await rescanScratch(deps, { scratch: at, running: found, network }));
    return { running: compared, chain, auditProblem };
  });
  const losses = running.compared ? running.losses : [];
  const isSame = (read: Rescanned) => read.kind === 'not-read' || (read.compared?.differences.length ?? 0) === 0;
  const audit = (written.problem ?? auditProblem)?.message ?? null;
  const view = {
    file: path,
    good: audit === null && differences.length === 0 && losses.length === 0 && (chain ?? []).every(isSame),
    authenticity: authenticity.kind === 'authentic' ? 'authentic' : 'not-authenticated',
    ...{ takenAt: header.takenAt, rowCounts, differences, running, chain, auditProblem: audit },
    paidSince: countPaid(await sumLedger(db)) - countPaid(restored),
  };
  return { view, authenticity };
}

/** Works beside the ledger that runs here, if it is the one of the backup; else says why not. */
async function besideRunning<Output>(
  { withRunning, describeError }: Deps,
  { ledger }: BackupHeader,
  work: (running: Database | null, reason: string | null) => Promise<Output>,
): Promise<Output> {
  let isWorking = false;
  try {
    return await withRunning(async ({ db }) => {
      const identity = await findLedgerIdentity(db);
      isWorking = true;
      const isSame = identity !== null && identity.id === ledger?.id;
      return isSame ? work(db, null) : work(null, 'the database here is another ledger');
    });
  } catch (error) {
    if (isWorking) throw error;
    return work(null, describeError(error));
  }
}

function countPaid(totals: readonly LedgerTotal[]): number {
  const paid = totals.filter(({ what, kind }) => what === 'invoice' && kind === 'PAID');
  return Number(paid.reduce((sum, { count }) => sum + count, 0n));
}
