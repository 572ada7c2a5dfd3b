import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY_MS } from '../../src/domain/capacity.ts';
import { uuidV7 } from '../../src/domain/ids.ts';
import { unixMs } from '../../src/domain/time.ts';
import { startCapacityWatch } from '../../src/payments/watch-capacity.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { insertAddress } from '../../src/store/addresses.ts';
import { findOpenAlarms } from '../../src/store/alarms.ts';
import { type AccountHex, accountToAddress } from '../../src/tron/address.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

/** The narrowest surcharge: 9 code words for each amount and address. */
const NARROW = { maxSurchargeMicro: 100n, addressCount: 1 };
const WORDS = 9;

const order = ({ apiKey }: TestProject, amount: string) => createInvoice(service, { apiKey, body: { amount } });

async function orderUntilRefused(project: TestProject, amount: string): Promise<void> {
  for (let i = 0; i < WORDS; i++) expect((await order(project, amount)).status).toBe(201);
  expect((await order(project, amount)).body.code).toBe('AMOUNT_UNAVAILABLE');
}

async function addAddresses(project: TestProject, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const account = randomBytes(20).toString('hex') as AccountHex;
    const id = uuidV7(Date.now(), randomBytes(10));
    await insertAddress(service.db, { id, projectId: project.id, account, address: accountToAddress(account) });
  }
}

async function alarmOf({ projectId }: TestProject): Promise<string | null> {
  const alarms = await findOpenAlarms(service.db, 'devnet');
  return alarms.find(({ kind, subject }) => kind === 'capacity-low' && subject === projectId)?.detail ?? null;
}

/** The value of a metric of a project, as Prometheus reads it; `null` if there is none. */
async function metricOf(name: string, { projectId }: TestProject): Promise<string | null> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name}{`) && each.includes(`project="${projectId}"`));
  return line?.split(' ').at(-1) ?? null;
}

async function untilMetric(name: string, project: TestProject, value: string): Promise<void> {
  await eventually(
    () => metricOf(name, project),
    (seen) => seen === value,
  );
}

test('a project that runs out of payable amounts is an alarm, seen in the metrics, until addresses are added', async () => {
  const project = await createTestProject(service.db, NARROW);
  await orderUntilRefused(project, '25.00');
  expect((await order(project, '25')).status).toBe(409);
  expect(await metricOf('quittance_amount_unavailable_total', project)).toBe('2');
  // It is measured when a watcher begins to lead.
  await service.restart();
  await untilMetric('quittance_capacity_free_ratio', project, '0');
  await untilMetric('quittance_capacity_days_left', project, '0');
  const expected = `${project.projectId} is running out of payable amounts: for 25.000000 USDT 0 of 9 are free. Add addresses: quittance address add --project ${project.projectId} T…`;
  await eventually(
    () => alarmOf(project),
    (detail) => detail === expected,
  );
  const readyz = await call(`${service.url}/readyz`);
  expect(readyz.body.networks.devnet.alarms).toEqual(['capacity-low']);

  await addAddresses(project, 14);
  await service.restart();
  await eventually(
    () => alarmOf(project),
    (found) => found === null,
  );
  await untilMetric('quittance_capacity_free_ratio', project, String((14 * WORDS) / (15 * WORDS)));
  await untilMetric('quittance_capacity_days_left', project, '14');
  await eventually(
    async () => (await fetch(`${service.metricsUrl}/metrics`)).text(),
    (text) => text.includes('quittance_alarms_open{network="devnet",kind="capacity-low"} 0'),
  );
});

/** Measures until `isDone`, as the leader of a network does, at a time of the test's own. */
async function watchUntil(isDone: () => Promise<boolean>, laterMs = 0): Promise<void> {
  const log = createLogger({ level: 'silent' });
  const watch = startCapacityWatch({
    db: service.db,
    network: 'devnet',
    now: () => unixMs(Date.now() + laterMs),
    log,
    metrics: createMetrics(),
    isLeader: () => true,
  });
  try {
    await eventually(isDone, (done) => done);
  } finally {
    await watch.stop();
  }
}

test('each project has an alarm of its own, which ends when nobody asked for the amount in 30 days', async () => {
  const [first, second] = [await createTestProject(service.db, NARROW), await createTestProject(service.db, NARROW)];
  await orderUntilRefused(first, '3');
  await orderUntilRefused(second, '4');
  await watchUntil(async () => (await alarmOf(first)) !== null && (await alarmOf(second)) !== null);
  await addAddresses(first, 14);
  await watchUntil(async () => (await alarmOf(first)) === null);
  expect(await alarmOf(second)).toContain('for 4.000000 USDT 0 of 9 are free');
  await watchUntil(async () => (await alarmOf(second)) === null, 31 * DAY_MS);
});

test('the alarm names the three most urgent amounts and counts the others', async () => {
  const project = await createTestProject(service.db, NARROW);
  for (const amount of ['1', '2', '3', '4']) {
    for (let i = 0; i < 5; i++) await order(project, amount);
  }
  await orderUntilRefused(project, '5');
  await watchUntil(async () => (await alarmOf(project)) !== null);
  const detail = await alarmOf(project);
  expect(detail).toMatch(/amounts: for 5\.000000 USDT 0 of 9 are free.*; for .*; for .*; and 2 more\. Add addresses/);
});

test('a project without an address is an alarm once a key was made an hour ago, and no sooner', async () => {
  const bare = await createTestProject(service.db, { addressCount: 0 });
  const probe = await createTestProject(service.db, NARROW);
  await orderUntilRefused(probe, '6');
  // Projects are measured in the order of their ids, so the bare one was before the probe.
  await watchUntil(async () => (await alarmOf(probe)) !== null);
  expect(await alarmOf(bare)).toBeNull();
  await watchUntil(async () => (await alarmOf(bare)) !== null, 2 * 3_600_000);
  expect(await alarmOf(bare)).toContain('has no active address of its policy tail, so no invoice can be created');
  await addAddresses(bare, 1);
  await watchUntil(async () => (await alarmOf(bare)) === null, 2 * 3_600_000);
});

test('a process that does not lead measures nothing, and forgets what it measured when it led', async () => {
  const project = await createTestProject(service.db, NARROW);
  await order(project, '8');
  const metrics = createMetrics();
  let isLeader = true;
  const shown = async () => (await metrics.capacityDaysLeft.get()).values.map(({ labels }) => labels['project']);
  const watch = startCapacityWatch({
    db: service.db,
    network: 'devnet',
    now: () => unixMs(Date.now()),
    log: createLogger({ level: 'silent' }),
    metrics,
    isLeader: () => isLeader,
  });
  try {
    await eventually(shown, (projects) => projects.includes(project.projectId));
    isLeader = false;
    await eventually(shown, (projects) => projects.length === 0);
  } finally {
    await watch.stop();
  }
});
