import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AppError } from '../../../core/domain/errors.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { createLogger } from '../../../core/runtime/log.ts';
import type { Database } from '../../../core/store/db/database.ts';
import { commandActor } from '../actor.ts';
import { createJobs, limitConnections } from './jobs.ts';

const ANA = commandActor('Ana');
const order = { kind: 'verify', network: 'devnet', range: { from: 1, to: 9 } } as const;

/** Creates jobs that fail when they request nodes. */
function setUp(failure: Error) {
  const lines: string[] = [];
  const jobs = createJobs({
    db: {} as Database,
    now: () => unixMs(Date.now()),
    random: (bytes) => randomBytes(bytes),
    log: createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } }),
    nodes: () => Promise.reject(failure),
  });
  const run = async () => {
    const { jobId } = jobs.start(ANA, order);
    await expect.poll(() => jobs.find(jobId)?.endedAt).not.toBeNull();
    return jobId;
  };
  return { jobs, lines, run };
}

test('the newest ten that ended are kept, the newest first, and nothing of older ones', async () => {
  const { jobs, run } = setUp(new AppError('NO_NODE', 'no node answers'));
  const ids: string[] = [];
  while (ids.length < 13) ids.push(await run());
  expect(jobs.list('devnet').map(({ jobId }) => jobId)).toEqual(ids.slice(3).reverse());
  expect(jobs.list('nile')).toEqual([]);
  expect(jobs.find(ids[0] ?? '')).toBeNull();
  expect(jobs.find(ids.at(-1) ?? '')).toMatchObject({ state: 'failed', error: { code: 'NO_NODE' } });
});

test('an error that nobody foresaw stands in the log, and not on a page', async () => {
  const { jobs, lines, run } = setUp(new Error('a secret of the program'));
  expect(jobs.find(await run())).toMatchObject({ state: 'failed', error: null });
  expect(lines.join('')).toContain('a job failed: verify blocks 1 to 9');
});

test('a process that stops starts nothing any more, and to stop what has ended does nothing', async () => {
  const { jobs, run } = setUp(new AppError('NO_NODE', 'no node answers'));
  const jobId = await run();
  jobs.stop(jobId);
  expect(jobs.find(jobId)?.state).toBe('failed');
  await jobs.close();
  expect(() => jobs.start(ANA, order)).toThrow(/starts no new jobs/);
});

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
