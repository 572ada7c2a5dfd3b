import { readFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { PACKAGE_ROOT } from '../../runtime/package-root.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';
import { BACKED_UP, LEFT_OUT } from './tables.ts';

/** The schema that the migrations create. `npm run schema:record` writes it. */
export const SCHEMA_FILE = new URL('migrations/schema.json', PACKAGE_ROOT);

/** An object that differs from this release. `null`: it shouldn't exist, or doesn't exist. */
export type SchemaChange = { name: string; expected: string | null; found: string | null };

/** `backup --final` enables it and closes the ledger in one transaction. One without the other counts as a change. */
const CLOSING_TRIGGER = 'trigger invoices.invoices_of_a_closed_ledger';

let recorded: Promise<Record<string, string>> | undefined;

function readRecorded(): Promise<Record<string, string>> {
  recorded ??= readFile(SCHEMA_FILE, 'utf8').then((text) => JSON.parse(text) as Record<string, string>);
  return recorded;
}

const closed = statement(
  'schema-ledger-closed',
  { isClosed: 'bool' },
  'select exists (select from ledger_identity where closed_at is not null) as is_closed',
);

/**
 * Limits the transaction's wait for table locks to a second. Describing an object locks its table, and a watcher usually has two
 * connections: payments must not wait for one that waits.
 */
export async function waitBriefly(tx: Sql): Promise<void> {
  await tx.script(`set local lock_timeout = '1s'`);
}

/**
 * Returns everything that differs from the result of this release's migrations, by name. Call it in a transaction, and only on a database
 * that has all migrations.
 */
export async function findSchemaChanges(tx: Sql): Promise<SchemaChange[]> {
  const expected = new Map(Object.entries(await readRecorded()));
  const found = await readSchemaObjects(tx);
  const isMarked = found.has('column ledger_identity.closed_at') && (await tx.run(closed, []))[0]?.isClosed === true;
  if (isMarked) {
    expected.set(CLOSING_TRIGGER, (expected.get(CLOSING_TRIGGER) ?? '').replace(/ is disabled$/, ''));
  }
  const changes: SchemaChange[] = [];
  for (const [name, definition] of expected) {
    const now = found.get(name)?.definition ?? null;
    if (now !== definition) changes.push({ name, expected: definition, found: now });
  }
  for (const [name, { definition, isHarmless }] of found) {
    if (!expected.has(name) && !isHarmless) changes.push({ name, expected: null, found: definition });
  }
  return changes;
}

/** `trigger invoices.invoices_paid_is_final is disabled`, and so on. */
export function nameChange({ name, expected, found }: SchemaChange): string {
  if (found === null) return `${name} is missing`;
  if (expected === null) return `${name} was added`;
  if (found === `${expected} is disabled`) return `${name} is disabled`;
  if (expected === `${found} is disabled`) return `${name} is enabled`;
  return `${name} was changed`;
}

const MAX_NAMED = 20;

/** Refuses a database whose guarantees differ from this release. Call it in a transaction. Error: `SCHEMA_CHANGED`. */
export async function refuseChangedSchema(tx: Sql): Promise<void> {
  const changes = await findSchemaChanges(tx);
  if (changes.length === 0) return;
  const more = changes.length - MAX_NAMED;
  const named = changes.slice(0, MAX_NAMED).map(nameChange).join('; ');
  throw new AppError(
    'SCHEMA_CHANGED',
    `the schema differs from this release: ${named}${more > 0 ? `; and ${more} more` : ''}. Find out who changed it, examine the data written since then, and restore it to match migrations/schema.json: see "schema-changed" in docs/reference/alarms.md. Nothing was changed`,
  );
}

/**
 * Every object that provides the ledger's guarantees, by name, with PostgreSQL's description in a form that is the same in every version.
 * Owners, and objects that only affect speed or size, are left out. `isHarmless`: the object may exist without being part of this release.
 */
type SchemaObjects = Map<string, { definition: string; isHarmless: boolean }>;

// The session's role can disable all triggers; a setting of the user or the database applies to future connections. Tables and functions in
// the current schema are named without it. An object that depends on one of our tables is always listed, no matter who created it. The
// table pg_constraint also has rows for constraint triggers (t) and, since PostgreSQL 18, for not null (n).
const select = statement(
  'schema-objects',
  { name: 'text', definition: 'text', isHarmless: 'bool' },
  `with ours as (
     select c.*, c.relname::text as name from pg_class c
     where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relname = any($1::text[]) and c.relkind in ('r', 'v', 'm', 'f', 'p')),
   guards as (
     select tgfoid as oid from pg_trigger where tgrelid in (select oid from ours) and not tgisinternal
     union
     select d.refobjid from pg_constraint o join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = o.oid
     where d.refclassid = 'pg_proc'::regclass and o.conrelid in (select oid from ours)),
   functions as (
     select oid, true as is_guard from guards
     union all
     select oid, false from pg_proc
     where pronamespace = quote_ident(current_schema())::regnamespace and prosecdef and oid not in (select oid from guards))
   select 'setting session_replication_role' as name, concat_ws(', ', current_setting('session_replication_role'),
     (select string_agg(setting, ', ') from pg_db_role_setting s, unnest(s.setconfig) setting
      where s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
        and s.setrole in (0, (select oid from pg_roles where rolname = current_user)) and setting like 'session_replication_role=%'
        and setting <> 'session_replication_role=origin')) as definition, false as is_harmless
   union all
   select 'table ' || c.name, concat_ws(', ',
     case c.relkind when 'r' then 'table' else 'kind ' || c.relkind::text end,
     case c.relpersistence when 'u' then 'unlogged' when 't' then 'temporary' end,
     case when c.relrowsecurity then 'row security' end, case when c.relforcerowsecurity then 'forced row security' end,
     (select 'inherits ' || string_agg(h.inhparent::regclass::text, ', ' order by h.inhparent::regclass::text)
      from pg_inherits h where h.inhrelid = c.oid),
     (select 'inherited by ' || string_agg(h.inhrelid::regclass::text, ', ' order by h.inhrelid::regclass::text)
      from pg_inherits h where h.inhparent = c.oid)), false
   from ours c
   union all
   select 'column ' || c.name || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
     (select 'collate ' || l.collname from pg_collation l join pg_type t on t.oid = a.atttypid
      where l.oid = a.attcollation and a.attcollation <> t.typcollation),
     case when a.attnotnull then 'not null' end,
     case a.attidentity when 'a' then 'generated always as identity' when 'd' then 'generated by default as identity' end,
     case when a.attgenerated <> '' then 'generated ' || a.attgenerated::text end,
     (select 'default ' || pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d where d.adrelid = c.oid and d.adnum = a.attnum)), false
   from ours c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   union all
   select 'constraint ' || c.name || '.' || o.conname, pg_get_constraintdef(o.oid)
     || case when exists (select from pg_trigger t where t.tgconstraint = o.oid and t.tgenabled <> 'O') then ' is disabled' else '' end
     || case when exists (select from pg_index x where x.indexrelid = o.conindid and not (x.indisvalid and x.indisready and x.indislive))
          then ' has no valid index' else '' end, false
   from ours c join pg_constraint o on o.conrelid = c.oid and o.contype not in ('t', 'n')
   union all
   select 'index ' || c.name || '.' || i.relname,
     replace(replace(pg_get_indexdef(x.indexrelid), ' ON ' || quote_ident(current_schema()) || '.', ' ON '),
       ' ON ONLY ' || quote_ident(current_schema()) || '.', ' ON ONLY ')
     || case when x.indisvalid and x.indisready and x.indislive then '' else ' is not valid' end,
     not x.indisunique and x.indexprs is null and x.indpred is null or not x.indisvalid and exists (
       select from pg_index y where y.indrelid = x.indrelid and y.indisvalid
         and split_part(pg_get_indexdef(y.indexrelid), ' USING ', 2) = split_part(pg_get_indexdef(x.indexrelid), ' USING ', 2)
         and y.indisunique = x.indisunique)
   from ours c join pg_index x on x.indrelid = c.oid join pg_class i on i.oid = x.indexrelid
   where not exists (select from pg_constraint o where o.conrelid = c.oid and o.conindid = x.indexrelid and o.contype in ('p', 'u', 'x'))
   union all
   select 'trigger ' || c.name || '.' || t.tgname,
     replace(pg_get_triggerdef(t.oid), ' ON ' || quote_ident(current_schema()) || '.', ' ON ')
     || case t.tgenabled when 'O' then '' when 'D' then ' is disabled' else ' is enabled ' || t.tgenabled::text end, false
   from ours c join pg_trigger t on t.tgrelid = c.oid and (not t.tgisinternal or t.tgconstraint = 0)
   union all
   select 'function ' || p.oid::regprocedure::text, concat_ws(' ', 'returns', format_type(p.prorettype, null), 'language', l.lanname,
     'kind', p.prokind, 'volatile', p.provolatile, 'parallel', p.proparallel, case when p.proisstrict then 'strict' end,
     case when p.prosecdef then 'security definer' end, case when p.proleakproof then 'leakproof' end,
     'set ' || replace(array_to_string(p.proconfig, ', '), ', ' || quote_ident(current_schema()) || ',', ', (this schema),'),
    -- PostgreSQL 15 writes "delete from t as a" where later ones leave out the word.
    'as', p.prosrc, regexp_replace(pg_get_function_sqlbody(p.oid), '((?:DELETE FROM|UPDATE|INSERT INTO) \\S+) AS ', '\\1 ', 'g')), not f.is_guard
   from functions f join pg_proc p on p.oid = f.oid join pg_language l on l.oid = p.prolang
   union all
   select 'rule ' || c.name || '.' || r.rulename, r.ev_enabled::text || ' ' || pg_get_ruledef(r.oid), false
   from ours c join pg_rewrite r on r.ev_class = c.oid
   union all
   select 'policy ' || c.name || '.' || p.polname, concat_ws(' ', p.polcmd, pg_get_expr(p.polqual, c.oid), pg_get_expr(p.polwithcheck, c.oid)),
     false
   from ours c join pg_policy p on p.polrelid = c.oid`,
);

/**
 * Reads the current schema of the ledger's tables. Call it in a transaction, because a user's setting may make PostgreSQL quote every name.
 */
export async function readSchemaObjects(tx: Sql): Promise<SchemaObjects> {
  await tx.script('set local quote_all_identifiers = off');
  const rows = await tx.run(select, [[...BACKED_UP, ...LEFT_OUT]]);
  return new Map(rows.map(({ name, ...object }) => [name, object]));
}
