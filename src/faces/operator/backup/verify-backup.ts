import { chmod, lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseAddress } from '@quittance/tron/address';
import { AppError } from '../../../core/domain/errors.ts';
import type { Text } from '../../../core/domain/message.ts';
import { isNetwork, type Network } from '../../../core/domain/network.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import { isRunning } from '../../../core/runtime/processes.ts';
import { findCursor } from '../../../core/store/chain/cursor.ts';
import { findChainStatus } from '../../../core/store/chain/status.ts';
import { type Connection, type Database, openDatabase } from '../../../core/store/db/database.ts';
import { findLedgerIdentity, takeLedger } from '../../../core/store/db/ledger-identity.ts';
import type { MigrationHooks } from '../../../core/store/db/migrate.ts';
import type { Sealer } from '../../../core/store/db/seal.ts';
import { createSealer } from '../../../core/store/db/seals.ts';
import { startEmbeddedPostgres } from '../../../core/store/embedded/embedded.ts';
import { EmbeddedPostgresError } from '../../../core/store/embedded/error.ts';
import { removeAsOwner } from '../../../core/store/embedded/user.ts';
import type { Actor } from '../actor.ts';
import { recordAction } from '../record-actions.ts';
import { verifyAudit, writeHead } from '../subjects/audit.ts';
import { findLedgerRange, findOurAddresses, type LedgerTransfer, type Range } from '../subjects/chain-blocks.ts';
import {
  type Authenticity,
  type BackupHeader,
  checkAudit,
  type LedgerTotal,
  sumLedger,
  type WrittenTotal,
} from './backup-format.ts';
import { describeEncryption, type Opening } from './backup-read.ts';
import { isStandby } from './create-backup.ts';
import { loadBackup } from './restore-backup.ts';

const PREFIX = 'quittance-verify-';
/** The entries in a scratch directory. PostgreSQL's own user may own them. */
const DIRECTORIES = ['data', 'shared'] as const;

type Scratch = { connection: Connection; owner: Connection; open(): Database };

/** Runs `work` with a temporary database server. The server and its data are deleted afterwards. */
export async function withScratch<Output>(
  { log, needsOwnUser }: { log: Logger; needsOwnUser: boolean },
  work: (scratch: Scratch) => Promise<Output>,
): Promise<Output> {
  await removeRemains();
  const parent = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  try {
    // If root starts PostgreSQL, it runs as another user, who must be able to pass through this directory. The data directory itself
    // remains private.
    await chmod(parent, 0o711);
    const postgres = await startEmbeddedPostgres({
      dataDir: join(parent, DIRECTORIES[0]),
      sharedDir: join(parent, DIRECTORIES[1]),
      log,
      isDurable: false,
      needsOwnUser,
    }).catch(nameUse);
    const { connection, owner } = postgres;
    const opened: Database[] = [];
    try {
      const open = () => {
        const db = openDatabase({
          connection,
          poolSize: 4,
          applicationName: 'quittance command',
          onError: () => undefined, // The next statement on the connection reports the error.
        });
        opened.push(db);
        return db;
      };
      return await work({ connection, owner, open });
    } finally {
      await Promise.all(opened.map((db) => db.close()));
      await postgres.stop();
    }
  } finally {
    await removeScratch(parent);
  }
}

/** Even if Quittance uses an external PostgreSQL, the embedded one is needed to verify a backup, so the error has to explain that. */
export function nameUse(error: unknown): never {
  if (!(error instanceof EmbeddedPostgresError) || error.code !== 'EMBEDDED_MISSING') throw error;
  const missing =
    'Quittance verifies backups with its bundled PostgreSQL, but this installation does not include it: use the image that includes it (target "embedded" in the Dockerfile), or install with optional dependencies';
  throw new EmbeddedPostgresError(error.code, missing, { cause: error });
}

/** Removes directories left behind by this user's killed commands. The process id is in the name, but anyone could create such a name. */
async function removeRemains(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (!(pid > 1) || isRunning(pid)) continue;
    const path = join(tmpdir(), name);
    const found = await lstat(path).catch(() => undefined);
    if (found?.isDirectory() === true && found.uid === process.getuid?.()) await removeScratch(path);
  }
}

/**
 * If root starts PostgreSQL, it runs as another user, who could put a symbolic link here. So that user's files are removed only with that
 * user's rights, or stay in place.
 */
async function removeScratch(parent: string): Promise<void> {
  for (const directory of DIRECTORIES) {
    const entries = await readdir(join(parent, directory)).catch(() => []);
    for (const entry of entries) if (!(await removeAsOwner(join(parent, directory, entry)))) return;
  }
  await rm(parent, { recursive: true, force: true });
}

const POLL_MS = 100;
const NOTE_MS = 5000;
/** Nodes that are limiting requests respond again within this time. If they don't respond, the chain is reported as not read. */
const STALL_MS = 60_000;
const MAX_DIFFERENCES = 100;
/** How many blocks of transfers are queried from the ledger at a time. */
const COMPARED_BLOCKS = 1000;

/** Reads the chain and reports progress. */
export type FollowDeps = {
  /** Starts a watcher for a network on a database, or returns why it can't be started. The watcher doesn't notify anyone. */
  follow(network: Network, connection: Connection): Promise<string | { stop(): Promise<unknown> }>;
  /** Called from time to time with the last block read and the last block to be read, or `null` as long as that is unknown. */
  onRead(network: Network, block: number, end: number | null): void;
};

/** The blocks that were read, compared with the running ledger. */
type ComparedBlocks = {
  /** Transfers found in both. */
  confirmed: number;
  /** Transfers in the running ledger to or from addresses added after the backup. */
  ofNewAddresses: number;
  differences: (BlockPlace & { kind: 'not-on-chain' | 'missing-in-ledger' })[];
};
type BlockPlace = Pick<LedgerTransfer, 'txId' | 'logIndex' | 'blockNumber'>;

/** The result of reading the chain from the backup onwards. `compared` is `null` if there's no running ledger to compare with. */
export type Rescanned = { network: string } & (
  | { kind: 'not-read'; reason: string }
  | { kind: 'read'; from: number; to: number; compared: ComparedBlocks | null }
);

/**
 * Runs the regular watcher on the scratch database so that it continues reading the chain from the backup's position. Compares the recorded
 * transfers with those of the running ledger in the same blocks.
 */
async function rescanScratch(
  { follow, onRead }: FollowDeps,
  { scratch, running, network }: Rescan,
): Promise<Rescanned> {
  const { db, connection } = scratch;
  const notRead = (reason: string) => ({ kind: 'not-read', network, reason }) as const;
  const before = await findCursor(db, network);
  if (before === null) return notRead('the backup contains no block of this network');
  const watcher = await follow(network, connection);
  if (typeof watcher === 'string') return notRead(watcher);
  try {
    const end = (running && (await findCursor(running, network)))?.solid.number ?? null;
    const reached = await untilRead(db, network, end, onRead);
    if (typeof reached === 'string') return notRead(reached);
    const range = { from: before.solid.number + 1, to: end ?? reached };
    const compared = running === null ? null : await compareRange(db, running, network, range);
    return { kind: 'read', network, ...range, compared };
  } finally {
    await watcher.stop();
  }
}

type Rescan = { scratch: { db: Database; connection: Connection }; running: Database | null; network: Network };

/** Without `end`, waits for the nodes' newest irreversible block. Returns the last block read, or why reading stopped. */
async function untilRead(db: Database, network: Network, end: number | null, onRead: FollowDeps['onRead']) {
  let newest = -1;
  let [movedMs, notedMs] = [performance.now(), performance.now()];
  for (;;) {
    const block = (await findCursor(db, network))?.solid.number ?? 0;
    const status = (await findChainStatus(db, network))?.status;
    const target = end ?? status?.nodeSolidNumber ?? null;
    if (target !== null && block >= target) return block;
    const nowMs = performance.now();
    if (block > newest) [newest, movedMs] = [block, nowMs];
    if (nowMs - movedMs > STALL_MS) return status?.blind ?? `no block after ${block} could be read within a minute`;
    if (nowMs - notedMs > NOTE_MS) {
      notedMs = nowMs;
      onRead(network, block, target);
    }
    await delay(POLL_MS);
  }
}

async function compareRange(scratch: Database, running: Database, network: Network, { from, to }: Range) {
  const result: ComparedBlocks = { confirmed: 0, ofNewAddresses: 0, differences: [] };
  const differ = (kind: 'not-on-chain' | 'missing-in-ledger', { txId, logIndex, blockNumber }: LedgerTransfer) => {
    if (result.differences.length < MAX_DIFFERENCES) result.differences.push({ kind, txId, logIndex, blockNumber });
  };
  for (let first = from; first <= to; first += COMPARED_BLOCKS) {
    const last = Math.min(to, first + COMPARED_BLOCKS - 1);
    const read = new Map((await findLedgerRange(scratch, network, first, last)).map((each) => [keyOf(each), each]));
    const recorded = await findLedgerRange(running, network, first, last);
    const known = await findKnown(scratch, network, recorded);
    for (const transfer of recorded) {
      if (read.delete(keyOf(transfer))) result.confirmed += 1;
      else if (known.has(transfer.address)) differ('not-on-chain', transfer);
      else result.ofNewAddresses += 1;
    }
    for (const transfer of read.values()) differ('missing-in-ledger', transfer);
  }
  return result;
}

function keyOf({ side, txId, logIndex, blockId, amountMicro }: LedgerTransfer): string {
  return [side, txId, logIndex, blockId, amountMicro].join(' ');
}

/** Returns the transfers whose address is in the backup. */
async function findKnown(db: Database, network: Network, transfers: readonly LedgerTransfer[]): Promise<Set<string>> {
  const accounts = transfers.flatMap(({ address }) => {
    const parsed = parseAddress(address);
    return parsed.kind === 'ok' ? [parsed.account] : [];
  });
  const found = await findOurAddresses(db, network, [...new Set(accounts)]);
  return new Set([...found.values()].map(({ address }) => address));
}

type Deps = Required<Opening> &
  FollowDeps & {
    hooks: MigrationHooks;
    now(): UnixMs;
    withScratch<Output>(work: (scratch: Scratch) => Promise<Output>): Promise<Output>;
    /** Runs `work` with the running database. Throws if there's none. */
    withRunning<Output>(work: (database: { db: Database }) => Promise<Output>): Promise<Output>;
    describeError(error: unknown): string;
  };
type Input = { path: string; takesUnauthenticated: boolean; readsChain: boolean };

/** A file that was refused before its contents were examined. `recipients` is the number of keys that it's encrypted with. */
export type RefusedBackupView = { file: string; good: false; authenticity: string; reason: Text; recipients: number };

/** Two sums that should be equal but aren't. */
export type TotalDifference = Pick<LedgerTotal, 'what' | 'network' | 'projectId' | 'kind'> & {
  backup: SumView;
  other: SumView;
};
/** `micro` is in micro-USDT. */
type SumView = { count: string; micro: string };

/**
 * `differences` are between the sums in the file and the restored rows. `auditHead` is the end of its audit log. `auditProblem` describes
 * tampering with that log, in the file or later in the running ledger. `paidSince` contains invoices that were paid after the backup,
 * according to the chain.
 */
export type VerifiedBackupView = Pick<BackupHeader, 'takenAt'> & {
  file: string;
  good: boolean;
  authenticity: string;
  rowCounts: Record<string, number>;
  differences: TotalDifference[];
  running: { compared: true; losses: TotalDifference[] } | { compared: false; reason: string };
  chain: Rescanned[] | null;
  auditProblem: string | null;
  paidSince: number;
  auditHead: string | null;
};

/** `authenticity` is `null` if the file wasn't examined. */
type Verified =
  | { view: VerifiedBackupView; authenticity: Authenticity }
  | { view: RefusedBackupView; authenticity: null };

/** The `authenticity` that is reported for a refused file, by error code. */
const REFUSED: Readonly<Record<string, string>> = {
  BACKUP_TAMPERED: 'tampered',
  BACKUP_UNAUTHENTICATED: 'not-authenticated',
  BACKUP_ENCRYPTED: 'not-read',
};

/**
 * Restores a backup to a scratch database, compares its sums with the backup's own sums and with the running ledger, and reads the chain
 * from there on. It leaves nothing behind except an entry in the running ledger's audit log, if the backup belongs to it.
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
    // A database that will be thrown away doesn't need a key for sealing.
    hooks: deps.keyRing === null ? {} : deps.hooks,
    finish: async (tx, { ledger }) => {
      if (ledger !== null) await takeLedger(tx, ledger, 'any');
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
      chain,
      auditProblem,
      auditHead: writeHead(written.head),
      paidSince: countPaid(await sumLedger(db)) - countPaid(restored),
    };
    if (found !== null && !(await isStandby(found))) await record(found, deps, actor, view);
    return view;
  });
  return { view, authenticity };
}

/** If the key that authenticated the backup isn't available, neither are the keys that sealed its rows. */
function sealerOf({ keyRing }: Deps, { ledger }: BackupHeader, { kind }: Authenticity): Sealer | null {
  return kind !== 'authentic' || keyRing === null || ledger === null ? null : createSealer(keyRing, ledger.id);
}

async function readChain(deps: Deps, { cursors }: BackupHeader, at: Pick<Rescan, 'scratch' | 'running'>) {
  const chain: Rescanned[] = [];
  for (const { network } of cursors) if (isNetwork(network)) chain.push(await rescanScratch(deps, { ...at, network }));
  return chain;
}

function isSame(read: Rescanned): boolean {
  return read.kind === 'not-read' || (read.compared?.differences.length ?? 0) === 0;
}

/** `subject` is the time of the backup, as in the audit log entry about its creation. */
function record(db: Database, { now }: Deps, actor: Actor, { file, good, takenAt, chain }: VerifiedBackupView) {
  const detail = { file, good, isChainRead: chain?.some(({ kind }) => kind === 'read') ?? false };
  return db.transaction((tx) => recordAction(tx, actor, now(), 'backup.verified', { subject: takenAt, detail }));
}

/** Runs `work` on the running ledger if the backup belongs to it, and otherwise returns why it doesn't. */
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
      return isSame ? work(db, null) : work(null, 'this database contains a different ledger');
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

function findDifferences(backup: readonly LedgerTotal[], other: readonly LedgerTotal[]): TotalDifference[] {
  return compare(backup, other, (one, two) => one.count === two.count && one.micro === two.micro);
}

/**
 * Finds sums that are lower in a ledger than in an earlier backup of it. Nothing in a ledger is ever deleted, and a paid invoice stays
 * paid. Invoices can leave every other status, so all invoices are also compared as a single sum.
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
