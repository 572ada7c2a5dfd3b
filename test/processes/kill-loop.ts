import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Devnet, startDevnet } from '@quittance/devnet';
import type pg from 'pg';
import { inject } from 'vitest';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { eventually } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';
import { createChainTruth } from './chain-truth.ts';
import { type Customers, compareWithService, startCustomers } from './customers.ts';
import { createDice, type Dice } from './dice.ts';
import { type Failpoint, nameOf } from './failpoint.ts';
import { findViolations, findViolationsAtRest, type World } from './invariants.ts';
import { killPostgres } from './kill-postgres.ts';
import { type Death, type Life, startLife } from './life.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { untilAtRest } from './rest.ts';
import { hurryInvoices, MASTER_KEY, openShops, type Shop } from './shop.ts';

export type KillPlan = {
  seed: number;
  /** One entry for each life of the service; `null` means a random time of death. Places that are never reached are repeated at the end. */
  lives: readonly (Failpoint | null)[];
  /** Every n-th life gets no help: the killed process's leases must expire by themselves. 0 means never. */
  honestEvery: number;
  /** Every n-th life kills PostgreSQL together with the service. 0 means never. */
  postgresEvery: number;
  /** Creates some invoices whose deadline is brought forward, so that a short run sees them expire. */
  hurriesInvoices: boolean;
};

/** The service uses the intervals of real networks, and follows a faster chain up to 3 s behind; forks must reach back that far. */
const BLOCK_MS = 1000;
const FORK_MS = 2000;
/** A failpoint that isn't reached in this time doesn't occur in this life. */
const FAILPOINT_LIFE_MS = 20_000;
const RANDOM_LIFE_MS = 2500;
/** The watcher's lease, and some slack. */
const HONEST_LIFE_MS = 12_000;
/** A delivery's lease, and the work after it. */
const REST_MS = 90_000;
/** How many acknowledged invoices are requested again through the service after each start, and at the end. */
const SAMPLE = { atStart: 3, atRest: 300 };

type Loop = {
  plan: KillPlan;
  folder: string;
  dataDir: string;
  url: string;
  port: number;
  devnet: Devnet;
  receiver: Receiver;
  dice: Dice;
  figures: KillFigures;
};
type Known = Omit<World, 'client'>;

/**
 * Repeatedly kills the whole service and its PostgreSQL under load, and compares the books after each start and at the end. Customers,
 * chain and receiver live in this process and keep running. Ends at the first violation.
 */
export async function runKillLoop(plan: KillPlan): Promise<KillFigures> {
  const folder = await mkdtemp(join(inject('runDirectory'), 'kill-'));
  // When started by root, PostgreSQL runs as another user, who creates its socket here.
  await chmod(folder, 0o1777);
  const secret = createWebhookSecret(randomBytes);
  const receiver = await startReceiver(secret);
  const genesisTimestampMs = Date.now() - 20 * BLOCK_MS;
  const devnet = await startDevnet({ dataDir: null, blockMs: BLOCK_MS, genesisTimestampMs });
  const port = await findSteadyPort();
  const figures = emptyFigures();
  const places = { folder, dataDir: join(folder, 'data'), port, url: `http://127.0.0.1:${port}` };
  try {
    devnet.mineUntilSolid();
    await liveAndDie({ plan, ...places, devnet, receiver, dice: createDice(plan.seed), figures }, secret);
    return figures;
  } finally {
    await devnet.stop();
    await receiver.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export type KillFigures = ReturnType<typeof emptyFigures>;

function emptyFigures() {
  return {
    /** How often the service died at each place, by name. */
    deaths: new Map<string, number>(),
    /** Failpoints that weren't reached, so the life was ended at another moment. */
    missed: [] as string[],
    postgresKills: 0,
    honestLives: 0,
    acknowledged: 0,
    retries: 0,
    payments: 0,
    webhooks: 0,
    repeats: 0,
    statuses: {} as Record<string, number>,
    violations: [] as string[],
  };
}

async function liveAndDie(loop: Loop, secret: string): Promise<void> {
  const { plan, devnet, receiver, figures, dice, url } = loop;
  let life: Life | null = null;
  const begin = async (failpoint: Failpoint | null, isHonest: boolean): Promise<Life> => {
    life = await startNext(loop, life, failpoint, isHonest);
    return life;
  };
  const forking = setInterval(() => forkSometimes(devnet, dice), FORK_MS);
  let customers: Customers | null = null;
  try {
    const first = await begin(null, true);
    await first.service.ready;
    const shops = await openShops(databaseOf(first).connection, { url: receiver.url, secret });
    const truth = createChainTruth(
      devnet,
      shops.flatMap(({ addresses }) => addresses),
    );
    customers = startCustomers({ count: 3, urls: [url], shops, devnet, dice, pauseMs: 100 });
    const { acknowledged } = customers;
    const known: Known = { truth, receiver, acknowledged, paid: new Set(), compared: new Set() };
    await first.dieWithin(RANDOM_LIFE_MS);
    const lives = [...plan.lives];
    for (const [index, failpoint] of lives.entries()) {
      const isTurn = (every: number) => every > 0 && (index + 1) % every === 0;
      const isHonest = isTurn(plan.honestEvery);
      const killsPostgres = isTurn(plan.postgresEvery);
      const next = await begin(failpoint, isHonest);
      const diesMs = isHonest ? HONEST_LIFE_MS : failpoint === null ? dice.below(RANDOM_LIFE_MS) : FAILPOINT_LIFE_MS;
      const dying = next.dieWithin(diesMs, { killsPostgres });
      await look(loop, next, known, shops);
      const death = await dying;
      count(figures, death, failpoint);
      if (failpoint !== null && isToBeTriedAgain(figures, failpoint)) lives.push({ ...failpoint, nth: 1 });
      if (death === 'by itself') figures.violations.push(`the service ended by itself: ${next.service.output()}`);
      if (isHonest) figures.honestLives += 1;
      if (killsPostgres) figures.postgresKills += 1;
      if (figures.violations.length > 0) return;
    }
    clearInterval(forking);
    await rest(loop, await begin(null, true), customers, known);
  } finally {
    clearInterval(forking);
    customers?.abandon();
    await (life as Life | null)?.dieWithin(0);
    await killPostgres(loop.dataDir);
  }
}

/** Ends the leases of the previous process, unless the life must wait for them to expire by themselves. */
async function startNext(
  loop: Loop,
  former: Life | null,
  failpoint: Failpoint | null,
  isHonest: boolean,
): Promise<Life> {
  const { devnet, folder, dataDir, port, url } = loop;
  const life = await startLife({
    ...{ folder, dataDir, failpoint },
    formerSocket: former?.database?.connection.host ?? null,
    env: {
      QUITTANCE_PORT: String(port),
      QUITTANCE_PUBLIC_URL: url,
      QUITTANCE_DEVNET_NODES: devnet.url,
      QUITTANCE_DEVNET_USDT: devnet.usdtContract,
      QUITTANCE_MASTER_KEY: MASTER_KEY,
      // The test writes unsealed rows.
      QUITTANCE_ROW_MACS: 'warn',
    },
  });
  if (!isHonest && life.database !== null) await unlessDead(life, endLeases(life.database.client));
  return life;
}

/** Pretends that the dead process's leases have expired. */
async function endLeases(client: pg.Client): Promise<void> {
  await client.query('update leases set expires_at = now() where expires_at > now()');
  await client.query(
    "update deliveries set next_attempt_at = now() where status = 'pending' and next_attempt_at > now()",
  );
}

/** Compares the books, and asks the service for some of its acknowledged invoices. */
async function look(
  { plan, url, dice, figures }: Loop,
  life: Life,
  known: Known,
  shops: readonly Shop[],
): Promise<void> {
  const { client } = life.database ?? {};
  if (client === undefined) return;
  const compare = async () => {
    if ((await life.service.ready) === 'ended') return;
    if (plan.hurriesInvoices) await hurryInvoices(client, url, shops);
    const found = await findViolations({ ...known, client });
    for (let i = 0; i < SAMPLE.atStart && known.acknowledged.length > 0; i += 1) {
      found.push(...(await compareWithService(url, dice.pick(known.acknowledged))));
    }
    figures.violations.push(...found);
  };
  await unlessDead(life, compare());
}

/** Work that fails because the service died proves nothing; the next life reveals any real problem. */
async function unlessDead({ service }: Life, work: Promise<void>): Promise<void> {
  await work.catch(async (error: unknown) => {
    const isDead = await eventually(service.hasEnded, (ended) => ended, 15_000).catch(() => false);
    if (!isDead) throw error;
  });
}

/** A busy machine may not reach a place in a single life. */
const MAX_TRIES = 5;

function isToBeTriedAgain({ deaths, missed }: KillFigures, failpoint: Failpoint): boolean {
  const name = nameOf(failpoint);
  return !deaths.has(name) && missed.filter((other) => other === name).length < MAX_TRIES;
}

function count(figures: KillFigures, death: Death, failpoint: Failpoint | null): void {
  if (failpoint !== null && death === 'killed') figures.missed.push(nameOf(failpoint));
  const name = failpoint !== null && death === 'failpoint' ? nameOf(failpoint) : 'at random';
  figures.deaths.set(name, (figures.deaths.get(name) ?? 0) + 1);
}

/** Sometimes replaces blocks that aren't irreversible by another branch. Their transactions get into a later block. */
function forkSometimes(devnet: Devnet, dice: Dice): void {
  const most = devnet.head().number - devnet.solid().number;
  if (most > 0 && dice.chance(50)) devnet.fork({ depth: 1 + dice.below(most) });
}

/** Lets the customers finish and the queues drain by the service's own means, and then compares everything. */
async function rest(
  { devnet, receiver, url, figures }: Loop,
  life: Life,
  customers: Customers,
  known: Known,
): Promise<void> {
  const { client } = databaseOf(life);
  await customers.stop();
  await untilAtRest({ client, devnet, limitMs: REST_MS });
  figures.violations.push(...customers.complaints, ...(await findViolationsAtRest({ ...known, client })));
  for (const order of customers.acknowledged.slice(-SAMPLE.atRest)) {
    figures.violations.push(...(await compareWithService(url, order)));
  }
  const { rows } = await client.query('select status, count(*)::int as count from invoices group by status');
  figures.statuses = Object.fromEntries(rows.map((row) => [row.status, row.count]));
  figures.acknowledged = customers.acknowledged.length;
  figures.retries = customers.retries();
  figures.payments = customers.payments();
  figures.webhooks = receiver.bodies.size;
  figures.repeats = receiver.repeats();
}

function databaseOf({ database, service }: Life) {
  if (database === null) throw new Error(`the service ended before its database was there: ${service.output()}`);
  return database;
}
