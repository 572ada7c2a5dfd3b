import { AppError } from '../../domain/errors.ts';
import { isNetwork } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { findLedgerIdentity, takeLedger } from '../../store/db/ledger-identity.ts';
import type { MigrationHooks } from '../../store/db/migrate.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { createSealer } from '../../store/db/sealer.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { verifyAudit, writeHead } from '../subjects/audit.ts';
import type { BackupHeader, WrittenTotal } from './backup-format.ts';
import type { Authenticity } from './backup-mac.ts';
import { describeEncryption, type Opening } from './backup-read.ts';
import { type LedgerTotal, sumLedger } from './backup-totals.ts';
import { checkAudit } from './check-audit.ts';
import { loadBackup } from './load-backup.ts';
import { type FollowDeps, type Rescan, rescanScratch } from './rescan-scratch.ts';
import type { Scratch } from './scratch.ts';
import { isStandby } from './standby.ts';
import type { RefusedBackupView, Rescanned, TotalDifference, VerifiedBackupView } from './views.ts';

type Deps = Required<Opening> &
  FollowDeps & {
    hooks: MigrationHooks;
    now(): UnixMs;
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
 * chain since. Leaves nothing behind but a row in the audit log of the running ledger, if it is the one of the backup.
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
  const sealer = sealerOf(deps, header, authenticity);
  const written = await checkAudit({ db, sealer }, header);
  const view = await besideRunning(deps, header, async (found, reason) => {
    const losses = found && findLosses(ofHeader(header.totals), await sumLedger(found));
    const log = found && (await verifyAudit.run({ db: found }, actor, { kept: written.head }));
    const auditProblem = written.problem ?? log?.problem?.message ?? null;
    const at = { db, connection: scratch.connection };
    const chain = readsChain ? await readChain(deps, header, { scratch: at, running: found }) : null;
    const isLess = losses !== null && losses.length > 0;
    const view: VerifiedBackupView = {
      file: path,
      good: auditProblem === null && differences.length === 0 && !isLess && (chain ?? []).every(isSame),
      authenticity: authenticity.kind === 'authentic' ? 'authentic' : 'not-authenticated',
      ...{ takenAt: header.takenAt, rowCounts, differences },
      running: losses === null ? { compared: false, reason: reason ?? '' } : { compared: true, losses },
      ...{
        chain,
        auditProblem,
        auditHead: writeHead(written.head),
        paidSince: countPaid(await sumLedger(db)) - countPaid(restored),
      },
    };
    if (found !== null && !(await isStandby(found))) await record(found, deps, actor, view);
    return view;
  });
  return { view, authenticity };
}

/** Who has no key that the backup was made with does not know those that sealed its rows either. */
function sealerOf({ keyRing }: Deps, { ledger }: BackupHeader, { kind }: Authenticity): Sealer | null {
  return kind !== 'authentic' || keyRing === null || ledger === null ? null : createSealer(keyRing, ledger.id);
}

async function readChain(
  deps: Deps,
  { cursors }: BackupHeader,
  at: Pick<Rescan, 'scratch' | 'running'>,
): Promise<Rescanned[]> {
  const chain: Rescanned[] = [];
  for (const { network } of cursors) if (isNetwork(network)) chain.push(await rescanScratch(deps, { ...at, network }));
  return chain;
}

function isSame(read: Rescanned): boolean {
  return read.kind === 'not-read' || (read.compared?.differences.length ?? 0) === 0;
}

/** `subject`: when the backup was taken, as with what made it. */
function record(
  db: Database,
  { now }: Deps,
  actor: Actor,
  { file, good, takenAt, chain }: VerifiedBackupView,
): Promise<void> {
  const detail = { file, good, isChainRead: chain?.some(({ kind }) => kind === 'read') ?? false };
  return db.transaction((tx) =>
    recordActions(tx, actor, now(), [{ projectId: null, action: 'backup.verified', subject: takenAt, detail }]),
  );
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

type Sum = Pick<LedgerTotal, 'count' | 'micro'>;

const NONE: Sum = { count: 0n, micro: 0n };

function ofHeader(totals: readonly WrittenTotal[]): LedgerTotal[] {
  return totals.map((total) => ({ ...total, count: BigInt(total.count), micro: BigInt(total.micro) }));
}

/** Where two ledgers do not add up to the same. */
function findDifferences(backup: readonly LedgerTotal[], other: readonly LedgerTotal[]): TotalDifference[] {
  return compare(backup, other, (one, two) => one.count === two.count && one.micro === two.micro);
}

/**
 * Where a ledger has less than a backup of it that was made before. Nothing in a ledger is ever deleted, and a paid invoice stays
 * paid; the other statuses come and go, so of them only the sum is compared.
 */
function findLosses(backup: readonly LedgerTotal[], running: readonly LedgerTotal[]): TotalDifference[] {
  const isGrown = (one: Sum, two: Sum) => two.count >= one.count && two.micro >= one.micro;
  return compare(withAllInvoices(backup), withAllInvoices(running), isGrown);
}

function withAllInvoices(totals: readonly LedgerTotal[]): LedgerTotal[] {
  const sums = new Map<string, LedgerTotal>();
  const kept = totals.filter((total) => {
    if (total.what !== 'invoice') return true;
    const key = `${total.network} ${total.projectId}`;
    const { count, micro } = sums.get(key) ?? NONE;
    sums.set(key, { ...total, kind: 'all', count: count + total.count, micro: micro + total.micro });
    return total.kind === 'PAID';
  });
  return [...kept, ...sums.values()];
}

function compare(
  backup: readonly LedgerTotal[],
  other: readonly LedgerTotal[],
  isRight: (backup: Sum, other: Sum) => boolean,
): TotalDifference[] {
  const keyOf = ({ what, network, projectId, kind }: LedgerTotal) => [what, network, projectId, kind].join(' ');
  const [ofBackup, ofOther] = [backup, other].map((totals) => new Map(totals.map((total) => [keyOf(total), total])));
  const keys = new Set([...(ofBackup?.keys() ?? []), ...(ofOther?.keys() ?? [])]);
  return [...keys].flatMap((key) => {
    const [one, two] = [ofBackup?.get(key), ofOther?.get(key)];
    const named = one ?? two;
    if (named === undefined || isRight(one ?? NONE, two ?? NONE)) return [];
    const { what, network, projectId, kind } = named;
    const sum = ({ count, micro }: Sum) => ({ count: `${count}`, micro: `${micro}` });
    return [{ what, network, projectId, kind, backup: sum(one ?? NONE), other: sum(two ?? NONE) }];
  });
}
