import { readFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { PACKAGE_ROOT } from '../../runtime/package-root.ts';
import type { Sql } from './database.ts';
import { readSchemaObjects } from './schema-objects.ts';
import { statement } from './statement.ts';

/** Beside the migrations that make it. `npm run schema:record` writes it. */
export const SCHEMA_FILE = new URL('migrations/schema.json', PACKAGE_ROOT);

/** An object that is not as this release has it; `null`: it should not be there, or is not there. */
export type SchemaChange = { name: string; expected: string | null; found: string | null };

/** `backup --final` enables it and closes the ledger in one transaction: each without the other is a change. */
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
 * Lets the transaction wait a second at most for whoever has locked a table. To describe an object takes a lock of its table, and a
 * watcher has two connections as a rule: payments must not wait for one that waits.
 */
export async function waitBriefly(tx: Sql): Promise<void> {
  await tx.script(`set local lock_timeout = '1s'`);
}

/** Finds all that is not as the migrations of this release made it, by name. In a transaction, and only on a database that has all of them. */
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

/** Refuses a database whose guarantees are not those of this release. In a transaction. Error: `SCHEMA_CHANGED`. */
export async function refuseChangedSchema(tx: Sql): Promise<void> {
  const changes = await findSchemaChanges(tx);
  if (changes.length === 0) return;
  const more = changes.length - MAX_NAMED;
  const named = changes.slice(0, MAX_NAMED).map(nameChange).join('; ');
  throw new AppError(
    'SCHEMA_CHANGED',
    `the schema is not as this release made it: ${named}${more > 0 ? `; and ${more} more` : ''}. Find out who did that, examine what was written since, and put it back as migrations/schema.json has it: see "schema-changed" in docs/operations.md. Nothing was changed`,
  );
}
