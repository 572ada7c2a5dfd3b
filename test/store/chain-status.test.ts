import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { findOpenAlarms, raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { insertCursor, markLive } from '../../src/core/store/chain/cursor.ts';
import {
  type ChainStatus,
  findChainStatus,
  findRememberedPauses,
  saveChainStatus,
  saveNodesStatus,
} from '../../src/core/store/chain/status.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { databaseOfFile } from '../support/postgres.ts';

const { db } = await databaseOfFile();

const NOW = Date.parse('2026-09-01T12:00:00Z');

const node = (url: string, rest: Partial<ChainStatus['nodes'][number]>): ChainStatus['nodes'][number] => ({
  ...{ url, operator: url, state: 'paused', reason: 'HTTP 429', pausedForMs: 0, requests: 9, refusals: 1 },
  ...{ requestsToday: 9, answerMs: null },
  ...rest,
});

async function save(...nodes: ChainStatus['nodes']): Promise<void> {
  await saveChainStatus(db, 'devnet', unixMs(NOW), {
    ...{ blind: null, headNumber: 7, ownSolidNumber: 7, nodeSolidNumber: 7, processedNumber: 7 },
    ...{ catchUp: null, requestsPerBlock: null, nodes },
  });
}

const after = (ms: number) => findRememberedPauses(db, 'devnet', unixMs(NOW + ms));
const reason = 'HTTP 429';

test('a network that no watcher wrote of has no pauses', async () => {
  expect(await findRememberedPauses(db, 'nile', unixMs(NOW))).toEqual([]);
});

test('pauses go on from where they were, and failures in a row outlive their pause', async () => {
  await save(node('a', { pausedForMs: 12_000, failures: 5 }), node('b', { state: 'healthy' }));
  expect(await after(2000)).toEqual([{ url: 'a', reason, failures: 5, pausedForMs: 10_000 }]);
  expect(await after(60_000)).toEqual([{ url: 'a', reason, failures: 5, pausedForMs: 0 }]);
});

test('after ten minutes failures are forgotten, and a pause that a node asked for is not', async () => {
  await save(node('a', { failures: 5 }), node('b', { failures: 1, pausedForMs: 3_600_000 }));
  expect(await after(600_001)).toEqual([{ url: 'b', reason, failures: 0, pausedForMs: 2_999_999 }]);
});

test('a clock that was set back makes no pause longer, and what an older release wrote is read', async () => {
  await save(node('a', { pausedForMs: 12_000 }));
  expect(await after(-3_600_000)).toEqual([{ url: 'a', reason, failures: 0, pausedForMs: 12_000 }]);
});

test.each([
  '{}',
  '{"nodes": null}',
  '{"nodes": 7}',
  '{"nodes": [null, 7, {}, {"url": 1, "reason": null, "pausedForMs": 1}, {"url": "a", "reason": null, "pausedForMs": "9"}]}',
])('what somebody wrote in its place, %s, holds up nobody who begins to follow the network', async (status) => {
  await save(node('http://a', { pausedForMs: 5000, failures: 1 }));
  await db.script(`update chain_status set status = '${status}'`);
  expect(await after(0)).toEqual([]);
});

test('the newest block of a stuck network keeps the time at which it was the newest for the first time', async () => {
  const solid = { number: 7, id: '07'.repeat(32), time: unixMs(NOW) };
  await insertCursor(db, 'nile', solid, null);
  const text = 'select (extract(epoch from live_at) * 1000000)::int8 as live_micros from chain_cursors';
  const live = async () => (await db.run(unlistedStatement('', { liveMicros: 'int8?' }, text), []))[0]?.liveMicros;
  await markLive(db, 'nile', false);
  const first = await live();
  expect(first).toEqual(expect.any(BigInt));
  // Another process sees the same block.
  await markLive(db, 'nile', false);
  expect(await live()).toBe(first);
  await markLive(db, 'nile', true);
  expect(await live()).toBeGreaterThan(first ?? 0n);
});

test('text that PostgreSQL cannot store as it is stops neither a status nor an alarm', async () => {
  const text = 'a\u0000b\ud800\u001bc\n';
  await save(node('a', { reason: text, failures: 1 }));
  expect(await after(0)).toMatchObject([{ reason: 'a\ufffdb\ufffd\ufffdc\n' }]);
  const alarm = { kind: 'blind', subject: text } as const;
  expect(await raiseAlarm(db, 'devnet', { id: randomUUID(), ...alarm, detail: `${text.padEnd(1999)}😀` })).toBe(true);
  expect(await findOpenAlarms(db, 'devnet')).toMatchObject([{ detail: expect.stringMatching(/^a\ufffdb.*\ufffd$/s) }]);
  expect(await resolveAlarms(db, 'devnet', 'blind', text)).toBe(1);
});

test('a watcher that no node has answered yet shows its nodes, and the heights that were known before', async () => {
  const nodes = [node('b', { reason: 'HTTP 500' })];
  const seen = { blind: 'no node is available', nodes, catchUp: null };
  await saveNodesStatus(db, 'mainnet', unixMs(NOW), seen);
  expect(await findChainStatus(db, 'mainnet')).toBeNull();
  await save(node('a', {}));
  await saveNodesStatus(db, 'devnet', unixMs(NOW + 5000), seen);
  expect(await findChainStatus(db, 'devnet')).toMatchObject({
    updatedAt: NOW + 5000,
    status: { headNumber: 7, ...seen },
  });
});
