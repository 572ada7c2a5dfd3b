import { afterEach, expect } from 'vitest';
import { eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { createDice } from './dice.ts';
import { type Fleet, startFleet } from './fleet.ts';
import { findViolationsAtRest } from './invariants.ts';
import { untilAtRest } from './rest.ts';
import { firstEpoch, resumeFenced, TAKEOVER_LIMIT_MS, untilTakenOver } from './takeover.ts';

let fleet: Fleet | null = null;
afterEach(async () => {
  await fleet?.stop();
  fleet = null;
});

const SEED = Date.now() % 1_000_000;

// test/long/process-fleet.test.ts is the long version, with every action in turn and at random times.
longTest(
  `seven processes over one database: a watcher that is paused inside a transaction is followed by another and then writes nothing, while others are killed (seed ${SEED})`,
  async () => {
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
    // Another watcher may have taken over before all were ready.
    const paused = members.find(({ role }) => role === 'watcher');
    if (paused === undefined) throw new Error('there is no watcher');
    const stoppedMs = await eventually(paused.process.firedMs, (fired) => fired !== null);
    const takenOver = untilTakenOver(client, { atMs: Number(stoppedMs), epoch: await firstEpoch(client) });
    for (const role of ['api', 'webhooks'] as const) {
      await started.replace(dice.pick(members.filter((member) => member.role === role)));
    }
    const { leaseMs } = await takenOver;
    const written = await resumeFenced(paused);
    await customers.stop();
    devnet.mineUntilSolid();
    await untilAtRest({ client, devnet, limitMs: 90_000 });
    // The long version requires 10 s; here others use the processors too.
    expect(leaseMs).toBeLessThan(2 * TAKEOVER_LIMIT_MS);
    expect(written).toEqual([]);
    expect([...customers.complaints, ...(await findViolationsAtRest(world))]).toEqual([]);
  },
);
