import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import {
  countOpenAlarms,
  findSilenced,
  raiseAlarm,
  reopenAlarms,
  resolveAlarms,
} from '../../src/core/store/chain/alarms.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { acknowledgeAlarms, readAlarmKind, showStatus } from '../../src/faces/operator/subjects/chain.ts';
import { startTestConsole, type TestConsole } from '../console/console.ts';
import { createWorld as createOperators, startReceiver } from '../notify/fixture.ts';
import { call, eventually } from '../support/service.ts';
import { World } from './world.ts';

const world = new World();
let console_: TestConsole;
beforeAll(async () => {
  await world.open(4);
  console_ = await startTestConsole(world.service);
});
afterAll(async () => {
  await console_.stop();
  await world.close();
});

/**
 * Statements that hide alarms, repeated continuously with the service's rights. `told` is the alarm about them; `null` if the texts of the
 * alarms are lost too.
 */
const LOOPS: readonly (readonly [what: string, sql: string, told: string | null])[] = [
  ['that alarms are over', 'update alarms set resolved_at = now() where resolved_at is null', 'alarms-silenced'],
  [
    'that they are over, with the seals of others',
    `update alarms set resolved_at = coalesce(resolved_at, now()), closed_mac = coalesce(
       (select closed_mac from alarms where closed_mac is not null limit 1), decode(repeat('ab', 24), 'hex'))
     where resolved_at is null or closed_mac is null`,
    'alarms-silenced',
  ],
  [
    'that they are over, each time with another made-up key',
    `update alarms set resolved_at = coalesce(resolved_at, now()), closed_mac = substring(sha256(random()::text::bytea) for 24)
     where resolved_at is null or closed_mac is null`,
    'key-unknown',
  ],
  [
    'that they are over and were never sealed',
    `update alarms set mac = null where resolved_at is null; update alarms set resolved_at = now() where resolved_at is null`,
    null,
  ],
];

async function hide(sql: string): Promise<{ stop(): Promise<void> }> {
  const client = new pg.Client({ connectionString: world.service.connectionString });
  await client.connect();
  let isOver = false;
  const work = (async () => {
    while (!isOver) {
      await client.query(sql).catch((error: unknown) => {
        // In a deadlock between this client and a watch, the database ends one of them.
        if (!(error instanceof pg.DatabaseError && error.code === '40P01')) throw error;
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  let stopped: Promise<void> | null = null;
  const stop = () => {
    isOver = true;
    stopped ??= work.then(() => client.end());
    return stopped;
  };
  onTestFinished(stop);
  return { stop };
}

const deps = () => ({ db: world.service.db, now: () => unixMs(world.service.clock.now()) });
const status = async () => {
  const { view } = await showStatus(deps(), commandActor('test'), { network: 'devnet' });
  return view.alarms.map(({ kind, subject }) => `${kind} ${subject}`);
};

test.each(LOOPS)(
  'whoever writes %s hides none: lists, counts and pages have it, and another that tells of it',
  async (_, sql, told) => {
    const areWordsLost = told === null;
    const hidden = await hide(sql);
    const order = await world.order();
    await world.asOwner('update invoices set event_count = 1 where id = $1', [order.uuid]);
    await world.read(order);
    world.service.clock.advance(30_000);
    // If the attacker removes seals too, the alarm's text can't be shown, only that alarms were changed.
    const about = (alarms: readonly string[]) =>
      // A check may have raised it just now, with its text.
      alarms.some(
        (each) => (areWordsLost && each === 'row-changed ') || each === `row-changed invoices.status ${order.uuid}`,
      );
    const isTold = (alarms: readonly string[]) =>
      about(alarms) && alarms.some((each) => told === null || each.startsWith(`${told} `));
    await eventually(status, isTold);
    for (let looks = 0; looks < 10; looks += 1) expect(await status()).toSatisfy(isTold);
    const { text: page } = await console_.get('/chain');
    expect([order.uuid, ...(areWordsLost ? ['Quittance did not raise'] : [])].some((part) => page.includes(part))).toBe(
      true,
    );
    await eventually(
      () => call(`${world.service.metricsUrl}/readyz`),
      ({ body }) => body.networks.devnet.alarms.includes('row-changed'),
    );

    await hidden.stop();
    await world.asOwner('update invoices set event_count = 0 where id = $1', [order.uuid]);
    // The next checks repair the loop's last changes. A person then closes one of the alarms, but can't close the other.
    await eventually(
      async () => [...(await countOpenAlarms(world.service.db, 'devnet')).keys()],
      (kinds) => kinds.includes('row-changed') && kinds.includes('alarms-silenced'),
    );
    await world.lookAgain();
    const kind = 'row-changed';
    // A process that read the row before it was repaired may raise the alarm once more.
    await eventually(
      async () => {
        if (about(await status())) {
          const operating = { ...deps(), networks: ['devnet'] as const };
          await acknowledgeAlarms.run(operating, commandActor('anna'), { network: 'devnet', kind, subject: null });
        }
        return about(await status());
      },
      (isOpen) => !isOpen,
    );
    expect((await countOpenAlarms(world.service.db, 'devnet')).get('alarms-silenced')).toBe(1);
    expect(() => readAlarmKind('alarms-silenced')).toThrow('closes automatically');
  },
);

test('an alarm that is over stays over: whoever writes the contrary is refused', async () => {
  const { db } = world.service;
  const about = { kind: 'not-solid' as const, subject: 'x', detail: 'as it was' };
  await raiseAlarm(db, 'devnet', { id: randomUUID(), ...about });
  expect(await resolveAlarms(db, 'devnet', about.kind)).toBe(1);
  expect(await status()).not.toContain('not-solid x');
  const reopen = `update alarms set resolved_at = null where kind = 'not-solid'`;
  await expect(world.asService(reopen)).rejects.toThrow('is never changed');
  await expect(world.asService('update alarms set needs_closing = false')).rejects.toThrow('permission denied');
  // Raised again, it's a different alarm with its own end.
  expect(await raiseAlarm(db, 'devnet', { id: randomUUID(), ...about })).toBe(true);
  await world.asService(`update alarms set resolved_at = now(), closed_mac = (
    select closed_mac from alarms where kind = 'not-solid' and closed_mac is not null limit 1)
    where kind = 'not-solid' and resolved_at is null`);
  expect(await status()).toContain('not-solid x');
  const found = await findSilenced(db, 'devnet');
  await eventually(
    () => resolveAlarms(db, 'devnet', about.kind),
    (closed) => closed === 1,
  );
  expect(await status()).not.toContain('not-solid x');
  // A check that found the false end before the alarm was properly closed acts only now.
  await reopenAlarms(db, found);
  expect(await status()).not.toContain('not-solid x');
  await world.lookAgain();
  expect(await status()).not.toContain('not-solid x');
});

test('a channel is told of an alarm that was written away with its words, and not that it is over', async () => {
  const operators = await createOperators({ rowMacs: 'require' });
  const { received, url } = await startReceiver();
  await operators.addChannel('slack', { url });
  await operators.raise('row-changed', 'invoices 1', 'a row of invoices is not as it was sealed');
  await operators.sql('update alarms set resolved_at = now()');
  operators.start();
  await eventually(
    async () => received,
    ({ length }) => length > 0,
  );
  const text = String(received[0]?.json['text']);
  expect(text).toContain('ALARM on devnet: row-changed (invoices 1)');
  expect(text).toContain('a row of invoices is not as it was sealed');
  await operators.resolve('row-changed', 'invoices 1');
  await eventually(
    async () => received,
    ({ length }) => length > 1,
  );
  expect(String(received[1]?.json['text'])).toContain('Resolved on devnet: row-changed');
});
