import { readFile } from 'node:fs/promises';
import type { Client } from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const schema = await readFile(new URL('../../deploy/distributed/by-project.sql', import.meta.url), 'utf8');
const page = await readFile(new URL('../../docs/growth.md', import.meta.url), 'utf8');
const tablesOf = (call: string) =>
  [...schema.matchAll(new RegExp(`${call}\\('([a-z_]+)'`, 'g'))].map(([, name]) => name);
const spread = tablesOf('create_distributed_table');
const whole = tablesOf('create_reference_table');
const local = tablesOf('citus_add_local_table_to_metadata');

const databases = await Promise.all([createTestDatabase(), createTestDatabase()]);
const [released, distributed] = databases.map(({ owner }) => owner);
if (released === undefined || distributed === undefined) throw new Error('there are two databases');
await withClient(distributed, (client) => client.query(schema));
afterAll(() => Promise.all(databases.map((database) => database.drop())));

/** Unique keys of tables that are spread, and references between them, without the project. */
async function keysWithoutProject(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `with names as (
       select a.attrelid, a.attnum, a.attname from pg_attribute a)
     select format('%s (%s)', i.indrelid::regclass, (
       select string_agg(n.attname, ', ' order by k.place) from unnest(i.indkey::int2[]) with ordinality k (number, place)
       join names n on n.attrelid = i.indrelid and n.attnum = k.number)) as name
     from pg_index i
     where i.indisunique and i.indrelid::regclass::text = any ($1)
       and not exists (select from names n where n.attrelid = i.indrelid and n.attnum = any (i.indkey) and n.attname = 'project_id')
     union all
     select format('%s → %s', c.conrelid::regclass, c.confrelid::regclass)
     from pg_constraint c
     where c.contype = 'f' and c.conrelid::regclass::text = any ($1) and c.confrelid::regclass::text = any ($1)
       and not exists (
         select from unnest(c.conkey, c.confkey) k (here, there)
         join names h on h.attrelid = c.conrelid and h.attnum = k.here and h.attname = 'project_id'
         join names t on t.attrelid = c.confrelid and t.attnum = k.there and t.attname = 'project_id')
     order by 1`,
    [spread],
  );
  return rows.map(({ name }) => name);
}

test('every table of a project is spread, stands on every machine as a whole, or stays on one', async () => {
  const tables = await withClient(distributed, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "select attrelid::regclass::text as name from pg_attribute a join pg_class c on c.oid = attrelid and c.relkind in ('r', 'p') and not c.relispartition where attname = 'project_id'",
    );
    return rows.map(({ name }) => name);
  });
  const outside = ['projects', 'head_blocks', 'admin_keys', 'arrivals'];
  expect([...spread, ...whole, ...local].sort()).toEqual([...tables, ...outside].sort());
});

test('docs/growth.md names the keys of the released schema that lack the project', async () => {
  const lacking = await withClient(released, keysWithoutProject);
  const told = [...page.matchAll(/^\| `([a-z_]+(?: → [a-z_]+| \([a-z_, ]+\)))` \|/gm)].map(([, name]) => name);
  expect(lacking.length).toBeGreaterThan(10);
  expect([...new Set(told)].sort()).toEqual([...new Set(lacking)].sort());
});

test('in the schema for a distributed engine every key and every reference of a table that is spread holds the project', async () => {
  expect(await withClient(distributed, keysWithoutProject)).toEqual([]);
});

test('PostgreSQL itself spreads each of these tables by hash of the project, with all their keys', async () => {
  await withClient(distributed, async (client) => {
    await client.query('create schema spread');
    for (const table of spread) {
      await client.query(
        `create table spread.${table} (like public.${table} including all) partition by hash (project_id)`,
      );
    }
  });
  // The released schema is refused, or this would show nothing.
  const refused = withClient(released, (client) =>
    client.query('create table spread (like invoices including all) partition by hash (project_id)'),
  );
  await expect(refused).rejects.toThrow('unique constraint on partitioned table must include all partitioning columns');
});
