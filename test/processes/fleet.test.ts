import { afterEach, expect, test } from 'vitest';
import { eventually } from '../support/service.ts';
import { createDice } from './dice.ts';
import { type Fleet, startFleet } from './fleet.ts';
import { findViolationsAtRest } from './invariants.ts';
import { untilAtRest } from './rest.ts';
import { leaderOf, now, resumeFenced, TAKEOVER_LIMIT_MS, untilTakenOver } from './takeover.ts';

let fleet: Fleet | null = null;
afterEach(async () => {
  await fleet?.stop();
  fleet = null;
});

const SEED = Date.now() % 1_000_000;

// The long form, with everything in turn and at random, is test/long/process-fleet.test.ts.
test(`seven processes over one database: a watcher that is paused inside a transaction is followed within 10 s and then writes nothing, while others are killed (seed ${SEED})`, async () => {
  const dice = createDice(SEED);
  const started = await startFleet(dice, {
    when: 'before',
    what: 'commit',
    having: 'chain-cursor-update',
    nth: 2,
    signal: 'SIGSTOP',
  });
  fleet = started;
  const { members, client, customers, world, devnet } = started;
  const paused = leaderOf(started);
  const stoppedMs = await eventually(paused.process.firedMs, (fired) => fired !== null);
  const { epoch } = await now(client);
  const takenOver = untilTakenOver(client, { atMs: Number(stoppedMs), epoch });
  for (const role of ['api', 'webhooks'] as const) {
    await started.replace(dice.pick(members.filter((member) => member.role === role)));
  }
  const { leaseMs } = await takenOver;
  const written = await resumeFenced(paused);
  await customers.stop();
  devnet.mineUntilSolid();
  await untilAtRest({ client, devnet, limitMs: 40_000 });
  expect(leaseMs).toBeLessThan(TAKEOVER_LIMIT_MS);
  expect(written).toEqual([]);
  expect([...customers.complaints, ...(await findViolationsAtRest(world))]).toEqual([]);
}, 120_000);
