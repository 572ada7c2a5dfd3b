import type { AccountHex } from '@quittance/tron/address';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import type { Database } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { createKnownTerms } from '../verify/fee-terms.ts';
import { startWatcher } from './watcher.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const LEASE_MS = 8000;
const RENEW_MS = LEASE_MS / 4;

/** A database that knows nothing but one lease, and whose answers can be kept back by the name of their statement. */
function slowDatabase() {
  const asked: string[] = [];
  const kept = new Map<string, (() => void)[]>();
  const rowsOf = (name: string) => (name === 'lease-acquire' || name === 'lease-renew' ? [{ epoch: 1n }] : []);
  const run = async ({ name }: { name: string }) => {
    asked.push(name);
    const waiting = kept.get(name);
    if (waiting !== undefined) await new Promise<void>((resolve) => void waiting.push(resolve));
    return rowsOf(name);
  };
  return {
    db: { run, transaction: (work: (tx: object) => unknown) => work({ run }) } as unknown as Database,
    asked,
    keep: (name: string) => void kept.set(name, []),
    release: (name: string) => {
      for (const answer of kept.get(name) ?? []) answer();
      kept.delete(name);
    },
  };
}

test('a watcher whose renewal is late does nothing meanwhile, and goes on with its lease', async () => {
  const { db, asked, keep, release } = slowDatabase();
  const watcher = startWatcher({
    ...{ db, network: 'devnet', holder: 'us', leaseMs: LEASE_MS, agreement: 1, blockMs: 3000, slotMs: null },
    publicUrl: 'http://pay.test',
    usdt: '41'.repeat(21) as AccountHex,
    pool: {} as NodePool,
    fees: createKnownTerms(),
    ...{ now: () => unixMs(Date.now()), random: (bytes: number) => new Uint8Array(bytes) },
    ...{ log: createLogger({ level: 'silent' }), metrics: createMetrics() },
  });
  await vi.advanceTimersByTimeAsync(1);
  expect(watcher.isLeader()).toBe(true);
  keep('lease-renew');
  keep('chain-cursor-halt-select');
  await vi.advanceTimersByTimeAsync(LEASE_MS + RENEW_MS);
  expect(watcher.isLeader()).toBe(false);
  asked.length = 0;
  release('chain-cursor-halt-select');
  await vi.advanceTimersByTimeAsync(RENEW_MS);
  expect(asked).toEqual([]);
  release('lease-renew');
  await vi.advanceTimersByTimeAsync(RENEW_MS + 1);
  expect(watcher.isLeader()).toBe(true);
  expect(asked).not.toContain('lease-acquire');
});
