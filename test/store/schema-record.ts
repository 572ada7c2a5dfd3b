/**
 * Writes migrations/schema.json, with which every start compares the database: the result of this release's migrations on an empty one. Also
 * writes the service's rights to change columns (deploy/roles.sql). Run it after adding a migration, and review its changes:
 *
 *     npm run schema:record
 */
import { readFile, writeFile } from 'node:fs/promises';
import { onTestFinished, test } from 'vitest';
import { readSchemaObjects, SCHEMA_FILE } from '../../src/core/store/db/schema-changes.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { GRANTS_FILE, recordGrants } from './kept-columns.ts';

test('records the schema of this release', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database);
  onTestFinished(async () => {
    await db.close();
    await database.drop();
  });
  const objects = await db.snapshot(readSchemaObjects);
  const sorted = [...objects]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { definition }]) => [name, definition] as const);
  const schema = Object.fromEntries(sorted);
  await writeFile(SCHEMA_FILE, `${JSON.stringify(schema, null, 2)}\n`);
  await writeFile(GRANTS_FILE, recordGrants(await readFile(GRANTS_FILE, 'utf8'), schema));
  process.stdout.write(`${objects.size} objects: ${SCHEMA_FILE.pathname}\n`);
});
