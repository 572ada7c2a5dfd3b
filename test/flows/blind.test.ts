import { type Devnet, startDevnet } from '@quittance/devnet';
import { parseAddress } from '@quittance/tron/address';
import { expect, onTestFinished, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import type { Clock } from '../../src/core/runtime/clock.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { alarmsOf } from '../support/fault-flow.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';

async function blindGauge(metricsUrl: string | null): Promise<string | undefined> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return /^quittance_chain_blind\{.*\} (.*)$/m.exec(text)?.[1];
}

type Over = Pick<TestService, 'connectionString'> & { devnet: Devnet; clock: Clock; blockMs?: number; url?: string };

/** Starts a watcher on a database, by default with the devnet's node and at the real network's block interval. */
async function startWatching({
  connectionString,
  devnet,
  clock,
  blockMs = 3000,
  url = devnet.url,
}: Over): Promise<Service> {
  const usdt = parseAddress(devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  return startService({
    config: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      databasePoolSize: 4,
      roles: ['watcher'],
      networks: { devnet: { nodes: [unlimitedNode(url)], usdt: usdt.account, agreement: 1 } },
      metrics: { host: '127.0.0.1', port: 0 },
      trustProxy: [],
      rateLimit: { perSecond: 1, burst: 1 },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    keyRing: null,
    connection: connectionString,
    log: createLogger({ level: 'silent' }),
    clock,
    blockMs,
  });
}

/** Starts the service on the database of `before` with a node of a new chain with `blocks` blocks, the last of which was just made. */
async function startOverAnotherChain({ connectionString, clock }: TestService, blocks: number) {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  devnet.mine(blocks, { timestampMs: clock.now() - blocks * 3000 });
  const service = await startWatching({ connectionString, clock, devnet, blockMs: 100 });
  return {
    metricsUrl: service.metricsUrl,
    stop: async () => {
      await service.stop();
      await devnet.stop();
    },
  };
}

test.each([
  ['shorter than', 3],
  ['longer than, and contradicts,', 300],
])('a fresh chain that is %s what was examined counts as blind', async (_how, blocks) => {
  const before = await startTestService();
  try {
    before.devnet.mineUntilSolid();
    await eventually(
      async () =>
        (await (await fetch(`${before.metricsUrl}/readyz`)).json()) as { networks: { devnet: { headBlock?: number } } },
      ({ networks }) => networks.devnet.headBlock === before.devnet.head().number,
    );
    await before.stopService();
    before.clock.advance(3_600_000);
    const other = await startOverAnotherChain(before, blocks);
    try {
      expect(
        await eventually(
          () => blindGauge(other.metricsUrl),
          (value) => value === '1',
        ),
      ).toBe('1');
    } finally {
      await other.stop();
    }
  } finally {
    await before.stop();
  }
});

test('a first start, which begins a minute and a half back, and a start after an outage of a minute and a half are never blind', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const startMs = Math.floor(Date.now() / 3000) * 3000;
  let nowMs = startMs;
  const genesisTimestampMs = startMs - 200 * 3000;
  const devnet = await startDevnet({ dataDir: null, blockMs: 0, producers: 27, genesisTimestampMs });
  onTestFinished(() => devnet.stop());
  devnet.mine(200);
  const { connectionString } = database;
  const examineAll = async () => {
    const service = await startWatching({ connectionString, devnet, clock: { now: () => nowMs } });
    try {
      const { number } = devnet.head();
      await eventually(
        () => findCursor(service.db, 'devnet'),
        (cursor) => cursor?.head.number === number,
      );
      return await alarmsOf(service, 'blind');
    } finally {
      await service.stop();
    }
  };
  expect(await examineAll()).toEqual([]);
  devnet.mine(30);
  nowMs += 90_000;
  expect(await examineAll()).toEqual([]);
});

test('after a restart with another node, the alarm that is still open names that node', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  onTestFinished(() => devnet.stop());
  devnet.mine(3);
  const { connectionString } = database;
  const watch = async (url: string, until: (service: Service) => Promise<unknown>) => {
    const service = await startWatching({ connectionString, devnet, clock: { now: Date.now }, blockMs: 100, url });
    await until(service).finally(service.stop);
  };
  await watch(devnet.url, ({ db }) =>
    eventually(
      () => findCursor(db, 'devnet'),
      (cursor) => cursor !== null,
    ),
  );
  for (const node of [await devnet.addNode(), await devnet.addNode()]) {
    node.setFault({ kind: 'unavailable-503' });
    await watch(node.url, async (service) => {
      const alarms = await eventually(
        () => alarmsOf(service, 'blind'),
        (seen) => seen.some(({ isOpen, detail }) => isOpen && detail.includes(node.url)),
      );
      expect(alarms[0]?.detail.match(/http:[^ ]*/g)).toEqual([expect.stringContaining(node.url)]);
    });
  }
});
