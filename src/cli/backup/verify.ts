import { resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { AppError } from '../../domain/errors.ts';
import { isNetwork } from '../../domain/network.ts';
import type { BackupHeader } from '../../store/backup-format.ts';
import type { Authenticity } from '../../store/backup-mac.ts';
import { describeEncryption, type Opening } from '../../store/backup-read.ts';
import { sumLedger } from '../../store/backup-totals.ts';
import type { Database } from '../../store/database.ts';
import { findLedgerIdentity, takeLedger } from '../../store/ledger-identity.ts';
import { restoreBackup } from '../../store/restore.ts';
import { describeError, EXIT } from '../cli-error.ts';
import { loadConfig } from '../load-config.ts';
import { formatFields, formatTable, type Result, type Terminal } from '../terminal.ts';
import { sealingWith, withDatabase } from '../with-database.ts';
import { findDifferences, findLosses, ofHeader, ofLedger, type TotalDifference } from './compare-totals.ts';
import { describeAuthenticity, type OpenOptions, readOpening } from './open-options.ts';
import { type Rescanned, rescanScratch } from './rescan-scratch.ts';
import { type Scratch, withScratch } from './scratch.ts';

type Verified = {
  header: BackupHeader;
  authenticity: Authenticity;
  rowCounts: Record<string, number>;
  /** Between the file's own sums and the restored rows. */
  differences: TotalDifference[];
  running: { kind: 'compared'; losses: TotalDifference[] } | { kind: 'not-compared'; reason: string };
  chain: Rescanned[] | null;
  /** Invoices of the backup that the chain has paid since. */
  paidSince: bigint;
};

export type VerifyOptions = OpenOptions & { chain: boolean };

/**
 * Restores a backup to a scratch database, compares its sums with what the backup says and with the running ledger, and reads the
 * chain since. Exits 1 on any difference, and for a file that no master key vouches for. Leaves nothing behind and changes nothing.
 */
export async function verifyBackup(terminal: Terminal, file: string, options: VerifyOptions): Promise<Result> {
  const path = resolve(file);
  const config = loadConfig(terminal);
  const opening = await readOpening(terminal, config, options);
  try {
    const needsOwnUser = config.networks.mainnet !== undefined;
    return await withScratch(terminal, { needsOwnUser }, (scratch) =>
      verifyIn(scratch, { terminal, config, path, opening, options }),
    );
  } catch (error) {
    const authenticity = error instanceof AppError ? REFUSED[error.code] : undefined;
    if (authenticity === undefined || !(error instanceof AppError)) throw error;
    return presentRefused(path, authenticity, error.message, await describeEncryption(path));
  }
}

/** What a file is called of which nothing further is examined. */
const REFUSED: Readonly<Record<string, string>> = {
  BACKUP_TAMPERED: 'tampered',
  BACKUP_UNAUTHENTICATED: 'not-authenticated',
  BACKUP_ENCRYPTED: 'not-read',
};

async function verifyIn(
  { connection, owner, open }: Scratch,
  {
    terminal,
    config,
    path,
    opening,
    options,
  }: {
    terminal: Terminal;
    config: Config;
    path: string;
    opening: Required<Opening>;
    options: VerifyOptions;
  },
): Promise<Result> {
  const finish = async (...[tx, { ledger }]: Parameters<Parameters<typeof restoreBackup>[0]['finish']>) => {
    if (ledger !== null) await takeLedger(tx, ledger, { isAnew: true });
  };
  const takesUnauthenticated = options.unauthenticated === true;
  const { header, authenticity, rowCounts } = await restoreBackup({
    connection: owner,
    path,
    finish,
    takesUnauthenticated,
    // No key is made for a database that is thrown away.
    hooks: opening.keyRing === null ? {} : sealingWith(config, terminal),
    ...opening,
  });
  const db = open();
  const restored = ofLedger(await sumLedger(db));
  const differences = findDifferences(ofHeader(header.totals), restored);
  const onRunning = async (running: Database | null) => {
    const losses = running === null ? null : findLosses(ofHeader(header.totals), ofLedger(await sumLedger(running)));
    const deps = { config, scratch: { db, connection }, running, terminal };
    return { losses, chain: options.chain ? await rescanAll(deps, header) : null };
  };
  const { reason, losses, chain } = await withRunning(terminal, header, onRunning);
  const running: Verified['running'] =
    losses === null ? { kind: 'not-compared', reason: reason ?? '' } : { kind: 'compared', losses };
  const paidSince = countPaid(ofLedger(await sumLedger(db))) - countPaid(restored);
  return present(path, { header, authenticity, rowCounts, differences, running, chain, paidSince });
}

function presentRefused(
  path: string,
  authenticity: string,
  reason: string,
  encryption: { recipients: number } | null,
): Result {
  const recipients = encryption?.recipients ?? 0;
  return {
    data: { file: path, good: false, authenticity, reason, recipients },
    text: formatFields([
      ['file', path],
      ['authenticated', `NO: ${authenticity}`],
      ['encrypted', encryption === null ? 'no' : `to ${recipients} key(s)`],
      ['examined', 'no further'],
    ]),
    exitCode: EXIT.failed,
    next: reason,
  };
}

/** Works beside the ledger that runs here, if it is the one of the backup; else says why not. */
async function withRunning<Output>(
  terminal: Terminal,
  { ledger }: BackupHeader,
  work: (running: Database | null) => Promise<Output>,
): Promise<Output & { reason: string | null }> {
  let isWorking = false;
  try {
    return await withDatabase(terminal, async ({ db }) => {
      const identity = await findLedgerIdentity(db);
      const isSame = identity !== null && identity.id === ledger?.id;
      isWorking = true;
      return { ...(await work(isSame ? db : null)), reason: isSame ? null : 'the database here is another ledger' };
    });
  } catch (error) {
    if (isWorking) throw error;
    return { ...(await work(null)), reason: describeError(error).message };
  }
}

async function rescanAll(deps: Parameters<typeof rescanScratch>[0], { cursors }: BackupHeader): Promise<Rescanned[]> {
  const outcomes: Rescanned[] = [];
  for (const { network } of cursors) if (isNetwork(network)) outcomes.push(await rescanScratch(deps, network));
  return outcomes;
}

function countPaid(totals: readonly { what: string; kind: string; count: bigint }[]): bigint {
  return totals
    .filter(({ what, kind }) => what === 'invoice' && kind === 'PAID')
    .reduce((sum, { count }) => sum + count, 0n);
}

function present(path: string, verified: Verified): Result {
  const { header, authenticity, rowCounts, differences, running, chain, paidSince } = verified;
  const losses = running.kind === 'compared' ? running.losses : [];
  const isGood =
    differences.length === 0 &&
    losses.length === 0 &&
    (chain ?? []).every((read) => read.kind === 'not-read' || (read.compared?.differences.length ?? 0) === 0);
  const text = (found: readonly TotalDifference[]) => found.map(asText);
  return {
    data: {
      file: path,
      good: isGood,
      authenticity: authenticity.kind === 'authentic' ? 'authentic' : 'not-authenticated',
      takenAt: header.takenAt,
      rowCounts,
      differences: text(differences),
      running:
        running.kind === 'compared'
          ? { compared: true, losses: text(losses) }
          : { compared: false, reason: running.reason },
      chain,
      paidSince: Number(paidSince),
    },
    text: [
      formatFields([
        ['file', path],
        ['taken at', header.takenAt],
        ['authenticated', describeAuthenticity(authenticity)],
        ['restored', `${Object.values(rowCounts).reduce((sum, count) => sum + count, 0)} rows`],
        ['sums of the file', differences.length === 0 ? 'the same' : 'DIFFER'],
        [
          'running ledger',
          running.kind === 'compared'
            ? losses.length === 0
              ? 'has all of it'
              : 'HAS LESS'
            : `not compared: ${running.reason}`,
        ],
        ...(chain === null ? ([['chain', 'not read, as you asked']] as const) : chain.map(describeChain)),
        ['paid since', chain === null ? null : `${paidSince} invoices of the backup`],
      ]),
      tableOf([...differences, ...losses]),
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
    exitCode: isGood ? EXIT.ok : EXIT.failed,
    ...(isGood ? {} : { next: 'do not rely on this backup before you know why: docs/backup.md' }),
  };
}

function describeChain(read: Rescanned): readonly [string, string] {
  if (read.kind === 'not-read') return [`chain of ${read.network}`, `NOT read: ${read.reason}`];
  const { network, from, to, compared } = read;
  const blocks = to < from ? 'nothing since' : `blocks ${from} to ${to} read`;
  if (compared === null) return [`chain of ${network}`, `${blocks}; no running ledger to compare with`];
  const { confirmed, ofNewAddresses, differences } = compared;
  const parts = [
    `${confirmed} transfers recorded since are on it`,
    ...(ofNewAddresses === 0 ? [] : [`${ofNewAddresses} of addresses added since were not looked at`]),
    ...(differences.length === 0 ? [] : [`${differences.length} DIFFER`]),
  ];
  return [`chain of ${network}`, `${blocks}; ${parts.join('; ')}`];
}

function asText({ backup, other, ...rest }: TotalDifference): object {
  const sum = ({ count, micro }: TotalDifference['backup']) => ({ count: `${count}`, micro: `${micro}` });
  return { ...rest, backup: sum(backup), other: sum(other) };
}

function tableOf(found: readonly TotalDifference[]): string {
  const rows = found.map(({ what, network, projectId, kind, backup, other }) => [
    `${what} ${kind}`,
    network,
    projectId,
    `${backup.count} (${backup.micro})`,
    `${other.count} (${other.micro})`,
  ]);
  return formatTable(['WHAT', 'NETWORK', 'PROJECT', 'BACKUP (MICRO-USDT)', 'FOUND'], rows);
}
