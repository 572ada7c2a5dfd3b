import type { Database } from './database.ts';
import { answerOf } from './rows-of.ts';
import { count } from './statement.ts';

/** Sets a low memory limit, so that anything larger is written to a temporary file, and puts this file on the tables' disk. */
const choose = answerOf(
  'shortage-find-settings',
  { memory: 'text', place: 'text' },
  "select set_config('work_mem', '64kB', true) as memory, set_config('temp_tablespaces', '', true) as place",
  () => [],
  () => undefined,
);

/** Writes about three megabytes. The file is deleted when the statement ends. */
const fill = answerOf(
  'shortage-find',
  { count },
  'select count(*) as count from generate_series(1, 100000)',
  () => [],
  () => undefined,
);

/** Writes a temporary file of a few megabytes to the database's disk. Throws `DATABASE_UNAVAILABLE` if there's no space. */
export async function findShortage(db: Pick<Database, 'snapshot'>): Promise<void> {
  await db.snapshot(async (tx) => {
    await choose(tx);
    await fill(tx);
  });
}
