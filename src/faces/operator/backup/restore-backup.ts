import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { AppError, conflict } from '../../../core/domain/errors.ts';
import { uuidV7 } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { indexAt } from '../../../core/payments/derive-addresses.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { insertOperatorActions, type RecordedActor } from '../../../core/store/access/audit-log.ts';
import { raiseAlarm } from '../../../core/store/chain/alarms.ts';
import { type BackupSession, type Connection, inBackupSession, type Sql } from '../../../core/store/db/database.ts';
import { findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../../core/store/db/ledger-identity.ts';
import {
  lockMigrations,
  type Migration,
  type MigrationHooks,
  migrateWithin,
  readMigrations,
} from '../../../core/store/db/migrate.ts';
import { commandOf, rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { grantRuntimeRole } from '../../../core/store/db/runtime-role.ts';
import { isSealParameter, type Sealer, type SealParameter } from '../../../core/store/db/seal.ts';
import { createSealer } from '../../../core/store/db/seals.ts';
import { hex, text } from '../../../core/store/db/statement.ts';
import {
  advanceSequences,
  type BackupTable,
  copyInText,
  dropTables,
  findBackupTables,
  findOurTables,
  hasProjects,
} from '../../../core/store/db/tables.ts';
import { findProjectNetworks } from '../../../core/store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { recordAction, recordedActor } from '../record-actions.ts';
import { writeHead } from '../subjects/audit.ts';
import { endAllInvitations } from '../subjects/people.ts';
import { endAllSessions } from '../subjects/sessions.ts';
import {
  type Authenticity,
  admitBackup,
  type BackupEnding,
  type BackupHeader,
  checkAudit,
  type Frame,
} from './backup-format.ts';
import { checkBackup, damaged, type Opening, readFrames } from './backup-read.ts';
import { type QuietDatabase, refuseRunning } from './create-backup.ts';

/** `write` turns an alarm into text, using the terms of the interface that caused it. */
type SecureDeps = { now(): UnixMs; random(bytes: number): Uint8Array; write(text: Text): string };

/**
 * Makes it safe to continue with an outdated copy of a ledger, in the caller's transaction. None of its addresses gets a new invoice, no
 * address that was derived after the copy is derived again, and no position in the feed is used twice. All sessions and invitations end,
 * because they may have ended after the copy was made. `origin` says where the data is from, such as "a backup of
 * 2026-11-21T20:39:00.000Z". Returns how many addresses were permanently retired.
 */
export async function secureCopy(tx: Sql, deps: SecureDeps, by: RecordedActor, origin: string): Promise<number> {
  const at = deps.now();
  const barred = await barAddresses(tx, at);
  const detail = { note: `restored from ${origin}` };
  await insertOperatorActions(
    tx,
    barred.map(({ projectId, account }) => {
      return { ...by, projectId, action: 'address.retired', subject: accountToAddress(account), detail, actedAt: at };
    }),
  );
  await skipIndexesTo(tx, indexAt(at));
  // No project has a thousand events per second for years, so a clock in milliseconds is ahead of every position that was used.
  await skipPositionsTo(tx, BigInt(at));
  await endAllSessions(tx, at);
  await endAllInvitations(tx, at);
  await raiseRestored(tx, { ...deps, now: () => at }, (network) => {
    const { length: count } = barred.filter((each) => each.network === network);
    return say`${origin}. This ledger lacks the invoices created after that time, but their payers may still pay. Quittance lists these payments as unmatched ("${{ command: 'transfers list' }}"). For this reason, ${count} addresses are permanently retired, and new invoices are refused until you add addresses that Quittance has never had ("${{ command: 'address add', input: { isFresh: true } }}", "${{ command: 'address derive' }}"). Keys revoked after that time are valid again: revoke them. Users, admin keys, webhook endpoints and fixed rates are as they were at that time: compare them ("${{ command: 'user list' }}", "${{ command: 'admin-key list' }}", "${{ command: 'webhook list' }}", "${{ command: 'adapter list' }}"). See docs/guides/backup.md, then close this alarm`;
  });
  return barred.length;
}

/** Raises an alarm on every network in the ledger. It says what was restored, and what to do before it can be closed. */
async function raiseRestored(tx: Sql, { now, random, write }: SecureDeps, describe: (network: Network) => Text) {
  const at = now();
  for (const network of await findProjectNetworks(tx)) {
    await raiseAlarm(tx, network, {
      ...{ id: uuidV7(at, random(10)), kind: 'database-restored', subject: toIso(at) },
      detail: write(
        say`the database was restored from ${describe(network)} with "${{ command: 'chain acknowledge', input: { alarm: 'database-restored', network } }}"`,
      ),
    });
  }
}

/** Retires every address permanently. The addresses are still watched, and their existing reservations can still be paid. */
const barAddresses = rowsOf(
  'restore-bar-addresses',
  { projectId: 'uuid', network: text<Network>(), account: hex<AccountHex>() },
  `update addresses set retired_at = coalesce(retired_at, $1), barred_at = $1 where barred_at is null
   returning project_id, network, encode(account, 'hex') as account`,
  (at: UnixMs) => [new Date(at)],
);

const skipIndexes = commandOf(
  'restore-skip-indexes',
  `update account_keys k set first_index = greatest($1, k.first_index,
     (select coalesce(max(a.derivation_index) + 1, 0) from addresses a where a.account_key_id = k.id))`,
  (index: number) => [index],
);

const raiseFirstIndex = commandOf(
  'restore-raise-first-index',
  'update ledger_identity set first_index = greatest(first_index, $1)',
  (index: number) => [index],
);

/** Makes existing and future account keys continue from an index. */
async function skipIndexesTo(tx: Sql, index: number): Promise<void> {
  await skipIndexes(tx, index);
  await raiseFirstIndex(tx, index);
}

/**
 * Makes the feed of every project continue after a position. A trigger normally prevents such a large step, so it's disabled for this
 * statement.
 */
async function skipPositionsTo(tx: Sql, position: bigint): Promise<void> {
  await tx.script('alter table event_streams disable trigger event_streams_rise');
  await skipPositions(tx, position);
  await tx.script('alter table event_streams enable trigger event_streams_rise');
}

const skipPositions = commandOf(
  'restore-skip-positions',
  `insert into event_streams as s (project_id, last_position) select id, $1 from projects
   on conflict (project_id) do update set last_position = greatest(s.last_position, excluded.last_position)`,
  (position: bigint) => [position],
);

/**
 * Loads a backup into an empty database and migrates it to this release, in a single transaction that calls `finish` at its end. The file
 * is read completely before anything is written, and again while it's loaded. Throws `BACKUP_DAMAGED`, `BACKUP_TAMPERED`,
 * `BACKUP_UNAUTHENTICATED`, `BACKUP_ENCRYPTED`, `DATABASE_NOT_EMPTY`, `SCHEMA_NEWER` for a backup from a newer release, or
 * `SCHEMA_CHANGED`.
 */
export async function loadBackup<Finished>(options: {
  connection: Connection;
  path: string;
  /** A key in this ring must authenticate the backup. */
  keyRing?: KeyRing | null;
  /** Also accepts a backup that no available key can authenticate. */
  takesUnauthenticated?: boolean;
  /** Age secret keys for an encrypted backup. */
  identities?: readonly string[];
  finish: (tx: Sql, header: BackupHeader, authenticity: Authenticity) => Promise<Finished>;
  migrations?: Migration[];
  hooks?: MigrationHooks;
}) {
  const { connection, path, keyRing = null, identities = [] } = options;
  const { header, ending, authenticity } = await checkBackup(path, { keyRing, identities });
  admitBackup(path, authenticity, options.takesUnauthenticated === true);
  const known = options.migrations ?? (await readMigrations());
  const ofFile = matchMigrations(path, header, known);
  return inBackupSession(connection, 'isolation level read committed', async (session) => {
    await lockMigrations(session);
    await makeRoom(session);
    await migrateWithin(session, ofFile);
    await session.script('set local statement_timeout = 0');
    // This trigger also checks when a payment arrived. Restored rows may fail that check, because earlier releases had no such rule, and
    // because the arrival times that the trigger reads are deleted after a day.
    await session.script('alter table transfers disable trigger transfers_fit_their_invoice');
    const rowCounts = await load(session, path, ending, { keyRing, identities });
    // Find references to missing rows now so that no check is pending when migrations change the tables.
    await session.script('set constraints all immediate');
    await session.script('alter table transfers enable trigger transfers_fit_their_invoice');
    const misfit = await findMisfit(session);
    if (misfit !== null) throw damaged(path, `transfer ${misfit.id} does not match its invoice`);
    await advanceSequences(session);
    const applied = await migrateWithin(session, known, options.hooks);
    if (options.migrations === undefined) await grantRuntimeRole(session);
    await session.script('set local statement_timeout = 0');
    const finished = await options.finish(session, header, authenticity);
    // Without statistics, a large ledger would be slow during the first minutes.
    await session.script('analyze');
    return { header, authenticity, rowCounts, applied, finished };
  });
}

const findMisfit = rowOf(
  'backup-misfit',
  { id: 'uuid' },
  `select t.id from transfers t left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
     and i.address_id = t.address_id and i.payable_micro = t.reserved_micro
   where t.invoice_id is not null and i.id is null limit 1`,
  () => [],
);

/** Returns our migrations that had been applied to the backup's database. */
function matchMigrations(path: string, header: BackupHeader, known: readonly Migration[]): Migration[] {
  return header.migrations.map(({ version, name, sha256 }, index) => {
    const ours = known[index];
    if (ours === undefined) {
      throw new AppError(
        'SCHEMA_NEWER',
        `${path} was created by release ${header.release} with migration ${name}, but this release has only ${known.length} migrations: restore it with that release or a newer one`,
      );
    }
    if (ours.version !== version || ours.sha256 !== sha256) {
      throw new AppError(
        'SCHEMA_CHANGED',
        `${path} was created with a migration ${name} that differs from the migration in this release: restore the backup with the release that created it (${header.release})`,
      );
    }
    return ours;
  });
}

/**
 * Removes the tables of a database without projects. It contains nothing of value, because a service recreates the other rows when it
 * starts.
 */
async function makeRoom(session: BackupSession): Promise<void> {
  const tables = await findOurTables(session);
  if (tables.includes('projects') && (await hasProjects(session))) {
    throw new AppError(
      'DATABASE_NOT_EMPTY',
      'the database already has projects: restore into a new database, or into a new data directory; nothing was changed',
    );
  }
  await dropTables(session, tables);
}

/** Copies each table's rows. All constraints and triggers in the schema stay active, except for one. */
async function load(session: BackupSession, path: string, ending: BackupEnding, opening: Opening) {
  const tables = new Map((await findBackupTables(session)).map((table) => [table.name, table]));
  const rowCounts: Record<string, number> = {};
  const frames = readFrames(path, opening);
  for (;;) {
    const next = await frames.next();
    if (next.done === true) {
      if (next.value.digest.equals(ending.digest)) break;
      throw damaged(path, 'the file changed while Quittance read it');
    }
    if (next.value.type !== 't') continue;
    const { name, columns } = next.value.table;
    const table = tables.get(name);
    if (table === undefined || table.columns.join() !== columns.join()) {
      throw damaged(path, `its table ${name} does not match the schema`);
    }
    rowCounts[name] = await loadTable(session, path, table, frames);
    tables.delete(name);
  }
  const [missing] = tables.keys();
  if (missing !== undefined) throw damaged(path, `the table ${missing} is missing`);
  return rowCounts;
}

async function loadTable(
  session: BackupSession,
  path: string,
  table: BackupTable,
  frames: AsyncGenerator<Frame, BackupEnding>,
): Promise<number> {
  let expected = -1;
  const rows = async function* (): AsyncGenerator<Buffer> {
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
      if (next.value.type === 'e') {
        expected = next.value.rowCount;
        return;
      }
      if (next.value.type === 'd') yield next.value.rows;
    }
  };
  const target = session.copyIn(copyInText(table));
  await pipeline(Readable.from(rows(), { objectMode: false }), target);
  if (target.rowCount !== expected) {
    throw damaged(path, `${target.rowCount} rows of ${table.name} were loaded, but the backup contains ${expected}`);
  }
  return expected;
}

type Deps = QuietDatabase & SecureDeps & Required<Opening> & { connection: Connection; hooks: MigrationHooks };

/**
 * Loads a backup into an empty database. Unless it was a final backup, none of its addresses ever gets a new invoice, because payers may
 * have been given amounts after the backup. `unauthenticated` records why a file that no master key can authenticate is accepted. Throws
 * the same errors as `loadBackup`.
 */
export async function restoreBackup(
  { now, random, write, connection, keyRing, identities, hooks, ...database }: Deps,
  actor: Actor,
  { path, unauthenticated }: { path: string; unauthenticated: string | null },
) {
  await refuseRunning(database);
  const { header, authenticity, rowCounts, applied, finished } = await loadBackup({
    ...{ connection, path, keyRing, identities, hooks, takesUnauthenticated: unauthenticated !== null },
    finish: async (loaded, made, { kind }) => {
      const { ledger, takenAt } = made;
      const identity = ledger ?? { id: randomUUID(), firstIndex: 0 };
      await takeLedger(loaded, identity, 'any');
      const sealer = keyRing && createSealer(keyRing, identity.id);
      const tx = sealingWith(loaded, sealer);
      const audit = await checkAudit({ db: tx, sealer: kind === 'authentic' ? sealer : null }, made);
      const doubt =
        kind === 'authentic' ? '' : ` that no master key authenticates (accepted by ${actor.name}: ${unauthenticated})`;
      const origin = `a backup of ${takenAt}${doubt}`;
      const isFinal = ledger?.isFinal === true;
      const barred = isFinal ? 0 : await secureCopy(tx, { now, random, write }, recordedActor(actor), origin);
      if (isFinal && kind !== 'authentic') {
        await raiseRestored(tx, { now, random, write }, () => say`${origin}: ${TO_COMPARE}`);
      }
      const detail = { takenAt, isFinal, authenticity: kind, barredAddresses: barred };
      await recordAction(tx, actor, now(), 'backup.restored', { subject: identity.id, detail });
      return { barred, audit };
    },
  });
  const missingMasterKeyIds = header.masterKeyIds.filter((id) => keyRing?.find(id) === undefined);
  const { takenAt, release, ledger } = header;
  const view = {
    ...{ takenAt, release, final: ledger?.isFinal === true, authenticity: authenticity.kind, rowCounts, applied },
    ...{ barredAddresses: finished.barred, missingMasterKeyIds },
    ...{ auditHead: writeHead(finished.audit.head), auditProblem: finished.audit.problem },
  };
  return { view, authenticity };
}

/** A restore's transaction can't seal rows itself, because the ledger gets its id in that transaction. */
function sealingWith(tx: Sql, sealer: Sealer | null): Sql {
  const macOf = ({ table, row }: SealParameter) => sealer?.seal(table, row) ?? null;
  return {
    ...tx,
    sealer: async () => sealer,
    run: (statement, parameters) =>
      tx.run(
        statement,
        parameters.map((value) => (isSealParameter(value) ? macOf(value) : value)),
      ),
  };
}

/** What to do after restoring a final backup. After any other restore, `secureCopy` says what to do. */
const TO_COMPARE = say`compare its addresses with your wallet ("${{ command: 'address list' }}"), and check that you created its keys and endpoints, then close this alarm`;

/**
 * Accepts a ledger that wasn't moved here by our commands. `retires` takes its addresses out of use even if it wasn't recognised as a copy,
 * for example after a server was rolled back to an earlier time. Throws `CONFLICT` or `LEDGER_CLOSED`.
 */
export async function acceptRestore(
  { now, random, write, ...database }: QuietDatabase & SecureDeps,
  actor: Actor,
  { retires }: { retires: boolean },
) {
  const { db } = database;
  await refuseRunning(database);
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw nothingToAccept('no service has used this database yet');
  refuseForeignLedger({ ...identity, isHere: true });
  if (!retires && identity.isHere) throw nothingToAccept('this database does not look like a copy');
  const at = now();
  const barredAddresses = await db.transaction(async (tx) => {
    await takeLedger(tx, identity, 'any');
    const origin = `a copy, accepted at ${toIso(at)}`;
    const barred = retires ? await secureCopy(tx, { now: () => at, random, write }, recordedActor(actor), origin) : 0;
    const detail = { retired: retires, barredAddresses: barred };
    await recordAction(tx, actor, at, 'backup.accepted', { subject: identity.id, detail });
    return barred;
  });
  return { ledgerId: identity.id, retired: retires, barredAddresses };
}

function nothingToAccept(reason: string): AppError {
  return conflict`${reason}, so there is nothing to accept; nothing was changed`;
}
