/**
 * Writes migrations/schema.json, with which every start compares the database: the result of this release's migrations on an empty one. Run
 * it after adding a migration, and review its changes:
 *
 *     npm run schema:record
 */
import { writeFile } from 'node:fs/promises';
import { onTestFinished, test } from 'vitest';
import { readSchemaObjects, SCHEMA_FILE } from '../../src/core/store/db/schema-changes.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';

test('records the schema of this release', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database);
  onTestFinished(async () => {
    await db.close();
    await database.drop();
  });
  const objects = await db.snapshot(readSchemaObjects);
  const lines = [...objects]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { definition }]) => `  ${JSON.stringify(name)}: ${JSON.stringify(definition)}`);
  await writeFile(SCHEMA_FILE, `{\n${lines.join(',\n')}\n}\n`);
  process.stdout.write(`${objects.size} objects: ${SCHEMA_FILE.pathname}\n`);
});
