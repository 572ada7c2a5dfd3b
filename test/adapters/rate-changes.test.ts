import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { boundsAround, isLargeChange } from '../../src/core/domain/price.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { enableAdapter } from '../../src/faces/operator/subjects/adapters.ts';
import { addChannel } from '../../src/faces/operator/subjects/notify.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestProject, startTestService, type TestService } from '../support/service.ts';
import { orderAtEpusdt, send } from './fixture.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { roles: ['api', 'watcher'], rowMacs: 'require' } });
  for (const topic of ['alerts-one', 'alerts-two']) {
    const given = { kind: 'ntfy', name: topic, url: `https://ntfy.example.com/${topic}` };
    const wanted = addChannel.read(given as never, now());
    await addChannel.run(deps(), commandActor('anna'), wanted);
  }
});
afterAll(() => service.stop());

const now = () => unixMs(service.clock.now());
function deps() {
  const masterKeys = TEST_KEY_RING.keys().map(({ bytes }) => bytes.toString('base64'));
  const config = { masterKeys, databaseUrl: 'postgres://', dataDir: '/nowhere', webhooks: { localTargets: true } };
  return { db: service.db, now, random: randomBytes, config, note: () => undefined } as never;
}

type Given = Parameters<typeof enableAdapter.read>[0];

/** Creates an adapter at 7.2 CNY in a new project. */
async function adapterAt(rate = '7.2') {
  const { projectId } = await createTestProject(service.db, { addressCount: 1 });
  const change = async (given: Partial<Given>) => {
    const wanted = enableAdapter.read({ kind: 'epusdt', projectId, ...given } as Given, now());
    return enableAdapter.run(deps(), commandActor('anna'), wanted);
  };
  const adapter = await change({ rate });
  const told = () =>
    runSql(service, 'select channel_id, title, body, is_urgent from notifications where body like $1 order by id', [
      `%${adapter.adapterId}%`,
    ]);
  return { adapter, change, told };
}

test('7.2 does not become 72000, with whatever bounds and confirmation', async () => {
  const { change, told } = await adapterAt();
  const attempts: Partial<Given>[] = [
    { rate: '72000' },
    { rate: '72000', confirmRate: '7.2:72000' },
    { rate: '72000', rateMin: '50000', rateMax: '100000' },
    { rate: '72000', rateMin: '50000', rateMax: '100000', confirmRate: '7.2:72000' },
    { rate: '72000', rateMin: '7', rateMax: '100000', confirmRate: '7.2:72000' },
  ];
  for (const attempt of attempts) {
    await expect(change(attempt)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  }
  expect(await change({ rate: '7.2' })).toMatchObject({ rate: '7.2', rateMin: '5.04', rateMax: '10.08' });
  expect(await told()).toEqual([]);
});

test('a change of more than a fifth is made only by who says both rates, and every channel hears both', async () => {
  const { change, told } = await adapterAt();
  expect(await change({ rate: '8.64' })).toMatchObject({ rate: '8.64' });
  expect(await told()).toEqual([]);
  await expect(change({ rate: '6.5' })).rejects.toThrow(/the current rate is 8\.64 CNY.* the new rate is 6\.5/);
  await expect(change({ rate: '6.5', confirmRate: '7.2:6.5' })).rejects.toThrow('8.64:6.5');
  await expect(change({ rate: '6.5', confirmRate: '6.5' })).rejects.toThrow(/such as 7\.2:9/);
  // A confirmation with other rates is refused even if none is required.
  await expect(change({ rate: '8.7', confirmRate: '8.64:8.9' })).rejects.toThrow('8.64:8.7');
  expect(await change({ rate: '6.5', confirmRate: '8.64:6.50' })).toMatchObject({ rate: '6.5', rateMax: '10.08' });
  const rows = await told();
  expect(new Set(rows.map(({ channel_id: id }) => id)).size).toBe(2);
  for (const row of rows) {
    expect(row).toMatchObject({ is_urgent: true, title: 'Adapter rate on devnet: 8.64 to 6.5 CNY' });
    expect(row['body']).toMatch(/"anna" changed .* from 8\.64 to 6\.5 CNY/);
  }
});

test('bounds that reach further are a large change; closer ones are none, and what they refuse stays refused', async () => {
  const { change, told } = await adapterAt();
  const wider = { rate: '7.2', rateMin: '6.9', rateMax: '13.8' };
  await expect(change(wider)).rejects.toThrow(/5\.04 to 10\.08 would become 6\.9 to 13\.8/);
  await change({ ...wider, confirmRate: '7.2:7.2' });
  expect(await told()).toHaveLength(2);
  await change({ rate: '7.2', rateMin: '7', rateMax: '7.5' });
  expect(await told()).toHaveLength(2);
  await expect(change({ rate: '7.6' })).rejects.toMatchObject({ field: 'rate' });
  await expect(change({ rate: '7.6', rateMin: '7.55', rateMax: '8' })).rejects.toMatchObject({ field: 'rateMin' });
});

const price = fc.integer({ min: 1, max: 4_000_000 }).map((micro) => String(micro / 100_000));
const given = fc.record(
  {
    rate: fc.oneof({ weight: 3, arbitrary: fc.double({ min: 0.5, max: 2.2, noNaN: true }) }, price),
    bounds: fc.tuple(fc.double({ min: 0.4, max: 1.2, noNaN: true }), fc.double({ min: 0.8, max: 2.5, noNaN: true })),
    confirms: fc.boolean(),
  },
  { requiredKeys: ['rate', 'confirms'] },
);

test('whatever is tried, in whatever order, no order is priced outside the bounds, and no large change is made unsaid', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(given, { maxLength: 6 }), async (attempts) => {
      const { adapter, change } = await adapterAt();
      let before = adapter;
      for (const { rate, bounds, confirms } of attempts) {
        const next = typeof rate === 'number' ? (Number(before.rate) * rate).toFixed(5) : rate;
        const limits =
          bounds === undefined
            ? {}
            : { rateMin: (Number(next) * bounds[0]).toFixed(5), rateMax: (Number(next) * bounds[1]).toFixed(5) };
        const confirmation = confirms ? { confirmRate: `${before.rate}:${next}` } : {};
        const after = await change({ rate: next, ...limits, ...confirmation }).catch((error: { code?: string }) => {
          expect(error.code).toBe('INVALID_ARGUMENT');
          return null;
        });
        if (after === null) continue;
        const [from, to] = [Number(before.rate), Number(after.rate)];
        expect(to).toBeGreaterThanOrEqual(Number(after.rateMin));
        expect(to).toBeLessThanOrEqual(Number(after.rateMax));
        // One step at most halves or doubles the rate.
        expect(to / from).toBeGreaterThan(0.49);
        expect(to / from).toBeLessThan(2.01);
        if (!confirms) {
          expect(Math.abs(to - from) / from).toBeLessThanOrEqual(0.2 + 1e-9);
          expect(Number(after.rateMin)).toBeGreaterThanOrEqual(Number(before.rateMin));
          expect(Number(after.rateMax)).toBeLessThanOrEqual(Number(before.rateMax));
        }
        before = { ...before, ...after };
      }
      const order = orderAtEpusdt({ url: 'http://127.0.0.1:1' }, { amount: 1000 }, adapter.secret ?? '');
      const path = `${service.url}${adapter.path}/api/v1/order/create-transaction`;
      const { data } = (await send(path, { body: JSON.stringify(order) })).body;
      expect(data.actual_amount).toBeGreaterThanOrEqual(1000 / Number(before.rateMax));
      // Within a cent and the tail.
      expect(data.actual_amount).toBeLessThanOrEqual(1000 / Number(before.rateMin) + 0.02);
    }),
    { numRuns: 25 },
  );
});

test('the database itself refuses a rate outside the bounds, fixed or read', async () => {
  const { adapter } = await adapterAt();
  const set = (columns: string) =>
    runSql(service, `update webhook_endpoints set ${columns} where adapter is not null and rate_micro = 7200000`);
  await expect(set('rate_micro = 72000000000')).rejects.toThrow('webhook_endpoints_rate_bounds');
  await expect(set('rate_max_micro = null')).rejects.toThrow('webhook_endpoints_rate_bounds');
  expect(adapter.rate).toBe('7.2');
});

test('the bounds around a fixed rate hold it, and the upper is about twice the lower', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 18n }), (rate) => {
      const { minMicro, maxMicro } = boundsAround(rate);
      expect(minMicro > 0n && minMicro <= rate && rate <= maxMicro).toBe(true);
      if (rate >= 10_000n) expect(maxMicro <= 2n * minMicro + 4n).toBe(true);
      expect(isLargeChange(rate, rate)).toBe(false);
      expect(isLargeChange(rate, rate + rate / 5n + 1n)).toBe(true);
      expect(isLargeChange(rate, rate - rate / 5n)).toBe(false);
    }),
  );
});
