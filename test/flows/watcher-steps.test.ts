import { randomBytes } from 'node:crypto';
import type { AccountHex } from '@quittance/tron/address';
import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { detectBlocks } from '../../src/core/payments/detect-blocks.ts';
import { applySolidBlocks } from '../../src/core/payments/record-transfers.ts';
import type { Watching } from '../../src/core/payments/watching.ts';
import { findCursor, insertCursor, lockCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
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

const blocksAfter = (number: number, count: number) =>
  Array.from({ length: count }, (_, index) => blockAt(number + 1 + index));

const countWaiting = unlistedStatement(
  '',
  { count: 'int8' },
  "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
);

/** Starts a watcher on a new database, at block 0. */
async function startWatching(): Promise<Watching> {
  const database = await createTestDatabase();
  const db = openTestDatabase(database, 10);
  onTestFinished(async () => {
    await db.close();
    await database.drop();
  });
  await insertCursor(db, 'devnet', { number: 0, id: idOf(0), time: timeOf(0) }, idOf(0));
  const lease = await acquireLease(db, 'watcher:devnet', 'test', 60_000);
  if (lease === null) throw new Error('the lease of a new database is taken');
  return {
    ...{ db, lease, network: 'devnet', publicUrl: 'http://localhost' },
    ...{ now: () => timeOf(0), random: (bytes) => randomBytes(bytes) },
  };
}

// This happens when a commit's answer was lost, and the step is repeated while the server is still working on the first one.
test('a step that waited for another of the same lease goes on from what that one wrote', async () => {
  const watching = await startWatching();
  const { db } = watching;
  const steps = await db.transaction(async (tx) => {
    await lockCursor(tx, 'devnet');
    const started = [1, 2].map(() => detectBlocks(watching, 0, [blockAt(1), blockAt(2)], timeOf(2)));
    await eventually(
      () => db.run(countWaiting, []),
      ([row]) => row?.count === 2n,
    );
    // In an array, because a promise itself would be awaited here.
    return started;
  });
  await Promise.all(steps);
  expect(await findCursor(db, 'devnet')).toMatchObject({ solid: { number: 0 }, head: { number: 2, id: idOf(2) } });
});

const plantHead = unlistedStatement(
  '',
  {},
  `insert into head_blocks (network, number, block_id, block_time) values ('devnet', $1, sha256('planted'), now())`,
);

test.each([
  ['none', 0, 3],
  ['none', 0, 50_000],
  ['two', 2, 4],
  ['two', 2, 50_000],
])(
  'an examined block beyond a gap, which somebody wrote, stops no recording: %s below it (%i, %i)',
  async (_name, examined, planted) => {
    const watching = await startWatching();
    const { db } = watching;
    if (examined > 0) await detectBlocks(watching, 0, blocksAfter(0, examined), timeOf(examined));
    await db.run(plantHead, [BigInt(planted)]);
    for (let number = 1; number <= 6; number += 1) {
      await applySolidBlocks(watching, [{ ...blockAt(number), evidence: { nodes: ['test'], operatorCount: 1 } }]);
    }
    const solid = { number: 6, id: idOf(6) };
    expect(await findCursor(db, 'devnet')).toMatchObject({ solid, head: solid });
    await detectBlocks(watching, 6, blocksAfter(6, 2), timeOf(8));
    expect(await findCursor(db, 'devnet')).toMatchObject({ solid, head: { number: 8 } });
  },
);
