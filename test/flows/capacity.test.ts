import { randomBytes, randomUUID } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { DAY_MS, unixMs } from '../../src/core/domain/time.ts';
import { startCapacityWatch } from '../../src/core/payments/measure-capacity.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { findOpenAlarms, raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { runSql } from '../contract/sql.ts';
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

/** The narrowest surcharge: 9 code words for each amount and address. */
const NARROW = { maxSurchargeMicro: 100n, addressCount: 1 };
const WORDS = 9;
const HOUR_MS = 3_600_000;

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

/** Returns a project's metric as Prometheus reads it; `null` if there is none. */
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

describe('measured by the leader', () => {
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  test('a project that runs out of payable amounts is an alarm, seen in the metrics, until addresses are added', async () => {
    const project = await createTestProject(service.db, NARROW);
    await orderUntilRefused(project, '25.00');
    expect((await order(project, '25')).status).toBe(409);
    expect(await metricOf('quittance_amount_unavailable_total', project)).toBe('2');
    // The alarm doesn't wait for the next measurement. One that began before the orders may replace its words or close it until the next.
    const words = /refused an invoice of 25\.000000 USDT \(AMOUNT_UNAVAILABLE\)|for 25\.000000 USDT, 0 of 9 are free/;
    await eventually(
      () => alarmOf(project),
      (detail) => words.test(detail ?? ''),
    );
    // It's measured when a watcher becomes the leader.
    await service.restart();
    await untilMetric('quittance_capacity_free_ratio', project, '0');
    await untilMetric('quittance_capacity_days_left', project, '0');
    const expected = `${project.projectId} is running out of payable amounts: for 25.000000 USDT, 0 of 9 are free. Add addresses: quittance address add --project ${project.projectId} T…`;
    await eventually(
      () => alarmOf(project),
      (detail) => detail === expected,
    );
    const readyz = await call(`${service.metricsUrl}/readyz`);
    expect(readyz.body.networks.devnet.alarms).toContain('capacity-low');

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
  test('the metric of open alarms counts them all, however many there are', async () => {
    for (let i = 0; i < 120; i++) {
      const alarm = { id: randomUUID(), kind: 'contract-event', subject: `tx-${i}`, detail: 'Something.' } as const;
      await raiseAlarm(service.db, 'devnet', alarm);
    }
    await eventually(
      async () => (await fetch(`${service.metricsUrl}/metrics`)).text(),
      (text) => text.includes('quittance_alarms_open{network="devnet",kind="contract-event"} 120'),
    );
    await resolveAlarms(service.db, 'devnet', 'contract-event');
  });

  test('a service that is stopped while it measures ends, and leaves no connection', async () => {
    // Two of them, because a transaction keeps seeing the activity from when it first looked.
    const clients = [1, 2, 3].map(() => new pg.Client(service.ownerString));
    const [locker, viewer, follower] = clients as [pg.Client, pg.Client, pg.Client];
    await Promise.all(clients.map((client) => client.connect()));
    const activity = async (condition: string) => {
      const where = `datname = current_database() and application_name = 'quittance' and ${condition}`;
      return (await viewer.query(`select pid from pg_stat_activity where ${where}`)).rows.length;
    };
    try {
      await service.stopService();
      // The start reads all tables. Measuring begins once it follows the network, which waits for the row of its lease.
      await follower.query('begin; select from leases for update');
      await service.restart();
      await locker.query('begin; lock table api_keys in access exclusive mode');
      await follower.query('commit');
      const measuring = "wait_event_type = 'Lock' and query like '%as has_keys%'";
      await eventually(
        () => activity(measuring),
        (count) => count === 1,
      );
      const stopped = service.stopService();
      await locker.query('commit');
      await stopped;
      await eventually(
        () => activity('true'),
        (count) => count === 0,
      );
    } finally {
      await Promise.all(clients.map((client) => client.end()));
      await service.restart();
    }
  });
});

const SILENT = createLogger({ level: 'silent' });

/** Measures as the leader of a network does until `isDone`, at a time that the test sets. */
async function watchUntil(
  isDone: () => Promise<boolean>,
  { laterMs = 0, log = SILENT, isLeader = () => true as boolean } = {},
): Promise<void> {
  const watch = startCapacityWatch({
    db: service.db,
    network: 'devnet',
    now: () => unixMs(Date.now() + laterMs),
    log,
    metrics: createMetrics(),
    isLeader,
  });
  try {
    await eventually(isDone, (done) => done);
  } finally {
    await watch.stop();
  }
}
describe('measured by a test, because a leader would measure at other times', () => {
  beforeAll(async () => {
    service = await startTestService({ config: { roles: ['api'] } });
  });
  afterAll(() => service.stop());

  test('each project has an alarm of its own, which ends when nobody asked for the amount in 30 days', async () => {
    const [first, second] = [await createTestProject(service.db, NARROW), await createTestProject(service.db, NARROW)];
    await orderUntilRefused(first, '3');
    await orderUntilRefused(second, '4');
    const isMeasured = async (project: TestProject) =>
      (await alarmOf(project))?.includes('USDT, 0 of 9 are free') === true;
    await watchUntil(async () => (await isMeasured(first)) && (await isMeasured(second)));
    await addAddresses(first, 14);
    await watchUntil(async () => (await alarmOf(first)) === null);
    expect(await alarmOf(second)).toContain('for 4.000000 USDT, 0 of 9 are free');
    await watchUntil(async () => (await alarmOf(second)) === null, { laterMs: 31 * DAY_MS });
  });

  test('the alarm names the three most urgent amounts and counts the others', async () => {
    const project = await createTestProject(service.db, NARROW);
    for (const amount of ['1', '2', '3', '4']) {
      for (let i = 0; i < 5; i++) await order(project, amount);
    }
    await orderUntilRefused(project, '5');
    await watchUntil(async () => (await alarmOf(project))?.includes('running out') === true);
    const detail = await alarmOf(project);
    expect(detail).toMatch(
      /amounts: for 5\.000000 USDT, 0 of 9 are free.*; for .*; for .*; and 2 more\. Add addresses/,
    );
  });

  test('a project without an address is an alarm once a key was made an hour ago, and no sooner', async () => {
    const bare = await createTestProject(service.db, { addressCount: 0 });
    const probe = await createTestProject(service.db, NARROW);
    await orderUntilRefused(probe, '6');
    // Projects are measured in order of their ids, so the bare one was measured before the probe.
    await watchUntil(async () => (await alarmOf(probe)) !== null);
    expect(await alarmOf(bare)).toBeNull();
    await watchUntil(async () => (await alarmOf(bare)) !== null, { laterMs: 2 * HOUR_MS });
    expect(await alarmOf(bare)).toContain('has no active address with its policy tail, so no invoice can be created');
    await addAddresses(bare, 1);
    await watchUntil(async () => (await alarmOf(bare)) === null, { laterMs: 2 * HOUR_MS });
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
      log: SILENT,
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

  test('a shop that is closed, without an address and without a key, has no alarm any more', async () => {
    const project = await createTestProject(service.db, NARROW);
    await orderUntilRefused(project, '9');
    await service.db.script(`update addresses set retired_at = now() where project_id = '${project.id}'`);
    await watchUntil(async () => (await alarmOf(project))?.includes('has no active address') === true);
    await service.db.script(`update api_keys set revoked_at = now() where project_id = '${project.id}'`);
    await watchUntil(async () => (await alarmOf(project)) === null);
  });

  test('a project that cannot be measured is logged once in a round and keeps no other from being measured', async () => {
    const [before, broken, after] = [
      await createTestProject(service.db, NARROW),
      await createTestProject(service.db, NARROW),
      await createTestProject(service.db, NARROW),
    ];
    await orderUntilRefused(before, '11');
    await order(broken, '12');
    await orderUntilRefused(after, '13');
    // The refusals raised them; from now on, only a measurement can raise them.
    await service.db.script('update alarms set resolved_at = now() where resolved_at is null');
    // A width of zero causes a division by zero in the database, only for this project.
    await runSql(
      service,
      'alter table projects drop constraint projects_max_surcharge_micro_check, drop constraint projects_surcharge_holds_words',
    );
    await runSql(service, 'update projects set max_surcharge_micro = 0 where id = $1', [broken.id]);
    const lines: string[] = [];
    const log = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
    const reported = () => lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
    // Leadership is checked every second, which leaves time for many retries.
    let looks = 0;
    let enough = Number.POSITIVE_INFINITY;
    const isLeader = () => {
      looks += 1;
      return true;
    };
    await watchUntil(
      async () => {
        // A round reports its failures at its end.
        if (enough === Number.POSITIVE_INFINITY && reported().length > 0) enough = looks + 3;
        return looks >= enough;
      },
      { log, isLeader },
    );
    expect(reported()).toMatchObject([
      { failures: 1, msg: expect.stringContaining(`for ${broken.projectId}; Quittance retries`) },
    ]);
    expect(reported()[0].err.message).toContain('division by zero');
    expect(await alarmOf(before)).not.toBeNull();
    expect(await alarmOf(after)).not.toBeNull();
    await runSql(
      service,
      `update projects set max_surcharge_micro = 100 where id = '${broken.id}';
     alter table projects add constraint projects_max_surcharge_micro_check
      check (max_surcharge_micro between 100 and 1000000),
      add constraint projects_surcharge_holds_words check
        (max_surcharge_micro >= case policy when 'tail-4' then 10000 when 'tail-3' then 100000 else 100 end)`,
    );
  });

  test.each(['is stopped', 'loses the lead'])(
    'a process that %s while it measures tells nothing of it',
    async (what) => {
      // The only projects of their network, without an address, so that there is something to report.
      await createTestProject(service.db, { network: 'nile', addressCount: 0 });
      const metrics = createMetrics();
      let looks = 0;
      const watch = startCapacityWatch({
        db: service.db,
        network: 'nile',
        now: () => unixMs(Date.now() + 2 * HOUR_MS),
        log: SILENT,
        metrics,
        // Checked before a round, and before and after measuring a project.
        isLeader: () => {
          looks += 1;
          if (looks === 2 && what === 'is stopped') void watch.stop();
          return looks <= 2 || what === 'is stopped';
        },
      });
      await eventually(
        () => looks,
        (seen) => seen >= (what === 'is stopped' ? 2 : 4),
      );
      await watch.stop();
      expect(await findOpenAlarms(service.db, 'nile')).toEqual([]);
      expect((await metrics.capacityFreeRatio.get()).values).toEqual([]);
    },
  );

  test('an amount that was refused is measured, although all its invoices are old, until something is free for it', async () => {
    const project = await createTestProject(service.db, NARROW);
    for (let i = 0; i < WORDS; i++) expect((await order(project, '6')).status).toBe(201);
    const laterMs = 60 * DAY_MS;
    service.clock.advance(laterMs);
    expect((await order(project, '6')).body.code).toBe('AMOUNT_UNAVAILABLE');
    const isMeasured = async () => (await alarmOf(project))?.includes('for 6.000000 USDT, 0 of 9 are free') === true;
    await watchUntil(isMeasured, { laterMs });
    await addAddresses(project, 14);
    await watchUntil(async () => (await alarmOf(project)) === null, { laterMs });
  });
});
