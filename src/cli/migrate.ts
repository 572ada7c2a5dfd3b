import { checkSchema } from '../faces/operator/system/show-system.ts';
import { cliActor, type Result, type Terminal } from './terminal/terminal.ts';

import { withDatabase } from './terminal/with-database.ts';

/**
 * Migrates the schema to this release, and reports whether anything else has changed it. Safe to repeat, and to run from several machines
 * at once.
 */
export async function runMigrations(terminal: Terminal): Promise<Result> {
  const options = { mayCreate: true, mayMigrate: true, asOwner: true };
  const data = await withDatabase(terminal, (deps) => checkSchema(deps, cliActor(terminal)), options);
  const lines = data.applied.map((name) => `applied ${name}`);
  return { data, text: lines.length === 0 ? 'the schema is up to date' : lines.join('\n') };
}
