import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { AppError, invalidArgument, usageError } from '../../core/domain/errors.ts';
import { toIso } from '../../core/domain/time.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { openKeyRing } from '../../core/runtime/open-key-ring.ts';
import { readVersion } from '../../core/runtime/package.ts';
import { type Authenticity, describeMac } from '../../faces/operator/backup/backup-format.ts';
import { areIdentities, type Opening, refuseOtherFiles } from '../../faces/operator/backup/backup-read.ts';
import { createBackup, makeKey } from '../../faces/operator/backup/create-backup.ts';
import { acceptRestore, restoreBackup } from '../../faces/operator/backup/restore-backup.ts';
import {
  type RefusedBackupView,
  type Rescanned,
  type TotalDifference,
  type VerifiedBackupView,
  verifyBackup,
  withScratch,
} from '../../faces/operator/backup/verify-backup.ts';
import { type Column, columnsText, formatFields, writeText } from '../../faces/operator/command-words.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import { readReason } from '../../faces/operator/input/readers.ts';
import type { Config } from '../../server/config/config.ts';
import { describeError } from '../terminal/describe-error.ts';
import { followScratch } from '../terminal/follow-scratch.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';
import { encryptingWith, now, withDatabase } from '../terminal/with-database.ts';

type BackupOptions = { to?: string; final?: boolean; recipient?: string[] };

export async function printBackup(terminal: Terminal, options: BackupOptions): Promise<Result> {
  const isFinal = options.final === true;
  const data = await withDatabase(
    terminal,
    async ({ config, ...database }) => {
      const at = now();
      const path = resolve(options.to ?? `quittance-${toIso(at).replace(/[:.]/g, '')}.backup`);
      const recipients = options.recipient ?? config.backupRecipients;
      const keyRing = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
      const deps = { ...database, now: () => at, keyRing, release: readVersion() };
      return createBackup(deps, cliActor(terminal), { path, recipients, isFinal });
    },
    { asOwner: isFinal },
  );
  return {
    data,
    text: describe(data),
    next: data.final
      ? `restore the backup once, at the new location: quittance restore ${basename(data.file)}. Never start a service with this database again`
      : 'keep the backup on another machine, and the master key separate from your backups; to test the backup, use "quittance backup --verify"',
  };
}

type BackupView = Awaited<ReturnType<typeof createBackup>>;

function describe({ rowCounts, masterKeyIds, authenticatedBy, recipients, ...made }: BackupView): string {
  return formatFields([
    ['file', made.file],
    ['size', `${made.bytes} bytes`],
    ['taken at', made.takenAt],
    ...['projects', 'addresses', 'invoices', 'transfers', 'events'].map(
      (name) => [name, String(rowCounts[name] ?? 0)] as const,
    ),
    ['audit log', made.auditHead],
    ['sealed with', masterKeyIds.length === 0 ? null : masterKeyIds.join(', ')],
    [
      'authenticated',
      authenticatedBy === null
        ? 'NO: no master key is configured, so changes to the file cannot be detected'
        : `with the master key ${authenticatedBy}`,
    ],
    ['encrypted', recipients.length === 0 ? 'no' : `to ${recipients.map(shorten).join(', ')}`],
    ['final', made.final ? 'yes: this database will never create an invoice again' : null],
  ]);
}

/** Post-quantum public keys are 1,959 characters long. */
function shorten(recipient: string): string {
  return recipient.length > 62 ? `${recipient.slice(0, 40)}…` : recipient;
}

export async function printNewBackupKey(terminal: Terminal, file: string): Promise<Result> {
  const data = await makeKey({ now }, cliActor(terminal), { path: resolve(file) });
  return {
    data,
    text: formatFields([
      ['secret key', data.file],
      ['public key', data.recipient],
    ]),
    next: `keep two copies of the file on other machines, where no one who creates backups can read them; then set QUITTANCE_BACKUP_RECIPIENT=${data.recipient}. Without this file, you cannot decrypt your backups`,
  };
}

type RestoreOptions = OpenOptions & { by?: string; reason?: string };

export async function printRestored(terminal: Terminal, file: string, options: RestoreOptions): Promise<Result> {
  const path = resolve(file);
  const actor = cliActor(terminal, options.by);
  const unauthenticated = options.unauthenticated === true ? readReason(options.reason) : null;
  // A wrong setting or path is reported before a database is created.
  loadConfig(terminal);
  await refuseOtherFiles(path);
  const { view, authenticity } = await withDatabase(
    terminal,
    async ({ config, ...database }) => {
      const opening = await readOpening(terminal, config, options);
      const deps = { ...database, ...opening, hooks: encryptingWith(config, terminal), write: writeText };
      return restoreBackup(deps, actor, { path, unauthenticated });
    },
    { mayCreate: true, takesAnySchema: true, asOwner: true },
  );
  const { takenAt, release, final, rowCounts, applied, barredAddresses, missingMasterKeyIds: missing } = view;
  const { auditHead, auditProblem } = view;
  return {
    data: view,
    text: formatFields([
      ['backup of', `${takenAt}, created by release ${release}`],
      ['authenticated', describeAuthenticity(authenticity)],
      ['invoices', String(rowCounts['invoices'] ?? 0)],
      ['transfers', String(rowCounts['transfers'] ?? 0)],
      ['migrations applied', applied.length === 0 ? null : applied.join(', ')],
      ['audit log', auditProblem === null ? auditHead : `CHANGED: ${auditProblem}`],
      ['addresses', final ? 'in use as before' : `${barredAddresses} permanently out of use, but still watched`],
    ]),
    next: [
      auditProblem && 'find out who changed the audit log: see "audit-broken" in docs/reference/alarms.md',
      missing.length > 0 &&
        `restore the master key (${missing.join(', ')}) before you start the service: without it, Quittance cannot decrypt the secrets in this backup`,
      COPY_ADVICE,
      ...(final ? ['start the service here; never start it again where the backup was created'] : LOST_ADVICE),
    ]
      .filter(Boolean)
      .join('\n'),
  };
}

/** Seals depend on the ledger's id, which a copy shares, and on the master key. */
const COPY_ADVICE =
  'if this is a copy, such as a staging system: give the copy its own master key ("quittance master-key rotate") before anyone uses it. Otherwise, the original system would accept rows from the copy as genuine';

const LOST_ADVICE = [
  'changes made after the backup are lost here. Before you start the service:',
  '  - check users, admin keys, webhook endpoints and fixed rates, because they are as they were when the backup was created ("quittance user list", "quittance admin-key list", "quittance webhook list", "quittance adapter list")',
  'start the service and let it read the newer blocks, then:',
  '  - add new addresses, because Quittance refuses new invoices until you do; never reuse an address that was added after the backup',
  "  - if a key was revoked after the backup, revoke it again, and compare your shop's orders since the backup with the invoices in Quittance: see docs/guides/backup.md",
];

type AcceptOptions = { retireAddresses?: boolean; nothingCreatedSince?: boolean; by?: string };

export async function printAcceptedRestore(terminal: Terminal, options: AcceptOptions): Promise<Result> {
  const retires = options.retireAddresses === true;
  if (retires === (options.nothingCreatedSince === true))
    throw usageError`use either --retire-addresses or --nothing-created-since; if in doubt, use --retire-addresses`;
  const actor = cliActor(terminal, options.by);
  const data = await withDatabase(
    terminal,
    (deps) => acceptRestore({ ...deps, write: writeText }, actor, { retires }),
    { asOwner: true },
  );
  return {
    data,
    text: retires
      ? `accepted: ${data.barredAddresses} addresses are permanently out of use, but still watched`
      : 'accepted: the ledger continues here unchanged',
    next: retires
      ? 'add addresses that were never in Quittance, because it refuses new invoices until you do. Before you start the service, check users, keys, webhook endpoints and fixed rates: docs/guides/backup.md'
      : 'never start a service with the other database again',
  };
}

/** Exits with 1 if anything differs, or if no master key authenticates the file. */
export async function printVerified(terminal: Terminal, file: string, options: OpenOptions & { chain: boolean }) {
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
    hasFailed: true,
    next: view.reason,
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
    text: [fields, columnsText([...differences, ...losses], DIFFERENCES)],
    hasFailed: !good,
    next: !good && 'do not rely on this backup until you know the cause: docs/guides/backup.md',
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

type OpenOptions = { identity?: string; unauthenticated?: boolean };

/** Reads the keys that authenticate backups, and the keys that decrypt them. */
async function readOpening(terminal: Terminal, config: Config, { identity }: OpenOptions): Promise<Required<Opening>> {
  const keyRing = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
  return { keyRing, identities: identity === undefined ? [] : await readIdentities(identity) };
}

/** Describes which key authenticated an accepted backup, or why none did. */
function describeAuthenticity(found: Authenticity): string {
  switch (found.kind) {
    case 'authentic':
      return `with the master key ${found.masterKeyId}`;
    case 'tampered':
      return 'NO: the backup was changed';
    default:
      return `NO: ${describeMac(found)}`;
  }
}

/** Reads the secret keys from an `age-keygen` file. Messages never show any part of the file. */
async function readIdentities(file: string): Promise<string[]> {
  const text = await readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_ARGUMENT', `--identity ${clip(file)} cannot be read (${error.code})`, { cause: error });
  });
  const lines = text.split('\n').map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const isEncrypted = /^(age-encryption\.org|-----BEGIN AGE)/.test(text);
  if (!isEncrypted && keys.length > 0 && (await areIdentities(keys))) return keys;
  throw invalidArgument`--identity ${clip(file)} ${
    isEncrypted
      ? 'is itself encrypted: decrypt it first with "age -d"'
      : 'must contain age secret keys, one per line (AGE-SECRET-KEY-1…), as written by "quittance backup keygen" or "age-keygen"'
  }`;
}
