import { randomBytes } from 'node:crypto';
import { copyFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { inBackupSession } from '../../src/core/store/db/database.ts';
import { findApplied, type MigrationHooks, migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { BACKED_UP, LEFT_OUT } from '../../src/core/store/db/tables.ts';
import { encryptPlainSecrets } from '../../src/core/webhooks/watch-endpoints.ts';
import { type BackupHeader, DIGEST_BYTES, MAGIC } from '../../src/faces/operator/backup/backup-format.ts';
import { type BackupMade, writeTables } from '../../src/faces/operator/backup/create-backup.ts';
import { loadBackup } from '../../src/faces/operator/backup/restore-backup.ts';
import { fillLedger, PROJECT, readColumns, readRows, uuid } from '../support/full-ledger.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { backUp, type LedgerDatabase, newFolder, newLedger } from '../support/ledger-copies.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const migrations = await readMigrations();

/** Encrypts the secrets of releases without encryption, because the columns of `backedUp` omit the plaintext. */
const log = createLogger({ level: 'silent' });
const now = () => unixMs(Date.now());
const ENCRYPTION: MigrationHooks = {
  encryptPlainSecrets: (tx) =>
    encryptPlainSecrets(tx, { keyRing: async () => TEST_KEY_RING, log, now, random: randomBytes }),
};

const restore = ({ owner }: Pick<TestDatabase, 'owner'>, path: string) =>
  loadBackup({
    connection: owner,
    path,
    takesUnauthenticated: true,
    hooks: ENCRYPTION,
    finish: async () => 'finished',
  });

/** Creates a filled database, a backup of it, and a copy of its rows. */
async function backedUp(version = migrations.length) {
  const source = await newLedger();
  if (version < migrations.length) {
    await source.client.query('drop schema public cascade; create schema public');
    await migrate(source.db, { migrations: migrations.slice(0, version) });
  }
  await fillLedger(source.client, version);
  const path = join(await newFolder(), 'ledger.backup');
  const made = version < migrations.length ? await backUpFormer(source, path) : await backUp(source, path);
  const columns = await readColumns(source.client);
  for (const name of LEFT_OUT) columns.delete(name);
  const endpoints = columns.get('webhook_endpoints') ?? [];
  columns.set(
    'webhook_endpoints',
    endpoints.filter((name) => name !== 'secret'),
  );
  return { source, path, made, columns, rows: await readRows(source.client, columns) };
}

/** Writes a backup as the previous release would have, had it had the command: with its schema and migrations. */
function backUpFormer({ owner, db }: LedgerDatabase, path: string): Promise<Pick<BackupMade, 'rowCounts'>> {
  return inBackupSession(owner, 'isolation level repeatable read read only', async (session) => {
    const header: BackupHeader = {
      ...{ release: 'former', takenAt: '2026-09-01T12:00:00.000Z', migrations: await findApplied(db) },
      ...{ ledger: null, cursors: [], totals: [], masterKeyIds: [] },
    };
    return { rowCounts: await writeTables(session, path, header) };
  });
}

async function isEmpty({ client }: LedgerDatabase): Promise<boolean> {
  const { rows } = await client.query(`select to_regclass('projects') is null as absent`);
  return rows[0].absent || (await client.query('select from projects')).rowCount === 0;
}

async function refused(client: pg.Client, text: string): Promise<string> {
  return client.query(text).then(
    () => 'done',
    (error: Error) => error.message,
  );
}

test('every table of the schema is in a backup, or left out for a reason', async () => {
  const { client } = await newLedger();
  const columns = await readColumns(client);
  expect([...BACKED_UP, ...LEFT_OUT].sort()).toEqual([...columns.keys()].sort());
});

test('what was backed up is restored row by row, and constraints, triggers and identities hold afterwards', async () => {
  const { path, made, columns, rows } = await backedUp();
  const target = await newLedger();
  const { rowCounts, applied, finished } = await restore(target, path);
  expect(await readRows(target.client, columns)).toEqual(rows);
  expect(rowCounts).toEqual(made.rowCounts);
  expect(rowCounts['invoices']).toBe(6);
  expect({ applied, finished }).toEqual({ applied: [], finished: 'finished' });

  const { client } = target;
  const invoice = `project_id = '${PROJECT}' and id = '${uuid(0x5004)}'`;
  expect(
    await refused(client, `update invoices set status = 'PENDING', paid_transfer_id = null where ${invoice}`),
  ).toMatch(/PAID is never left/);
  for (const table of ['invoices', 'transfers', 'events', 'operator_actions', 'producer_sets']) {
    expect(await refused(client, `delete from ${table}`)).toMatch(/never deleted/);
  }
  expect(
    await refused(client, `update invoices set paid_transfer_id = gen_random_uuid() where status = 'PAID'`),
  ).toMatch(/PAID is never left/);
  expect(await refused(client, `delete from projects`)).toMatch(/never deleted/);
  // People are restored, but no one is signed in, and no earlier link can be redeemed.
  const { rows: left } = await client.query(
    `select (select count(*)::int from people) as people, (select count(*)::int from passkeys) as passkeys,
       (select count(*)::int from sessions) as sessions, (select count(*)::int from invitations) as invitations`,
  );
  expect(left).toEqual([{ people: 2, passkeys: 1, sessions: 0, invitations: 0 }]);
  const { rows: given } = await client.query(
    `insert into producer_sets (network, chain_time, replaced_after, reason, producers, nodes)
     values ('devnet', now(), now(), 'vote', '[]', '{}') returning id::int`,
  );
  expect(given).toEqual([{ id: 3 }]);
  const { rows: checks } = await client.query(
    `select count(*)::int as count from pg_constraint where not convalidated and connamespace = 'public'::regnamespace and conname !~ '_bounds$'`,
  );
  // Those that migrations added as not valid, except bounds.
  expect(checks).toEqual([{ count: 15 }]);
});

test.each([1, migrations.length - 1])(
  'a backup of a release that ended with migration %i is brought up to this one',
  async (version) => {
    const { path, columns, rows } = await backedUp(version);
    const target = await newLedger();
    const { applied } = await restore(target, path);
    expect(applied).toEqual(migrations.slice(version).map(({ name }) => name));
    expect(await readRows(target.client, columns)).toEqual(rows);
    expect(await migrate(target.db)).toEqual([]);
  },
);

test('a transfer that paid an order which a later rule would refuse it is restored as it is', async () => {
  const source = await newLedger();
  const { client } = source;
  await fillLedger(client, migrations.length);
  const rewrite = (text: string) =>
    client.query(`begin; set local session_replication_role = 'replica'; ${text}; commit`);
  // Data of a release before migration 36, during an outage. Then data of this release: a fork moved a transfer to a block before its first
  // one, which is forgotten.
  for (const change of [
    `update transfers set block_time = block_time - interval '1 hour' where invoice_id is not null`,
    `update invoices set payable_after = '2026-09-01 12:00:00+00' where id = '${uuid(0x5004)}'`,
  ]) {
    await rewrite(change);
    const path = join(await newFolder(), 'ledger.backup');
    await backUp(source, path);
    const columns = await readColumns(client);
    for (const name of LEFT_OUT) columns.delete(name);
    const target = await newLedger();
    await restore(target, path);
    expect(await readRows(target.client, columns)).toEqual(await readRows(client, columns));
    // New rows are checked again.
    const triggers = `select tgrelid::regclass::text, tgname, tgenabled from pg_trigger where not tgisinternal order by 1, 2`;
    expect((await target.client.query(triggers)).rows).toEqual((await client.query(triggers)).rows);
  }
});

test('a transfer that is not to the address and of the amount of its invoice is restored by nobody', async () => {
  const source = await newLedger();
  const { client } = source;
  await fillLedger(client, migrations.length);
  await client.query(`begin; set local session_replication_role = 'replica';
    update invoices set payable_micro = payable_micro + 1000 where id = '${uuid(0x5004)}'; commit`);
  const path = join(await newFolder(), 'ledger.backup');
  await backUp(source, path);
  const target = await newLedger();
  await expect(restore(target, path)).rejects.toThrow(/does not match its invoice/);
  expect(await isEmpty(target)).toBe(true);
});

test('a backup goes into a database without tables, by a user who only owns it', async () => {
  const { path, columns, rows } = await backedUp();
  const target = await newLedger();
  const role = `quittance_restore_${process.pid}`;
  await target.client.query(`drop schema public cascade; create role ${role} login password 'h0rse'`);
  try {
    await target.client.query(`create schema public authorization ${role}`);
    const owner = { ...target.owner, user: role, password: 'h0rse' };
    await restore({ owner }, path);
    expect(await readRows(target.client, columns)).toEqual(rows);
    await backUp({ ...target, connection: owner }, `${path}.again`);
  } finally {
    await target.client.query(`drop owned by ${role}; drop role ${role}`);
  }
});

test('a database that has a project is refused and left as it is', async () => {
  const { path } = await backedUp();
  const target = await newLedger();
  await fillLedger(target.client, migrations.length);
  const columns = await readColumns(target.client);
  const before = await readRows(target.client, columns);
  await expect(restore(target, path)).rejects.toMatchObject({ code: 'DATABASE_NOT_EMPTY' });
  expect(await readRows(target.client, columns)).toEqual(before);
});

test('a byte that was changed anywhere, and an end that is missing, are found before anything is written', async () => {
  const { path } = await backedUp();
  const target = await newLedger();
  await target.client.query('drop schema public cascade; create schema public');
  const good = await readFile(path);
  const copy = `${path}.copy`;
  const refusals = async () => expect(restore(target, copy)).rejects;
  // All bytes of the frame, and as many of the rest as time allows.
  const edges = [...Array(MAGIC.length + 12).keys()].flatMap((at) => [at, good.length - 1 - at]);
  const inner = Array.from({ length: 60 }, (_, index) => Math.floor((good.length * (index + 0.5)) / 60));
  for (const at of [...edges, ...inner]) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ (1 << (at % 8));
    await writeFile(copy, bad);
    // The first bytes decide what kind of file it's taken for.
    const code = at < MAGIC.length ? /BACKUP_DAMAGED|INVALID_ARGUMENT|SCHEMA_NEWER/ : /BACKUP_DAMAGED/;
    await (await refusals()).toMatchObject({ code: expect.stringMatching(code) });
  }
  for (const length of [0, 1, MAGIC.length, MAGIC.length + 5, good.length - DIGEST_BYTES, good.length - 1]) {
    await copyFile(path, copy);
    await truncate(copy, length);
    await (await refusals()).toMatchObject({ code: expect.stringMatching(/BACKUP_DAMAGED|INVALID_ARGUMENT/) });
  }
  await writeFile(copy, Buffer.concat([good, Buffer.from('x')]));
  await (await refusals()).toMatchObject({ code: 'BACKUP_DAMAGED' });
  await expect(restore(target, `${path}.nowhere`)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const { rows } = await target.client.query(`select to_regclass('schema_migrations') is null as absent`);
  expect(rows).toEqual([{ absent: true }]);
});

test('a backup of a newer release is refused, and so is one whose migrations are not ours', async () => {
  const { source, path } = await backedUp();
  const target = await newLedger();
  await source.client.query(
    `insert into schema_migrations values (${migrations.length + 1}, '0099_later.sql', 'x', now())`,
  );
  await backUp(source, `${path}.newer`);
  await expect(restore(target, `${path}.newer`)).rejects.toMatchObject({
    code: 'SCHEMA_NEWER',
    message: expect.stringContaining('0099_later.sql'),
  });
  await source.client.query(`delete from schema_migrations where name = '0099_later.sql'`);
  await source.client.query(`update schema_migrations set sha256 = 'other' where version = 2`);
  await backUp(source, `${path}.other`);
  await expect(restore(target, `${path}.other`)).rejects.toMatchObject({ code: 'SCHEMA_CHANGED' });
  expect(await isEmpty(target)).toBe(true);
});

test('the file holds nothing that is sealed as plain text, is readable by its user only, and is never replaced', async () => {
  const { source, path } = await backedUp();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const bytes = await readFile(path);
  const text = gunzipSync(bytes.subarray(MAGIC.length, -DIGEST_BYTES)).toString('latin1');
  expect(text).toContain('0123456789abcdef'); // The id of the master key.
  expect(text).toContain('shop.example/hook');
  await expect(backUp(source, path)).rejects.toThrow();
  expect(await readFile(path)).toEqual(bytes);
});

test('a backup shows one moment, though rows are written meanwhile', async () => {
  const source = await newLedger();
  await fillLedger(source.client, migrations.length);
  const path = join(await newFolder(), 'ledger.backup');
  // Holds the backup before it reads the first table, after its snapshot was taken.
  await source.client.query('begin; lock table logos in access exclusive mode');
  const backup = backUp(source, path);
  const watching = await newLedger();
  await eventually(
    async () => {
      const text = `select count(*)::int as count from pg_stat_activity
        where datname = '${source.connection.database}' and application_name = 'quittance backup' and wait_event_type = 'Lock'`;
      return (await watching.client.query(text)).rows[0].count as number;
    },
    (count) => count === 1,
  );
  await source.client.query(`insert into projects (id, name, network) values ('${uuid(77)}', 'later', 'nile'); commit`);
  expect((await backup).rowCounts['projects']).toBe(2);
});

test('a connection that is cut leaves no file, and no row', async () => {
  const { source, path } = await backedUp();
  const folder = await newFolder();
  const cut = async (database: LedgerDatabase, table: string, work: () => Promise<unknown>) => {
    const other = new pg.Client(database.owner);
    await other.connect();
    await other.query(`begin; lock table ${table} in access exclusive mode`);
    const outcome = work().then(
      () => 'done',
      (error: Error) => error.message,
    );
    await eventually(
      async () => {
        const text = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
          and application_name = 'quittance backup' and wait_event_type = 'Lock'`;
        return (await database.client.query(text)).rowCount ?? 0;
      },
      (count) => count > 0,
    );
    await other.end();
    return outcome;
  };
  expect(await cut(source, 'operator_actions', () => backUp(source, join(folder, 'cut.backup')))).not.toBe('done');
  expect(await readdir(folder)).toEqual([]);
  const target = await newLedger();
  expect(await cut(target, 'operator_actions', () => restore(target, path))).not.toBe('done');
  expect(await isEmpty(target)).toBe(true);
  expect((await restore(target, path)).finished).toBe('finished');
});
