import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/domain/time.ts';
import { detectBlocks } from '../../src/payments/detect-blocks.ts';
import type { Watching } from '../../src/payments/watching.ts';
import { findCursor, insertCursor, lockCursor } from '../../src/store/chain/cursor.ts';
import { acquireLease } from '../../src/store/chain/leases.ts';
import { unlistedStatement } from '../../src/store/db/statement.ts';
import type { AccountHex } from '../../src/tron/address.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const idOf = (number: number) => number.toString(16).padStart(16, '0') + 'ab'.repeat(24);
const timeOf = (number: number) => unixMs(1_800_000_000_000 + number * 3000);
const blockAt = (number: number) => ({
  number,
  id: idOf(number),
  parentId: idOf(number - 1),
  time: timeOf(number),
  producer: 'ab'.repeat(20) as AccountHex,
  transfers: [],
});

const countWaiting = unlistedStatement(
  '',
  { count: 'int8' },
  "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
);

// So it is when the answer to a commit was lost and the step is made again while the server still works on the first.
test('a step that waited for another of the same lease goes on from what that one wrote', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database, 10);
  try {
    await insertCursor(db, 'devnet', { number: 0, id: idOf(0), time: timeOf(0) }, idOf(0));
    const lease = await acquireLease(db, 'watcher:devnet', 'test', 60_000);
    if (lease === null) throw new Error('the lease of a new database is taken');
    const watching: Watching = {
      db,
      network: 'devnet',
      lease,
      publicUrl: 'http://localhost',
      now: () => timeOf(0),
      random: (bytes) => randomBytes(bytes),
    };
    const steps = await db.transaction(async (tx) => {
      await lockCursor(tx, 'devnet');
      const started = [1, 2].map(() => detectBlocks(watching, 0, [blockAt(1), blockAt(2)], timeOf(2)));
      await eventually(
        () => db.run(countWaiting, []),
        ([row]) => row?.count === 2n,
      );
      // In an array, since a promise of its own would be waited for here.
      return started;
    });
    await Promise.all(steps);
    expect(await findCursor(db, 'devnet')).toMatchObject({ solid: { number: 0 }, head: { number: 2, id: idOf(2) } });
  } finally {
    await db.close();
    await database.drop();
  }
});
