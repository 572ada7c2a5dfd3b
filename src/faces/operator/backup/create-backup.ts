import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { AppError, conflict } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { KeyRing, MasterKey } from '../../../core/runtime/key-ring.ts';
import { syncDirectory } from '../../../core/runtime/private-file.ts';
import { findAuditHead } from '../../../core/store/access/audit-log.ts';
import {
  type BackupSession,
  type Connection,
  type Database,
  inBackupSession,
  type Sql,
} from '../../../core/store/db/database.ts';
import {
  closeLedger,
  findLedgerIdentity,
  refuseForeignLedger,
  takeLedger,
} from '../../../core/store/db/ledger-identity.ts';
import { findApplied } from '../../../core/store/db/migrate.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import {
  type BackupTable,
  copyOutText,
  countServiceConnections,
  findBackupTables,
} from '../../../core/store/db/tables.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/problems.ts';
import { recordAction } from '../record-actions.ts';
import { writeHead } from '../subjects/audit.ts';
import {
  type BackupHeader,
  FRAME_HEAD_BYTES,
  type Frame,
  findCursors,
  MAC_MAGIC,
  MAGIC,
  macOf,
  sumLedger,
} from './backup-format.ts';
import { createAgePair } from './backup-read.ts';

/** Whether the database is a standby, which is read-only. */
export const isStandby = answerOf(
  'backup-is-standby',
  { isStandby: 'bool' },
  'select pg_is_in_recovery() as is_standby',
  () => [],
  ([row]) => row?.isStandby === true,
);

/** A database that no service may be using. If it was started just for this command, no service can be using it. */
export type QuietDatabase = { db: Database; kind: 'external' | 'embedded'; isStartedHere: boolean };

/** PostgreSQL takes a moment to notice a closed connection, so a service that has just stopped is no reason to refuse. */
const LOOKS = 10;
const BETWEEN_LOOKS_MS = 100;

/** Throws while a service uses the same database. */
export async function refuseRunning({ db, kind, isStartedHere }: QuietDatabase): Promise<void> {
  if (kind === 'embedded' && isStartedHere) return;
  let count = await countServiceConnections(db);
  for (let looks = 1; kind === 'external' && count > 0 && looks < LOOKS; looks += 1) {
    await delay(BETWEEN_LOOKS_MS);
    count = await countServiceConnections(db);
  }
  if (count === 0 && kind === 'external') return;
  throw conflict`services are still using this database (${count} connections), so nothing was changed: stop all services first`;
}

/**
 * Creates a key pair for encrypted backups. The secret key is written to a new file, and nowhere else. Throws `CONFLICT` or
 * `INVALID_ARGUMENT`.
 */
export async function makeKey({ now }: { now(): UnixMs }, _actor: Actor, { path }: { path: string }) {
  const { file, recipient } = await createAgeKey(toIso(now()));
  await writeFile(path, file, { flag: 'wx', mode: 0o600, flush: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST')
      throw conflict`the file ${clip(path)} already exists, and you may need it to open backups: use another name`;
    const reason = `${clip(path)} cannot be written (${error.code}): use another path`;
    throw new AppError('INVALID_ARGUMENT', reason, { cause: error });
  });
  return { file: path, recipient };
}

type Deps = QuietDatabase & { connection: Connection; now(): UnixMs; keyRing: KeyRing | null; release: string };

type Input = { path: string; recipients: readonly string[]; isFinal: boolean; signal?: AbortSignal };

/**
 * Writes a backup to a new file. If it `isFinal`, the ledger is closed first, so that nothing can be created that isn't in the file.
 * `recipients` are age public keys. `signal` aborts it and leaves no file behind. Throws `CONFIG_INVALID`, `CONFLICT`, `INVALID_ARGUMENT`,
 * or an error from `refuseForeignLedger`.
 */
export async function createBackup(
  { connection, now, keyRing, release, ...database }: Deps,
  actor: Actor,
  { path, recipients, isFinal, signal }: Input,
) {
  const at = now();
  // Check these before the ledger is closed so that a wrong setting doesn't close it.
  await checkRecipients(recipients);
  const masterKey = keyRing?.current() ?? null;
  if (isFinal) await close(database, (tx) => record(tx, actor, at, { file: path, isFinal }));
  const protection = { masterKey, recipients };
  const { header, rowCounts, bytes } = await writeBackup({ connection, path, release, now: at, protection, signal });
  const { ledger, takenAt, masterKeyIds } = header;
  // A replica is read-only, so nothing can be recorded there, but its backup is as good as any other.
  if (!isFinal && !(await isStandby(database.db))) {
    await database.db.transaction((tx) => record(tx, actor, at, { file: path, isFinal, bytes }));
  }
  return {
    ...{ file: path, bytes, takenAt, final: ledger?.isFinal === true, ledgerId: ledger?.id ?? null, rowCounts },
    ...{ masterKeyIds, authenticatedBy: masterKey?.id ?? null, recipients: [...recipients] },
    auditHead: writeHead(header.auditHead ?? null),
  };
}

async function close(database: QuietDatabase, recordClosed: (tx: Sql) => Promise<void>): Promise<void> {
  const { db } = database;
  await refuseRunning(database);
  await takeLedger(db, { id: randomUUID(), firstIndex: 0 }, 'none');
  const identity = await findLedgerIdentity(db);
  // A final backup that was interrupted may be repeated. But a copied ledger must be accepted first.
  if (identity !== null) refuseForeignLedger({ ...identity, closedAt: null });
  await db.transaction(async (tx) => {
    await closeLedger(tx);
    await recordClosed(tx);
  });
}

function record(tx: Sql, actor: Actor, at: UnixMs, detail: object): Promise<void> {
  return recordAction(tx, actor, at, 'backup.created', { subject: toIso(at), detail });
}

/** The key that authenticates a backup, and the keys that can decrypt it. */
export type Protection = {
  /** `null` means that there's no MAC, so anyone who can write to the file can change it unnoticed. */
  masterKey: MasterKey | null;
  /** Age public keys. If there are none, the backup isn't encrypted. */
  recipients: readonly string[];
};

const UNPROTECTED: Protection = { masterKey: null, recipients: [] };

export type BackupMade = { header: BackupHeader; rowCounts: Record<string, number>; bytes: number };

/** Level 6 compresses 40 MB of rows per second on one core. Higher levels save hardly any space. */
const COMPRESSION_LEVEL = 6;

/**
 * Writes all rows in the ledger, from a single snapshot, to a file while the service keeps running. The file appears only when it's
 * complete and synced to the disk, and only its owner can read it. The memory needed doesn't depend on the size. An existing file is never
 * replaced.
 */
export async function writeBackup(options: {
  connection: Connection;
  path: string;
  release: string;
  now: UnixMs;
  protection?: Protection;
  signal?: AbortSignal | undefined;
}): Promise<BackupMade> {
  const { path, protection, signal } = options;
  if (await isThere(path))
    throw conflict`the file ${clip(path)} already exists: use another name with ${{ field: 'path' }}`;
  const draft = `${path}.${process.pid}.draft`;
  try {
    const mode = 'isolation level repeatable read read only';
    const made = await inBackupSession(options.connection, mode, async (session) => {
      const header = await readHeader(session, options);
      return { header, rowCounts: await writeTables(session, draft, header, protection, signal) };
    });
    const { size } = await sync(draft);
    await rename(draft, path);
    await syncDirectory(dirname(path));
    return { ...made, bytes: size };
  } catch (error) {
    await rm(draft, { force: true });
    throw explain(error, path);
  }
}

function explain(error: unknown, path: string): unknown {
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  if (typeof code !== 'string' || typeof syscall !== 'string' || !/^(open|write|rename|fsync)$/.test(syscall))
    return error;
  const reason = say`${clip(path)} cannot be written (${code}): use another path with ${{ field: 'path' }}`;
  return new AppError('INVALID_ARGUMENT', reason, { cause: error });
}

/** Writes the rows of every existing table to a new file. Returns the number of rows in each table. */
export async function writeTables(
  session: BackupSession,
  path: string,
  header: BackupHeader,
  { masterKey, recipients }: Protection = UNPROTECTED,
  signal?: AbortSignal,
): Promise<Record<string, number>> {
  const tables = await findBackupTables(session);
  const rowCounts: Record<string, number> = {};
  const rows = encodeAll(session, header, tables, rowCounts);
  const bytes = withMac(compressed(rows), masterKey, header.ledger?.id ?? null);
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  await pipeline(recipients.length === 0 ? bytes : encryptTo(recipients, bytes), file, { signal });
  return rowCounts;
}

async function* compressed(source: AsyncIterable<Buffer>) {
  const gzip = createGzip({ level: COMPRESSION_LEVEL });
  const compressing = pipeline(Readable.from(source, { objectMode: false }), gzip);
  // Reading from `gzip` below throws the same error.
  compressing.catch(() => undefined);
  yield* gzip;
  await compressing;
}

/** Adds the magic before the bytes, and the trailer after them. */
async function* withMac(source: AsyncIterable<Buffer>, masterKey: MasterKey | null, ledgerId: string | null) {
  const hash = createHash('sha256');
  const hashed = (bytes: Buffer) => {
    hash.update(bytes);
    return bytes;
  };
  yield hashed(masterKey === null ? MAGIC : MAC_MAGIC);
  for await (const bytes of source) yield hashed(bytes);
  if (masterKey !== null) {
    const mac = macOf(masterKey, ledgerId, hash.copy().digest());
    yield hashed(Buffer.concat([Buffer.from(masterKey.id, 'hex'), mac]));
  }
  yield hash.digest();
}

/** Returns the ids of the master keys that encrypted the secrets in the database. */
const findEncryptionKeys = answerOf(
  'backup-master-keys',
  { id: 'text' },
  `select master_key_id as id from webhook_secrets union
   select master_key_id from notify_channels union
   select master_key_id from receipt_keys where master_key_id is not null union
   select master_key_id from people where master_key_id is not null order by id`,
  () => [],
  (rows) => rows.map(({ id }) => id),
);

async function readHeader(session: BackupSession, { release, now }: { release: string; now: UnixMs }) {
  const identity = await findLedgerIdentity(session);
  const totals = await sumLedger(session);
  return {
    release,
    takenAt: toIso(now),
    migrations: (await findApplied(session)).map(({ version, name, sha256 }) => ({ version, name, sha256 })),
    ledger: identity && { id: identity.id, firstIndex: identity.firstIndex, isFinal: identity.closedAt !== null },
    cursors: await findCursors(session),
    totals: totals.map(({ what, network, projectId, kind, count, micro }) => {
      return { what, network, projectId, kind, count: count.toString(), micro: micro.toString() };
    }),
    masterKeyIds: await findEncryptionKeys(session),
    auditHead: await findAuditHead(session),
  };
}

async function* encodeAll(
  session: BackupSession,
  header: BackupHeader,
  tables: readonly BackupTable[],
  rowCounts: Record<string, number>,
) {
  const encode = (frame: Frame) => Buffer.concat(encodeFrame(frame));
  yield encode({ type: 'h', header });
  for (const table of tables) {
    yield encode({ type: 't', table });
    let rowCount = 0;
    for await (const rows of session.copyOut(copyOutText(table)) as AsyncIterable<Buffer>) {
      rowCount += countRows(rows);
      yield* encodeFrame({ type: 'd', rows });
    }
    rowCounts[table.name] = rowCount;
    yield encode({ type: 'e', rowCount });
  }
  yield encode({ type: 'z', tableCount: tables.length });
}

const LINE_FEED = 0x0a;

/** Counts the line feeds, because every row ends with one. The format writes line feeds inside a row as `\n`. */
function countRows(rows: Buffer): number {
  let count = 0;
  for (let at = rows.indexOf(LINE_FEED); at !== -1; at = rows.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Syncs the file so that it survives a power failure. */
async function sync(draft: string): Promise<{ size: number }> {
  const handle = await open(draft, 'r+');
  try {
    await handle.sync();
    return await handle.stat();
  } finally {
    await handle.close();
  }
}

/** Encrypts a stream with public keys (`age1…`) in chunks of 64 KiB. The result can't be decrypted with any key stored here. */
export async function* encryptTo(recipients: readonly string[], source: AsyncIterable<Uint8Array>) {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  yield* await encrypter.encrypt(ReadableStream.from(source));
}

/** Throws `CONFIG_INVALID` for anything but an age public key. */
async function checkRecipients(recipients: readonly string[]): Promise<void> {
  const { Encrypter } = await import('age-encryption');
  for (const recipient of recipients) {
    try {
      new Encrypter().addRecipient(recipient);
    } catch (error) {
      throw new AppError(
        'CONFIG_INVALID',
        say`${recipient.slice(0, 20)}… is not an age public key: use the "age1…" line printed by "${{ command: 'backup keygen' }}" or "age-keygen"`,
        { cause: error },
      );
    }
  }
}

/** Creates a new key pair. Returns the public key, and a key file in the format of `age-keygen`. */
export async function createAgeKey(createdAt: string): Promise<{ recipient: string; file: string }> {
  const { identity, recipient } = await createAgePair();
  return { recipient, file: `# created: ${createdAt}\n# public key: ${recipient}\n${identity}\n` };
}

function encodeFrame(frame: Frame): Buffer[] {
  const { type, ...content } = frame;
  const body = type === 'd' ? frame.rows : Buffer.from(JSON.stringify(content));
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.write(type, 'latin1');
  head.writeUInt32BE(body.length, 1);
  return [head, body];
}
