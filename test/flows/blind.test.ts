import { expect, test } from 'vitest';
import { startDevnet } from '../../src/devnet/devnet.ts';
import { unlimitedNode } from '../../src/domain/node.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { startService } from '../../src/service.ts';
import { parseAddress } from '../../src/tron/address.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';

async function blindGauge(metricsUrl: string | null): Promise<string | undefined> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return /^quittance_chain_blind\{.*\} (.*)$/m.exec(text)?.[1];
}

/** Starts the service over the database of `before` with a node of a new chain that has `blocks` blocks, the last one just made. */
async function startOverAnotherChain(before: TestService, blocks: number) {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  devnet.mine(blocks, { timestampMs: before.clock.now() - blocks * 3000 });
  const usdt = parseAddress(devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const service = await startService({
    config: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      databasePoolSize: 4,
      roles: ['watcher'],
      networks: { devnet: { nodes: [unlimitedNode(devnet.url)], usdt: usdt.account, agreement: 1 } },
      metrics: { host: '127.0.0.1', port: 0 },
      trustProxy: [],
      rateLimit: { perSecond: 1, burst: 1 },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    keyRing: null,
    connection: before.connectionString,
    log: createLogger({ level: 'silent' }),
    clock: before.clock,
  });
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
        (await (await fetch(`${before.url}/readyz`)).json()) as { networks: { devnet: { headBlock?: number } } },
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
