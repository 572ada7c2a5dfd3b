import { expect, test } from 'vitest';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';

const backendPid = unlistedStatement('', { pid: 'int4' }, 'select pg_backend_pid() as pid');
/** A statement is cancelled after 25 s. Ending its transaction must not take as long again. */
const LIMIT_MS = 35_000;

test('a transaction on a server that froze gives its place in the pool back as soon as its statement is given up', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database);
  let frozen = 0;
  try {
    const startedMs = performance.now();
    const work = db.transaction(async (tx) => {
      frozen = (await tx.run(backendPid, []))[0]?.pid ?? 0;
      process.kill(frozen, 'SIGSTOP');
      await tx.run(backendPid, []);
    });
    await expect(work).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(await db.run(backendPid, [])).toHaveLength(1);
    expect(performance.now() - startedMs).toBeLessThan(LIMIT_MS);
  } finally {
    if (frozen > 0) process.kill(frozen, 'SIGCONT');
    await db.close();
    await database.drop();
  }
});
