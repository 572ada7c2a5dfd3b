import type { Database } from './database.ts';
import { answerOf } from './rows-of.ts';
import { count } from './statement.ts';

/** Little memory, and the disk of the tables: anything larger is written to a temporary file there. */
const choose = answerOf(
  'shortage-find-settings',
  { memory: 'text', place: 'text' },
  "select set_config('work_mem', '64kB', true) as memory, set_config('temp_tablespaces', '', true) as place",
  () => [],
  () => undefined,
);

/** About three megabytes. The file is gone when the statement ends. */
const fill = answerOf(
  'shortage-find',
  { count },
  'select count(*) as count from generate_series(1, 100000)',
  () => [],
  () => undefined,
);

/** Writes a temporary file of a few megabytes to the database's disk. Error: `DATABASE_UNAVAILABLE` if there is no space. */
export async function findShortage(db: Pick<Database, 'snapshot'>): Promise<void> {
  await db.snapshot(async (tx) => {
    await choose(tx);
    await fill(tx);
  });
}
