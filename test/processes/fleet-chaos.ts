import { setTimeout as delay } from 'node:timers/promises';
import { createDice, type Dice } from './dice.ts';
import { type Fleet, type Member, type Role, startFleet } from './fleet.ts';
import { findViolations, findViolationsAtRest } from './invariants.ts';
import { untilAtRest } from './rest.ts';
import { leaderOf, now, resumeFenced, type Takeover, untilTakenOver } from './takeover.ts';

export type ChaosFigures = {
  kills: Record<Role, number>;
  pauses: Record<Role, number>;
  takeovers: Takeover[];
  /** How long after its killed sender's lease ended each webhook was delivered, in milliseconds. */
  deliveredAfterLeaseMs: number[];
  acknowledged: number;
  retries: number;
  payments: number;
  webhooks: number;
  repeats: number;
  violations: string[];
};

/** The watcher's lease lasts 8 s, and a delivery's 25 s. Both pauses are longer, so that a process that wakes up is fenced. */
const PAST_LEASE_MS = { watcher: 11_000, webhooks: 28_000 };
const REST_MS = 120_000;

/** Kills and pauses a fleet's processes `actions` times under load, according to the seed, and compares the books after each. */
export async function runFleetChaos(options: { seed: number; actions: number }): Promise<ChaosFigures> {
  const dice = createDice(options.seed);
  const fleet = await startFleet(dice);
  const figures: ChaosFigures = {
    kills: { api: 0, watcher: 0, webhooks: 0 },
    pauses: { api: 0, watcher: 0, webhooks: 0 },
    ...{ takeovers: [], deliveredAfterLeaseMs: [], violations: [] },
    ...{ acknowledged: 0, retries: 0, payments: 0, webhooks: 0, repeats: 0 },
  };
  try {
    for (let index = 0; index < options.actions && figures.violations.length === 0; index += 1) {
      await actions(fleet, dice, figures)[index % ACTIONS]?.();
      figures.violations.push(...(await findViolations(fleet.world)));
      await delay(dice.below(2000));
    }
    await fleet.customers.stop();
    await untilAtRest({ client: fleet.client, devnet: fleet.devnet, limitMs: REST_MS });
    figures.violations.push(...fleet.customers.complaints, ...(await findViolationsAtRest(fleet.world)));
    const { customers, receiver } = fleet;
    const counts = { retries: customers.retries(), payments: customers.payments(), repeats: receiver.repeats() };
    return { ...figures, ...counts, acknowledged: customers.acknowledged.length, webhooks: receiver.bodies.size };
  } finally {
    await fleet.stop();
  }
}

const ACTIONS = 7;

/** The actions run in turn, so that each occurs; the dice decide which process they hit, and when. */
function actions(fleet: Fleet, dice: Dice, figures: ChaosFigures): (() => Promise<void>)[] {
  const any = (role: Role) => dice.pick(fleet.members.filter((member) => member.role === role));
  const kill = async (member: Member) => {
    figures.kills[member.role] += 1;
    await fleet.replace(member);
  };
  const pause = async (member: Member, ms: number) => {
    figures.pauses[member.role] += 1;
    member.process.signal('SIGSTOP');
    await delay(ms);
    member.process.signal('SIGCONT');
  };
  return [
    async () => {
      const since = await now(fleet.client);
      await kill(leaderOf(fleet));
      figures.takeovers.push(await untilTakenOver(fleet.client, since));
    },
    () => kill(any('api')),
    () => killSender(fleet, kill, any('webhooks'), figures),
    () => pauseLeader(fleet, figures),
    () => pause(any('api'), 2000 + dice.below(4000)),
    async () => {
      const stillAwake = kill(any('api'));
      await Promise.all([pause(any('webhooks'), PAST_LEASE_MS.webhooks), stillAwake]);
    },
    async () => {
      const standby = fleet.members.find((member) => member.role === 'watcher' && member !== leaderOf(fleet));
      if (standby !== undefined) await kill(standby);
    },
  ];
}

/** Pauses the leader beyond its lease, at any point. Another one takes over, and the first writes nothing when it wakes up. */
async function pauseLeader(fleet: Fleet, figures: ChaosFigures): Promise<void> {
  const leader = leaderOf(fleet);
  const since = await now(fleet.client);
  figures.pauses.watcher += 1;
  leader.process.signal('SIGSTOP');
  const [takeover] = await Promise.all([untilTakenOver(fleet.client, since), delay(PAST_LEASE_MS.watcher)]);
  figures.takeovers.push(takeover);
  figures.violations.push(...(await resumeFenced(leader)));
}

/** Kills a sender while its receiver keeps it waiting. The other one takes over its deliveries when their leases end. */
async function killSender(
  { client, receiver }: Fleet,
  kill: (member: Member) => Promise<void>,
  sender: Member,
  figures: ChaosFigures,
): Promise<void> {
  receiver.delayBy(4000);
  const { rows: held } = await untilSomethingIsHeld(client);
  await kill(sender);
  receiver.delayBy(0);
  const deadline = performance.now() + REST_MS;
  for (;;) {
    // Deliveries held by the other sender were made by that one, before its lease ended.
    const { rows } = await client.query(
      `select d.status, extract(epoch from d.finished_at - h.until) * 1000 as late
       from unnest($1::uuid[], $2::timestamptz[]) h (event_id, until) join deliveries d on d.event_id = h.event_id`,
      [held.map(({ event_id }) => event_id), held.map(({ until }) => until)],
    );
    if (rows.every(({ status }) => status === 'delivered')) {
      figures.deliveredAfterLeaseMs.push(...rows.map(({ late }) => Number(late)).filter((late) => late > 0));
      return;
    }
    if (performance.now() > deadline) {
      figures.violations.push(`not delivered ${REST_MS} ms after their sender died: ${JSON.stringify(rows)}`);
      return;
    }
    await delay(100);
  }
}

async function untilSomethingIsHeld(client: Fleet['client']) {
  for (let attempt = 1; ; attempt += 1) {
    const held = await client.query<{ event_id: string; until: Date }>(
      `select event_id, next_attempt_at as until from deliveries
       where status = 'pending' and attempt_count > 0 and next_attempt_at > now()`,
    );
    if (held.rows.length > 0 || attempt === 300) return held;
    await delay(50);
  }
}
