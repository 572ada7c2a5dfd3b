import { refuseChangedSchema } from '../store/schema-changes.ts';
import type { Result, Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

/** Brings the schema up to this release, and says whether anything of it was changed by somebody else. Safe to repeat, and to run from many machines at once. */
export async function runMigrations(terminal: Terminal): Promise<Result> {
  return withDatabase(
    terminal,
    async ({ db, applied, kind }) => {
      await db.snapshot(refuseChangedSchema);
      return {
        data: { database: kind, applied },
        text: applied.length === 0 ? 'the schema is up to date' : applied.map((name) => `applied ${name}`).join('\n'),
      };
    },
    { mayCreate: true, mayMigrate: true, asOwner: true },
  );
}
