import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { SCHEMA_FILE } from '../../src/core/store/db/schema-changes.ts';
import { fillLedger, uuid } from '../support/full-ledger.ts';
import { databaseOfFile } from '../support/postgres.ts';
import { GRANTS_FILE, OF_OWNER, recordGrants } from './kept-columns.ts';

/** The state of running processes, which must not be relied on later, and data that is deleted with age. */
const WORKING = [
  ...[
    'allocation_hints',
    'arrivals',
    'chain_status',
    'delivery_attempts',
    'head_blocks',
    'invitations',
    'leases',
    'notifications',
  ],
  ...['producer_confirmations', 'refused_amounts', 'requests', 'schema_migrations', 'sessions', 'sightings'],
  ...['claim_requests', 'set_aside', 'spent_challenges', 'untold_transfers'],
];

/** Returns a different value of a column's type. */
const OTHER: Record<string, (column: string) => string> = {
  'bigint[]': () => `'{7}'`,
  bigint: (column) => `coalesce(${column}, 0) + 1`,
  boolean: (column) => `not ${column}`,
  bytea: (column) => (/\bmac$|paid_mac$/.test(column) ? `decode(repeat('00', 24), 'hex')` : `decode('00', 'hex')`),
  integer: (column) => `coalesce(${column}, 0) + 1`,
  jsonb: () => `'{"other": 1}'`,
  numeric: (column) => `${column} + 1`,
  text: (column) => `coalesce(${column}, '') || 'x'`,
  'text[]': () => `'{other}'`,
  'uuid[]': () => 'array[gen_random_uuid()]',
  'timestamp with time zone': () => `'2020-01-01'`,
  uuid: () => 'gen_random_uuid()',
};

const { database, client } = await databaseOfFile();
beforeAll(async () => {
  await fillLedger(client, (await readMigrations()).length);
  await client.query('insert into ledger_identity (id, database_oid) values (gen_random_uuid(), 1)');
  await client.query('update alarms set resolved_at = now() where resolved_at is null');
  await client.query('update account_keys set first_index = 5');
  await client.query('update event_streams set last_position = last_position + 1');
});

type Column = { column: string; type: string; isGranted: boolean };

async function columnsByTable(): Promise<Map<string, Column[]>> {
  const { rows } = await client.query<{ table: string } & Column>(
    `select c.relname::text as table, a.attname::text as column, format_type(a.atttypid, null) as type,
       has_column_privilege('quittance_runtime', c.oid, a.attnum, 'update') as "isGranted"
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1, a.attnum`,
  );
  const tables = new Map<string, Column[]>();
  for (const { table, ...column } of rows) tables.set(table, [...(tables.get(table) ?? []), column]);
  return tables;
}

async function outcome(text: string): Promise<string> {
  await client.query('begin');
  const said = await client.query(text).then(
    ({ rowCount }) => `done, ${rowCount} rows`,
    ({ message }: Error) => message,
  );
  await client.query('rollback');
  return said;
}

test('every column of the ledger that the service never changes is refused to every plain update, and no row is deleted', async () => {
  const tables = await columnsByTable();
  expect([...tables.keys()]).toEqual(expect.arrayContaining([...WORKING, ...Object.keys(OF_OWNER)]));
  let tried = 0;
  for (const [table, columns] of tables) {
    if (WORKING.includes(table)) continue;
    const ofOwner = ['mac', ...(OF_OWNER[table] ?? [])];
    for (const { column, type, isGranted } of columns) {
      if (isGranted || ofOwner.includes(column)) continue;
      const other = OTHER[type];
      if (other === undefined) throw new Error(`no other value of type ${type}`);
      const generated = /can only be updated to DEFAULT/;
      const said = await outcome(`update ${table} set ${column} = ${other(column)}`);
      expect(said, `${table}.${column}`).toMatch(new RegExp(`never changed|${generated.source}`));
      tried += 1;
    }
    // Old deliveries are deleted, and deleting a logo that a project uses gains nothing.
    if (table === 'deliveries' || table === 'logos') continue;
    expect(await outcome(`delete from ${table}`), table).toMatch(/never deleted/);
    expect(await outcome(`truncate ${table} cascade`), table).toMatch(/never deleted/);
  }
  expect(tried).toBeGreaterThan(150);
});

test('deploy/roles.sql grants what the guards let change: else run "npm run schema:record"', async () => {
  const [grants, schema] = await Promise.all([readFile(GRANTS_FILE, 'utf8'), readFile(SCHEMA_FILE, 'utf8')]);
  expect(recordGrants(grants, JSON.parse(schema))).toBe(grants);
});

test('every column that the service may update is one that the trigger of its table lets change', async () => {
  const { rows } = await client.query(
    `select t.tgrelid::regclass::text || '.' || a.attname as refused
     from pg_trigger t join pg_attribute a on a.attrelid = t.tgrelid and a.attnum > 0 and not a.attisdropped
     where t.tgname ~ '_keeps?_what_' and has_column_privilege('quittance_runtime', t.tgrelid, a.attnum, 'update')
       and case when t.tgqual is null then pg_get_triggerdef(t.oid) not like '%''' || a.attname || '''%'
         else pg_get_triggerdef(t.oid) like '%(old.' || a.attname || ' IS DISTINCT FROM%' end`,
  );
  expect(rows).toEqual([]);
});

const INVOICE = uuid(0x5001);

describe('what happened is never undone by a plain statement', () => {
  test.each([
    [
      'the link of an order never leads to another one',
      `update invoices set checkout_token = 'of-another-order-1' where id = '${INVOICE}'`,
      /checkout_token of invoices .* is never changed/,
    ],
    [
      'the deadline of a real network stays',
      `update invoices set expires_at = expires_at + interval '10 years' where network = 'nile'`,
      /expires_at of invoices .* is never changed/,
    ],
    [
      'a revoked key stays revoked',
      'update api_keys set revoked_at = null where revoked_at is not null',
      /revoked_at of api_keys never goes back/,
    ],
    [
      'the digest of a key is never replaced',
      `update api_keys set secret_sha256 = decode(repeat('ab', 32), 'hex')`,
      /secret_sha256 of api_keys .* is never changed/,
    ],
    [
      'the addresses that a key is taken from are never widened',
      `update api_keys set allowed_cidrs = '{0.0.0.0/0}'`,
      /allowed_cidrs of api_keys .* is never changed/,
    ],
    [
      'what a key may do is never widened',
      `update api_keys set scopes = '{create,read,events,webhooks}'`,
      /scopes of api_keys .* is never changed/,
    ],
    [
      'the key that addresses are derived from is never swapped',
      `update account_keys set xpub = 'xpub' || repeat('7', 107)`,
      /xpub of account_keys .* is never changed/,
    ],
    [
      'a retired receipt key never signs again',
      `update receipt_keys set retired_at = null where retired_at is not null`,
      /retired_at of receipt_keys never goes back/,
    ],
    [
      'an index that was passed over stays so',
      'update account_keys set first_index = first_index - 1',
      /first_index .* never goes/,
    ],
    [
      'positions of events go forward',
      'update event_streams set last_position = last_position - 1',
      /last_position of event_streams cannot become .* it rises/,
    ],
    [
      'an alarm that is over is not opened again under its first time',
      'update alarms set resolved_at = null where resolved_at is not null',
      /resolved_at of alarms .* is never changed/,
    ],
    [
      'an address is that of its account',
      `insert into addresses (id, project_id, network, account, address, position)
       select gen_random_uuid(), project_id, network, decode(repeat('cd', 20), 'hex'), address, 99 from addresses limit 1`,
      /violates check constraint "addresses_text"/,
    ],
  ])('%s', async (_title, text, message) => {
    expect(await outcome(text)).toMatch(message);
  });

  test('a closed ledger is not opened', async () => {
    await client.query('begin');
    await client.query('update ledger_identity set closed_at = now()');
    await expect(client.query('update ledger_identity set closed_at = null')).rejects.toThrow(
      /closed_at .* never goes/,
    );
    await client.query('rollback');
  });
});

test('what somebody names like a function or a type of PostgreSQL’s own switches no guard off', async () => {
  const role = `stranger_${randomUUID().replaceAll('-', '')}`;
  const swap = `update invoices set checkout_token = checkout_token || 'x'`;
  await client.query(
    `create role ${role}; create schema ${role} authorization ${role}; grant create on schema public to ${role};
     grant temporary on database ${database.owner.database} to ${role}; grant select, update on invoices to ${role}`,
  );
  const harmless = `(invoices) returns jsonb language sql immutable as $$ select '{}'::jsonb $$`;
  for (const planted of [
    `create function public.to_jsonb${harmless}`,
    `create function ${role}.to_jsonb${harmless}; set local search_path = public, ${role}`,
    'create domain pg_temp.jsonb as "char"',
  ]) {
    // A session compiles a guard only once.
    const stranger = new pg.Client(database.owner);
    await stranger.connect();
    await stranger.query(`begin; set local role ${role}; ${planted}`);
    await expect(stranger.query(swap), planted).rejects.toThrow(/checkout_token of invoices .* is never changed/);
    await stranger.end();
  }
  await client.query(`drop owned by ${role}; drop role ${role}`);
});
