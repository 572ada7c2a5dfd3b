import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createTokenBuckets } from './rate-limit.ts';

test('a name that was cut out of something large keeps nothing of it', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const buckets = createTokenBuckets({ perSecond: 1, burst: 1 }, 1000);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 100; i++) {
    const header = `${'x'.repeat(1_000_000)}, 198.51.100.${100 + i}`;
    buckets.take(header.slice(header.indexOf('198')), 0);
    buckets.take(header.slice(header.indexOf('198')), 0);
  }
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
  expect(buckets.take('198.51.100.150', 0).kind).toBe('limited');
  expect(buckets.take('198.51.100.99', 0).kind).toBe('pass');
});
