import { resolve } from 'node:path';
import { createLogger } from '../../core/runtime/log.ts';
import type {
  Authenticity,
  RefusedBackupView,
  Rescanned,
  TotalDifference,
  VerifiedBackupView,
} from '../../faces/operator/backup/backup-format.ts';
import { verifyBackup, withScratch } from '../../faces/operator/backup/verify-backup.ts';
import { type Column, columnsText, formatFields, writeText } from '../../faces/operator/command-words.ts';
import { describeError, EXIT } from '../terminal/describe-error.ts';
import { followScratch } from '../terminal/follow-scratch.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';

import { encryptingWith, now, withDatabase } from '../terminal/with-database.ts';
import { describeAuthenticity, type OpenOptions, readOpening } from './read-opening.ts';

/** Exits with 1 if anything differs, or if no master key authenticates the file. */
export async function printVerified(
  terminal: Terminal,
  file: string,
  options: OpenOptions & { chain: boolean },
): Promise<Result> {
  const config = loadConfig(terminal);
  const opening = await readOpening(terminal, config, options);
  const needsOwnUser = config.networks.mainnet !== undefined;
  const log = createLogger({ level: 'warn', destination: terminal.stderr });
  const { view, authenticity } = await verifyBackup(
    {
      ...{ ...opening, hooks: encryptingWith(config, terminal), follow: followScratch(config), now },
      withScratch: (work) => withScratch({ log, needsOwnUser }, work),
      withRunning: (work) => withDatabase(terminal, work),
      describeError: (error) => describeError(error).message,
      onRead: (network, block, end) => terminal.note(`${network}: read up to block ${block} of ${end ?? '?'}`),
    },
    cliActor(terminal),
    {
      path: resolve(file),
      takesUnauthenticated: options.unauthenticated === true,
      readsChain: options.chain,
    },
  );
  return authenticity === null ? presentRefused(view) : present(view, authenticity);
}

function presentRefused(view: RefusedBackupView): Result {
  return {
    data: view,
    text: formatFields([
      ['file', view.file],
      ['authenticated', `NO: ${view.authenticity}`],
      ['encrypted', view.recipients === 0 ? 'no' : `to ${view.recipients} key(s)`],
      ['examined', 'no further'],
    ]),
    exitCode: EXIT.failed,
    next: writeText(view.reason),
  };
}

function present(view: VerifiedBackupView, authenticity: Authenticity): Result {
  const { file, good, takenAt, rowCounts, differences, running, chain, auditProblem, auditHead, paidSince } = view;
  const losses = running.compared ? running.losses : [];
  const fields = formatFields([
    ['file', file],
    ['taken at', takenAt],
    ['authenticated', describeAuthenticity(authenticity)],
    ['restored', `${Object.values(rowCounts).reduce((sum, count) => sum + count, 0)} rows`],
    ['checksums', differences.length === 0 ? 'the same' : 'DIFFER'],
    ['running ledger', describeRunning(running)],
    ['audit log', auditProblem === null ? `intact${endOf(auditHead)}` : `CHANGED: ${auditProblem}`],
    ...(chain === null ? ([['chain', 'not read, as requested']] as const) : chain.map(describeChain)),
    ['paid since', chain === null ? null : `${paidSince} invoices in the backup`],
  ]);
  return {
    data: view,
    text: [fields, columnsText([...differences, ...losses], DIFFERENCES)].filter((part) => part !== '').join('\n\n'),
    exitCode: good ? EXIT.ok : EXIT.failed,
    ...(good ? {} : { next: 'do not rely on this backup until you know the cause: docs/guides/backup.md' }),
  };
}

const endOf = (head: string | null) => (head === null ? '' : `, ending at ${head}`);

function describeRunning(running: VerifiedBackupView['running']): string {
  if (!running.compared) return `not compared: ${running.reason}`;
  return running.losses.length === 0 ? 'has everything' : 'HAS DATA MISSING';
}

function describeChain(read: Rescanned): readonly [string, string] {
  if (read.kind === 'not-read') return [`chain of ${read.network}`, `NOT read: ${read.reason}`];
  const { network, from, to, compared } = read;
  const blocks = to < from ? 'nothing since' : `blocks ${from} to ${to} read`;
  if (compared === null) return [`chain of ${network}`, `${blocks}; no running ledger to compare with`];
  const { confirmed, ofNewAddresses, differences } = compared;
  const parts = [
    `${confirmed} later transfers confirmed`,
    ...(ofNewAddresses === 0 ? [] : [`${ofNewAddresses} to addresses added later were not checked`]),
    ...(differences.length === 0 ? [] : [`${differences.length} DIFFER`]),
  ];
  return [`chain of ${network}`, `${blocks}; ${parts.join('; ')}`];
}

const DIFFERENCES: readonly Column<TotalDifference>[] = [
  ['WHAT', ({ what, kind }) => `${what} ${kind}`],
  ['NETWORK', 'network'],
  ['PROJECT', 'projectId'],
  ['BACKUP (MICRO-USDT)', ({ backup }) => `${backup.count} (${backup.micro})`],
  ['FOUND', ({ other }) => `${other.count} (${other.micro})`],
];
