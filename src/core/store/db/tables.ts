import type { Sql } from './database.ts';
import { answerOf, conditionOf } from './rows-of.ts';
import { count, type Row, statement } from './statement.ts';

/**
 * The tables in a backup. Each table comes after the tables that it refers to. Only invoices refer forward, to the paying transfer, through
 * a key that is checked at the end.
 */
export const BACKED_UP = [
  'logos',
  'projects',
  'api_keys',
  'account_keys',
  'addresses',
  'invoices',
  'transfers',
  'transfer_annulments',
  'outgoing_transfers',
  'outgoing_corrections',
  'outgoing_annulments',
  'transfer_refunds',
  'chain_cursors',
  'head_blocks',
  'sightings',
  'arrivals',
  'event_streams',
  'events',
  'transfer_resolutions',
  'transfer_claims',
  'claim_requests',
  'webhook_endpoints',
  'webhook_secrets',
  'adapter_orders',
  'deliveries',
  'delivery_attempts',
  'untold_transfers',
  'set_aside',
  'receipt_keys',
  'balance_checks',
  'producer_sets',
  'producer_confirmations',
  'passed_blocks',
  'alarms',
  'allocation_hints',
  'refused_amounts',
  'operator_actions',
  'inventory_pages',
  'people',
  'passkeys',
  'recovery_codes',
  'admin_keys',
  'notify_channels',
] as const;

/**
 * Tables about running processes and this particular database. A restored lease would let an old process continue to write. A restored
 * session or invitation would restore access that had been revoked after the backup. A restored address change would be applied even if it
 * had been withdrawn after the backup. The migrations and the ledger's identity are in the backup's header. The request log isn't part of
 * the ledger and grows faster. Notifications are sent again after a restore if their cause still exists.
 */
export const LEFT_OUT = [
  'schema_migrations',
  'leases',
  'chain_status',
  'ledger_identity',
  'ledger_proofs',
  'address_changes',
  'invitations',
  'sessions',
  'spent_challenges',
  'requests',
  'notifications',
] as const;

const list = statement(
  'backup-tables',
  { name: 'text', columns: 'text[]' },
  `select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 'p') and c.relname = any($1::text[])
   group by c.relname`,
);

export type BackupTable = Row<typeof list.shape>;

/** Returns the existing tables to back up, in order. */
export async function findBackupTables(db: Sql): Promise<BackupTable[]> {
  const found = await db.run(list, [BACKED_UP]);
  return BACKED_UP.flatMap((name) => found.filter((table) => table.name === name));
}

/** Returns the existing Quittance tables, whatever release created them. */
export async function findOurTables(db: Sql): Promise<string[]> {
  return (await db.run(list, [[...BACKED_UP, ...LEFT_OUT]])).map(({ name }) => name);
}

export const hasProjects = conditionOf('backup-any-project', 'exists (select from projects)');

const functions = statement(
  'backup-functions',
  { name: 'text' },
  `select p.oid::regprocedure::text as name from pg_proc p
   where p.pronamespace = quote_ident(current_schema())::regnamespace and p.oid in (
     select t.tgfoid from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relname = any($1::text[])
     union
     select d.refobjid from pg_constraint o join pg_class c on c.oid = o.conrelid
       join pg_depend d on d.classid = 'pg_constraint'::regclass and d.objid = o.oid and d.refclassid = 'pg_proc'::regclass
     where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relname = any($1::text[]))`,
);

/** Drops our tables and their trigger and constraint functions, because a backup is loaded into the schema that it was made from. */
export async function dropTables(tx: Sql, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const used = await tx.run(functions, [names]);
  await tx.script(`drop table ${names.map(quote).join(', ')} cascade`);
  if (used.length > 0) await tx.script(`drop function ${used.map(({ name }) => name).join(', ')}`);
}

const sequences = statement(
  'backup-sequences',
  { table: 'text', column: 'text' },
  `select c.relname::text as table, a.attname::text as column
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> '' and not a.attisdropped
   where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relname = any($1::text[])`,
);

/** Moves every sequence past its table's highest number. */
export async function advanceSequences(tx: Sql): Promise<void> {
  for (const { table, column } of await tx.run(sequences, [BACKED_UP])) {
    const [name, id] = [quote(table), quote(column)];
    await tx.script(
      `select setval(pg_get_serial_sequence('${name}', '${column}'), (select max(${id}) from ${name})) from ${name} limit 1`,
    );
  }
}

export function copyOutText({ name, columns }: BackupTable): string {
  return `copy ${quote(name)} (${columns.map(quote).join(', ')}) to stdout`;
}

export function copyInText({ name, columns }: BackupTable): string {
  return `copy ${quote(name)} (${columns.map(quote).join(', ')}) from stdin`;
}

/** These names are our own or come from the catalogue. */
function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Counts the services' connections. A running service always has at least one, except for a few seconds after losing it. */
export const countServiceConnections = answerOf(
  'backup-service-connections',
  { count },
  `select count(*) as count from pg_stat_activity where datname = current_database() and application_name = 'quittance'`,
  () => [],
  ([row]) => row?.count ?? 0,
);
