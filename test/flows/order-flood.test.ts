import { randomBytes, randomUUID } from 'node:crypto';
import { type AccountXpub, deriveAddresses } from '@quittance/tron/account-xpub';
import { HDKey } from '@scure/bip32';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { microUsdt } from '../../src/core/domain/money.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createRelief, deriveNextAddresses } from '../../src/core/payments/derive-addresses.ts';
import { createUnpaidGate } from '../../src/core/payments/unpaid-gate.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { recordedActor } from '../../src/faces/operator/record-actions.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { runSql } from '../contract/sql.ts';
import { setPolicy } from '../support/policies.ts';
import {
  type Answer,
  call,
  createInvoice,
  createPatiently,
  createTestProject,
  eventually,
  payableOf,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
/** Another process on the same database, which only answers requests. */
let other: Service;
beforeAll(async () => {
  service = await startTestService();
  other = await startService({
    config: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      databasePoolSize: 5,
      roles: ['api'],
      networks: {},
      metrics: null,
      trustProxy: [],
      rateLimit: { perSecond: 100_000, burst: 100_000 },
      webhooks: { localTargets: true, retentionDays: 90 },
    },
    keyRing: null,
    connection: service.connectionString,
    log: createLogger({ level: 'silent' }),
    clock: service.clock,
    lagMs: () => 0,
  });
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

/** A range of 100 micro-USDT contains nine code words. */
const WORDS = 9;
const MINUTE_MS = 60_000;
/** An order's exact amount, for any shop. */
const POOL = { policy: 'exact' as const, maxSurchargeMicro: 10_000n, requestedMicro: microUsdt(25_000_000n) };

const newXpub = () => HDKey.fromMasterSeed(randomBytes(32)).derive("m/44'/195'/0'").publicExtendedKey as AccountXpub;

/** Creates a shop whose only addresses come from its account key: one at first, and up to `limit` more automatically. */
async function openShop(limit: number | null, count = 1): Promise<TestProject & { xpub: AccountXpub }> {
  const project = await createTestProject(service.db, { addressCount: 0, maxSurchargeMicro: 100n });
  const xpub = newXpub();
  await derive(project.id, xpub, count);
  if (limit !== null) await setLimit(project, limit);
  return { ...project, xpub };
}

async function derive(projectId: string, xpub: AccountXpub, count: number): Promise<void> {
  const operating = {
    db: service.db,
    now: () => unixMs(Date.now()),
    random: randomBytes,
    actor: recordedActor(commandActor('ada')),
  };
  const outcome = await deriveNextAddresses(operating, { projectId, xpub, count, policy: null });
  expect(outcome.kind).toBe('derived');
}

const setLimit = ({ id }: TestProject, limit: number) =>
  runSql(service, 'update account_keys set auto_derive_limit = $2 where project_id = $1', [id, limit]);

const order = ({ apiKey }: TestProject, amount = '25.00', url = service.url): Promise<Answer> =>
  createPatiently({ ...service, url } as TestService, { apiKey, body: { amount } });

const expectRefused = (answer: Answer, status: number, code: string) =>
  expect(answer).toMatchObject({ status, body: { status, code } });

async function orderMany(project: TestProject, count: number): Promise<void> {
  for (let i = 0; i < count; i++) expect((await order(project)).status, `order ${i + 1}`).toBe(201);
}

async function addressesOf({ id }: TestProject): Promise<string[]> {
  const rows = await runSql(service, 'select address from addresses where project_id = $1 order by position', [id]);
  return rows.map((row) => String(row['address']));
}

const recorded = ({ id }: TestProject) =>
  runSql(
    service,
    "select subject, (detail->>'index')::int as index from operator_actions where project_id = $1 and acted_by = 'quittance' order by id",
    [id],
  );

const expected = (xpub: AccountXpub, from: number, count: number) =>
  deriveAddresses(xpub, from, count).map(({ address }) => address);

async function alarmOf({ projectId }: TestProject, kind: string): Promise<string | null> {
  const alarms = await findOpenAlarms(service.db, 'devnet');
  return alarms.find((alarm) => alarm.kind === kind && alarm.subject === projectId)?.detail ?? null;
}

describe('a flood of unpaid orders of one amount', () => {
  test('takes new addresses of the account key by itself up to the bound, and then the alarm names it and the command', async () => {
    const shop = await openShop(3);
    await orderMany(shop, 4 * WORDS);
    expect(await addressesOf(shop)).toEqual(expected(shop.xpub, 0, 4));
    const derived = expected(shop.xpub, 1, 3);
    expect(await recorded(shop)).toEqual(derived.map((subject, i) => ({ subject, index: i + 1 })));

    expectRefused(await order(shop), 409, 'AMOUNT_UNAVAILABLE');
    // A measurement from before the last order may have closed it for a moment.
    const detail = await eventually(
      () => alarmOf(shop, 'capacity-low'),
      (found) => found !== null,
    );
    expect(detail).toContain(
      "has automatically derived 3 addresses from the project's account key, which is the limit",
    );
    expect(detail).toContain(`quittance address derive --project ${shop.projectId} --auto-limit 103`);
    await setLimit(shop, 4);
    service.clock.advance(MINUTE_MS);
    await orderMany(shop, WORDS);
    expect(await addressesOf(shop)).toEqual(expected(shop.xpub, 0, 5));
  });

  test('is ahead of it: an address is added when 80 % are taken, before anybody is kept waiting', async () => {
    const shop = await openShop(10);
    await orderMany(shop, 8);
    expect(
      await eventually(
        () => addressesOf(shop),
        (addresses) => addresses.length > 1,
      ),
    ).toEqual(expected(shop.xpub, 0, 2));
  });

  test('that comes to two processes at once loses no order and derives no address twice', async () => {
    const shop = await openShop(20);
    // In waves, so that no request waits long enough to be refused.
    for (let wave = 0; wave < 6; wave++) {
      const urls = Array.from({ length: WORDS }, (_, i) => (i % 2 === 0 ? service.url : (other.url ?? '')));
      const answers = await Promise.all(urls.map((url) => order(shop, '25.00', url)));
      expect(answers.map(({ status }) => status)).toEqual(Array(WORDS).fill(201));
    }
    // An address may still be added at the same time as the last answers.
    const [addresses] = await eventually(
      () => Promise.all([addressesOf(shop), recorded(shop)]),
      ([all, reported]) => reported.length === all.length - 1,
    );
    expect(addresses).toEqual(expected(shop.xpub, 0, addresses.length));
    expect(addresses.length).toBeGreaterThanOrEqual(6);
    expect(addresses.length).toBeLessThanOrEqual(9);
  });

  test('takes the last address that a key may yield, also if another look derived it meanwhile', async () => {
    const shop = await createTestProject(service.db, { addressCount: 0 });
    await setPolicy(service, shop, 'exact');
    await derive(shop.id, newXpub(), 1);
    await setLimit(shop, 1);
    await orderMany(shop, 1);
    const pool = { ...POOL, projectId: shop.id };
    const look = () => {
      const log = createLogger({ level: 'silent' });
      return createRelief({ db: service.db, now: () => unixMs(Date.now()), random: randomBytes, log }).relieve(pool);
    };
    expect(await look()).toEqual({ addresses: 2n, total: 2n, free: 1n });
    expect(await look()).toEqual({ addresses: 2n, total: 2n, free: 1n });
    await orderMany(shop, 1);
    expect(await look()).toBe(null);
  });

  test('looks again at once after a clock that was ahead is corrected', async () => {
    const shop = await createTestProject(service.db, { addressCount: 0 });
    await setPolicy(service, shop, 'exact');
    await derive(shop.id, newXpub(), 1);
    await setLimit(shop, 0);
    await orderMany(shop, 1);
    const pool = { ...POOL, projectId: shop.id };
    let aheadMs = 86_400_000;
    const now = () => unixMs(Date.now() + aheadMs);
    const log = createLogger({ level: 'silent' });
    const relief = createRelief({ db: service.db, now, random: randomBytes, log });
    expect(await relief.relieve(pool)).toBe(null);
    await setLimit(shop, 1);
    aheadMs = 0;
    expect(await relief.relieve(pool)).toMatchObject({ addresses: 2n });
  });

  test('of a project of the policy exact takes an address for each order, up to the bound', async () => {
    const shop = await createTestProject(service.db, { addressCount: 0 });
    await setPolicy(service, shop, 'exact');
    await derive(shop.id, newXpub(), 1);
    await setLimit(shop, 4);
    await orderMany(shop, 5);
    expectRefused(await order(shop), 409, 'AMOUNT_UNAVAILABLE');
  });

  test('is answered 409 where the key may yield nothing by itself, as those that were there before the upgrade', async () => {
    const shop = await openShop(0);
    await orderMany(shop, WORDS);
    expectRefused(await order(shop), 409, 'AMOUNT_UNAVAILABLE');
    expect(await addressesOf(shop)).toHaveLength(1);
  });

  test('takes no address of a key that was restored before its time, and none for a project that has none in use', async () => {
    const restored = await openShop(3);
    await runSql(service, 'update account_keys set first_index = 2000000000 where project_id = $1', [restored.id]);
    await orderMany(restored, WORDS);
    expectRefused(await order(restored), 409, 'AMOUNT_UNAVAILABLE');
    expect(await addressesOf(restored)).toHaveLength(1);

    const closed = await openShop(3);
    await runSql(service, 'update addresses set retired_at = now() where project_id = $1', [closed.id]);
    expectRefused(await order(closed), 409, 'AMOUNT_UNAVAILABLE');
    expect(await addressesOf(closed)).toHaveLength(1);
  });

  test('takes no address of a wallet that was left: a key of which every address is retired yields none, and the next key does', async () => {
    const shop = await openShop(3);
    const left = await addressesOf(shop);
    const xpub = newXpub();
    await derive(shop.id, xpub, 1);
    await runSql(service, 'update addresses set retired_at = now() where address = any($1)', [left]);
    await orderMany(shop, WORDS);
    await orderMany(shop, 1);
    expect((await recorded(shop)).map(({ subject }) => subject)).toEqual(expected(xpub, 1, 1));

    const pasted = await openShop(3);
    await derive(pasted.id, newXpub(), 1);
    await setLimit(pasted, 0);
    await runSql(service, 'update account_keys set auto_derive_limit = 3 where xpub = $1', [pasted.xpub]);
    await runSql(service, 'update addresses set retired_at = now() where address = $1', [
      (await addressesOf(pasted))[0],
    ]);
    await orderMany(pasted, WORDS);
    expectRefused(await order(pasted), 409, 'AMOUNT_UNAVAILABLE');
    expect(await addressesOf(pasted)).toHaveLength(2);
  });

  test('a key that is new may yield 100 addresses by itself', async () => {
    const shop = await openShop(null);
    const [key] = await runSql(service, 'select * from account_keys where project_id = $1', [shop.id]);
    expect(key).toMatchObject({ auto_derive_limit: 100, auto_derived: 0 });
  });
});

describe('limits of unpaid invoices', () => {
  test('of a minute: more are 429 with Retry-After, use nothing up, and go on when the minute is over', async () => {
    const shop = await createTestProject(service.db, { maxUnpaidPerMinute: 5, maxUnpaid: 100 });
    const goOn = service.clock.freeze();
    try {
      const [idempotencyKey, externalId] = [randomUUID(), `order-${randomUUID()}`];
      const asked = { apiKey: shop.apiKey, idempotencyKey, body: { externalId } };
      await orderMany(shop, 5);
      service.clock.advance(20_000);
      const refused = await createInvoice(service, asked);
      expectRefused(refused, 429, 'TOO_MANY_UNPAID');
      expect(refused.headers).toMatchObject({
        'retry-after': '40',
        ratelimit: '"unpaid-per-minute";r=0;t=40',
        'ratelimit-policy': '"unpaid-per-minute";q=5;w=60',
      });
      expect(refused.body.detail).toContain('has reached its limit of 5 unpaid invoices from the last minute');
      service.clock.advance(40_001);
      expect((await createInvoice(service, asked)).status).toBe(201);
    } finally {
      goOn();
    }
  });

  test('at once: a payment makes room, and so do 30 minutes', async () => {
    const shop = await createTestProject(service.db, { maxUnpaid: 4, maxUnpaidPerMinute: null });
    const first = await order(shop);
    await orderMany(shop, 3);
    expectRefused(await order(shop), 429, 'TOO_MANY_UNPAID');
    const own = { ...service, project: shop };
    const { address, amountMicro } = await payableOf(own as TestService, first.body.invoiceId);
    await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
    service.devnet.mineUntilSolid();
    await untilStatus(own as TestService, first.body.invoiceId, 'PAID');
    await eventually(
      () => order(shop),
      ({ status }) => status === 201,
    );
    expectRefused(await order(shop), 429, 'TOO_MANY_UNPAID');
    service.clock.advance(30 * MINUTE_MS);
    await orderMany(shop, 4);
  });

  test('never refuse a repeat, a conflict or a key that was revoked otherwise than without them', async () => {
    const shop = await createTestProject(service.db, { maxUnpaid: 2, maxUnpaidPerMinute: 2 });
    const asked = {
      apiKey: shop.apiKey,
      idempotencyKey: randomUUID(),
      body: { externalId: `order-${randomUUID()}` },
    };
    const created = await createInvoice(service, asked);
    await orderMany(shop, 1);
    expectRefused(await order(shop), 429, 'TOO_MANY_UNPAID');
    const repeated = await createInvoice(service, asked);
    expect([repeated.status, repeated.body]).toEqual([201, created.body]);
    expect(repeated.headers['idempotent-replayed']).toBe('true');
    const conflict = await createInvoice(service, { ...asked, idempotencyKey: randomUUID() });
    expectRefused(conflict, 409, 'IDEMPOTENCY_CONFLICT');
    await runSql(service, 'update api_keys set revoked_at = now() where project_id = $1', [shop.id]);
    expectRefused(await order(shop), 401, 'UNAUTHENTICATED');
  });

  test('hold for two processes together: half a limit more at most, however many ask at once', async () => {
    const limit = 20;
    const shop = await createTestProject(service.db, { maxUnpaid: limit, maxUnpaidPerMinute: null });
    const answers = await Promise.all(
      Array.from({ length: 3 * limit }, (_, i) => order(shop, '25.00', i % 2 === 0 ? service.url : (other.url ?? ''))),
    );
    const created = answers.filter(({ status }) => status === 201).length;
    expect(created).toBeGreaterThanOrEqual(limit - 1);
    expect(created).toBeLessThanOrEqual(1.5 * limit);
    for (const { status, body } of answers) expect([201, 429], JSON.stringify(body)).toContain(status);
  });

  test('hold exactly in one process, however many ask at once', async () => {
    const limit = 20;
    const shop = await createTestProject(service.db, { maxUnpaid: limit, maxUnpaidPerMinute: null });
    const answers = await Promise.all(Array.from({ length: 3 * limit }, () => order(shop)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(limit);
  });

  test('refuse nobody before they are reached, however many come at once', async () => {
    for (let round = 0; round < 4; round++) {
      const shop = await createTestProject(service.db, { maxUnpaid: 60, maxUnpaidPerMinute: 60 });
      const answers = await Promise.all(Array.from({ length: 60 }, () => order(shop, '25.00', other.url ?? '')));
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(60);
      expectRefused(await order(shop, '25.00', other.url ?? ''), 429, 'TOO_MANY_UNPAID');
    }
  });

  test('do not count invoices from before a clock was set back as new', async () => {
    const shop = await createTestProject(service.db, { maxUnpaid: 2, maxUnpaidPerMinute: 2 });
    await orderMany(shop, 2);
    const enter = (behindMs: number) =>
      createUnpaidGate({ db: service.db, now: () => unixMs(service.clock.now() - behindMs) }).enter(shop.id);
    expect(await enter(MINUTE_MS / 2)).toMatchObject({ kind: 'limited' });
    expect(await enter(60 * MINUTE_MS)).toMatchObject({ kind: 'pass' });
  });

  test('raise the alarm order-flood, which names project, amount, count and what to do, and ends by itself', async () => {
    const shop = await createTestProject(service.db, { maxUnpaid: 6, maxUnpaidPerMinute: 6 });
    await orderMany(shop, 5);
    expect((await order(shop, '7')).status).toBe(201);
    expect(await alarmOf(shop, 'order-flood')).toBeNull();
    expectRefused(await order(shop), 429, 'TOO_MANY_UNPAID');
    const detail = await alarmOf(shop, 'order-flood');
    expect(detail).toContain(`${shop.projectId} has reached its limit of 6 unpaid invoices from`);
    expect(detail).toContain('5 of the recent unpaid invoices are for 25.000000 USDT.');
    expect(detail).toContain(`quittance project update ${shop.projectId} --max-unpaid`);
    const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
    expect(text).toMatch(new RegExp(`quittance_unpaid_refused_total\\{[^}]*${shop.projectId}"\\} 1`));
    expect((await call(`${service.metricsUrl}/readyz`)).body.networks.devnet.alarms).toContain('order-flood');
    service.clock.advance(30 * MINUTE_MS);
    await eventually(
      () => alarmOf(shop, 'order-flood'),
      (found) => found === null,
    );
  });

  test('of a project that was made without a word about them are 600 and 120 a minute', async () => {
    const [{ rows } = { rows: null }] = await runSql(
      service,
      `insert into projects (id, name, network) values (gen_random_uuid(), 'Shop', 'nile')
       returning array[max_unpaid, max_unpaid_per_minute] as rows`,
    );
    expect(rows).toEqual([600, 120]);
  });
});
