import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Database } from '../../store/db/database.ts';
import { limitConnections } from './limit-connections.ts';

test('of statements and transactions so many run at once, and the others in their turn, also after one that failed', async () => {
  let [now, most] = [0, 0];
  const work = async () => {
    now += 1;
    most = Math.max(most, now);
    await turn();
    now -= 1;
    throw new Error('it failed');
  };
  const limited = limitConnections({ run: work, transaction: work, snapshot: work } as unknown as Database, 2);
  const asked = [1, 2, 3, 4].flatMap(() => [
    limited.run({} as never, []),
    limited.transaction(async () => undefined),
    limited.snapshot(async () => undefined),
  ]);
  const ended = await Promise.allSettled(asked);
  expect(ended.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 'rejected'));
  expect(most).toBe(2);
});
