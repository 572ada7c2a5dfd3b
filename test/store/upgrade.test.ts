import { randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type Database, openDatabase } from '../../src/core/store/db/database.ts';
import { type Migration, type MigrationHooks, migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { findActiveSecrets } from '../../src/core/store/outbox/webhook-secrets.ts';
import { openEndpointSecrets } from '../../src/core/webhooks/endpoint-secrets.ts';
import { encryptPlainSecrets } from '../../src/core/webhooks/watch-endpoints.ts';
import { fillLedger, readColumns, readRows } from '../support/full-ledger.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { someCases } from '../support/some-cases.ts';

const migrations = await readMigrations();

/** Creates a database with the migrations up to `version`, filled as by a service of that release. */
async function databaseOf(version: number): Promise<{ db: Database; client: pg.Client }> {
  const database = await createTestDatabase();
  const client = new pg.Client(database.owner);
  await client.connect();
  const options = { poolSize: 3, applicationName: 'upgrade', onError: () => undefined };
  const db = openDatabase({ ...options, connection: database.owner });
  onTestFinished(async () => {
    await db.close();
    await client.end();
    await database.drop();
  });
  await client.query('drop schema public cascade; create schema public');
  await migrate(db, { migrations: migrations.slice(0, version) });
  await fillLedger(client, version);
  return { db, client };
}

/** Columns that a migration deliberately fills or empties, as in the release notes. */
const CHANGED: Record<string, string[]> = { schema_migrations: ['version', 'name', 'sha256', 'applied_at'] };

/** Removes the plaintext column of releases before encryption, which the upgrade encrypts. */
const withoutPlainSecrets = (columns: Map<string, string[]>) =>
  new Map([...columns].map(([table, names]) => [table, names.filter((name) => `${table}.${name}` !== PLAIN)]));
const PLAIN = 'webhook_endpoints.secret';
const log = createLogger({ level: 'silent' });
const now = () => unixMs(Date.now());
const ENCRYPTION: MigrationHooks = {
  encryptPlainSecrets: (tx) =>
    encryptPlainSecrets(tx, { keyRing: async () => TEST_KEY_RING, log, now, random: randomBytes }),
};

/** Written by a service when it starts. */
const BY_SERVICES = 'ledger_identity';

describe('the data of each release', () => {
  // The first, every sixth and the newest release; all of them in `npm run test:long`.
  const releases = migrations
    .slice(0, -1)
    .filter((_, at, all) => inject('everyCase') || at % 6 === 0 || at === all.length - 1)
    .map(({ version, name }) => [version, name] as const);

  test.each(someCases(releases, 4))(
    'that ended with migration %i (%s) are the same after an upgrade to this one',
    async (version) => {
      const { db, client } = await databaseOf(version);
      const before = await readColumns(client);
      const kept = withoutPlainSecrets(new Map([...before].filter(([table]) => CHANGED[table] === undefined)));
      const rows = await readRows(client, kept);
      for (const [table, found] of Object.entries(rows)) {
        if (table !== BY_SERVICES) expect(found, table).not.toEqual([]);
      }

      expect(await migrate(db, ENCRYPTION)).toEqual(migrations.slice(version).map(({ name }) => name));

      expect(await readRows(client, kept)).toEqual(rows);
      expect(await refused(client, 'update invoices set payable_micro = payable_micro + 1')).toMatch(/never changed/);
      expect(await refused(client, 'delete from transfers')).toMatch(/never deleted/);
      expect(
        await refused(client, "update invoices set status = 'PENDING', paid_transfer_id = null where status = 'PAID'"),
      ).toMatch(/never left/);
    },
  );

  test('has rows of every table, so that nothing is missing from these tests', async () => {
    const { client } = await databaseOf(migrations.length);
    const columns = await readColumns(client);
    columns.delete(BY_SERVICES);
    for (const [table, rows] of Object.entries(await readRows(client, columns))) expect(rows, table).not.toEqual([]);
  });
});

async function refused(client: pg.Client, text: string): Promise<string> {
  return client.query(text).then(
    () => 'done',
    (error: Error) => error.message,
  );
}

describe('a database that is upgraded while the former release runs on it', () => {
  test('events that existed before get positions in the order of their times, and the next one follows', async () => {
    const { db, client } = await databaseOf(3);
    await migrate(db, ENCRYPTION);
    const { rows } = await client.query(
      'select position::int, body is not null as kept from events order by created_at',
    );
    expect(rows.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5]);
    expect((await client.query('select last_position::int as last from event_streams')).rows).toEqual([{ last: 5 }]);
  });

  test('a migration that fails leaves the schema and the data of before', async () => {
    const { db, client } = await databaseOf(migrations.length - 1);
    const before = await readRows(client, await readColumns(client));
    const broken: Migration = {
      version: migrations.length + 1,
      name: 'broken.sql',
      text: 'alter table invoices add column more text; select 1 / 0',
      sha256: 'x',
    };
    await expect(migrate(db, { migrations: [...migrations, broken] })).rejects.toThrow(/division by zero/);
    expect(await readRows(client, await readColumns(client))).toEqual(before);
  });
});

test('an address that is not that of its account ends the upgrade, which names it and changes nothing', async () => {
  const { db, client } = await databaseOf(7);
  const before = await readRows(client, await readColumns(client));
  const thief = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
  await client.query('alter table addresses disable trigger addresses_are_for_life');
  const { rows } = await client.query(
    'update addresses set address = $1 where position = 2 returning id, encode(account, $2) as account',
    [thief, 'hex'],
  );
  const [{ id, account }] = rows;
  await expect(migrate(db)).rejects.toThrow(
    `${thief} has the account of ${accountToAddress(account as AccountHex)} (id ${id})`,
  );
  expect((await readRows(client, await readColumns(client)))['schema_migrations']).toEqual(before['schema_migrations']);
});

test('an address whose text somebody changed is refused by the upgrade, which names both and what to do', async () => {
  const { db, client } = await databaseOf(7);
  await client.query(`alter table addresses disable trigger addresses_are_for_life;
    update addresses set address = 'TEmRq8MJb2zu3ot9fb2v9XPdT8oiRjXXJ5' where id = (select id from addresses limit 1)`);
  await expect(migrate(db, ENCRYPTION)).rejects.toMatchObject({
    code: 'MIGRATION_REFUSED',
    message: expect.stringMatching(
      /somebody changed addresses: TEmRq8MJb2zu3ot9fb2v9XPdT8oiRjXXJ5 has the account of T/,
    ),
  });
});

describe('secrets of webhooks that a release stored as plain text', () => {
  const insertPlain = `insert into webhook_endpoints (id, project_id, network, url, secret)
    select gen_random_uuid(), project_id, network, 'https://a.example/', 'whsec_' || encode(sha256(n::text::bytea), 'base64')
    from webhook_endpoints, generate_series(1, 300) n`;
  const plainOnes = async (client: pg.Client) =>
    (await client.query('select id, secret from webhook_endpoints where secret is not null order by id')).rows;

  test('are sealed by the upgrade, once, however many processes start together, and sign as before', async () => {
    const { db, client } = await databaseOf(3);
    await client.query(insertPlain);
    const before = await plainOnes(client);
    expect(before).toHaveLength(602);
    await Promise.all([migrate(db, ENCRYPTION), migrate(db, ENCRYPTION), migrate(db, ENCRYPTION)]);
    const ids = before.map(({ id }) => id);
    const sealed = await findActiveSecrets(db, ids, now());
    const opened = await openEndpointSecrets(TEST_KEY_RING, sealed);
    const found = sealed.map(({ endpointId: id }, index) => {
      const each = opened[index];
      return { id, secret: each?.kind === 'ok' ? each.secret : null };
    });
    expect(found).toEqual(before);
    expect(await plainOnes(client)).toEqual([]);
  });

  test('are kept as they are where no master key is at hand: the upgrade is refused, and says what to do', async () => {
    const { db, client } = await databaseOf(3);
    const before = await readRows(client, await readColumns(client));
    await expect(migrate(db)).rejects.toMatchObject({
      code: 'MIGRATION_REFUSED',
      message: expect.stringContaining('upgrade it with QUITTANCE_MASTER_KEY set'),
    });
    expect(await readRows(client, await readColumns(client))).toEqual(before);
  });

  test('are not taken for ours once there were sealed ones: somebody may have put them there', async () => {
    const { db, client } = await databaseOf(7);
    await client.query(`delete from webhook_secrets; ${insertPlain}`);
    const before = await plainOnes(client);
    await expect(migrate(db, ENCRYPTION)).rejects.toMatchObject({ code: 'MIGRATION_REFUSED' });
    expect(await plainOnes(client)).toEqual(before);
    expect((await client.query('select from webhook_secrets')).rowCount).toBe(0);
  });

  test('and are malformed never signed: the upgrade forgets them, and the log names the endpoint', async () => {
    const { db, client } = await databaseOf(3);
    await client.query(`update webhook_endpoints set secret = 'whsec_h0rse' where disabled_at is null`);
    const lines: string[] = [];
    const reported = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    const deps = { keyRing: async () => TEST_KEY_RING, log: reported, now, random: randomBytes };
    await migrate(db, { encryptPlainSecrets: (tx) => encryptPlainSecrets(tx, deps) });
    expect(lines.filter((line) => line.includes('malformed'))).toHaveLength(1);
    expect(lines.join('')).not.toContain('h0rse');
    expect((await client.query('select from webhook_secrets')).rowCount).toBe(1);
  });
});
