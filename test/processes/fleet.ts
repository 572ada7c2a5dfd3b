import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Devnet, startDevnet } from '@quittance/devnet';
import pg from 'pg';
import { inject } from 'vitest';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { findSteadyPort } from '../support/steady-port.ts';
import { createChainTruth } from './chain-truth.ts';
import { type Customers, startCustomers } from './customers.ts';
import type { Dice } from './dice.ts';
import type { Failpoint } from './failpoint.ts';
import type { World } from './invariants.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type ServiceProcess, startServiceProcess } from './service-process.ts';
import { MASTER_KEY, openShops } from './shop.ts';

export type Role = 'api' | 'watcher' | 'webhooks';

/** A position in the fleet: a process of one role, and its replacement after it dies. */
export type Member = {
  role: Role;
  process: ServiceProcess;
  /** Database changes of its current process, and where it found its lease lost (no rows). Only for watchers. */
  trace(): Traced[];
};

type Traced = { sentMs: number; statement: string; rows: number };

/** 3 × api, 2 × watcher and 2 × webhooks on one PostgreSQL. The customers, chain and receiver live in this process. */
export type Fleet = {
  members: readonly Member[];
  devnet: Devnet;
  receiver: Receiver;
  customers: Customers;
  world: World;
  client: pg.Client;
  urls: readonly string[];
  /** Kills the current process and starts its replacement. */
  replace(member: Member, failpoint?: Failpoint): Promise<void>;
  stop(): Promise<void>;
};

const ROLES: readonly Role[] = ['api', 'api', 'api', 'watcher', 'watcher', 'webhooks', 'webhooks'];
const BLOCK_MS = 1000;

export async function startFleet(dice: Dice, firstWatcher?: Failpoint): Promise<Fleet> {
  const cleanups: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    return { ...(await startParts(dice, firstWatcher, cleanups)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(dice: Dice, firstWatcher: Failpoint | undefined, cleanups: (() => Promise<unknown>)[]) {
  const database = await createTestDatabase();
  cleanups.push(() => database.drop());
  const folder = await mkdtemp(join(inject('runDirectory'), 'fleet-'));
  await chmod(folder, 0o1777);
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const secret = createWebhookSecret(randomBytes);
  const receiver = await startReceiver(secret);
  cleanups.push(() => receiver.stop());
  const devnet = await startDevnet({
    dataDir: null,
    blockMs: BLOCK_MS,
    genesisTimestampMs: Date.now() - 20 * BLOCK_MS,
  });
  cleanups.push(() => devnet.stop());
  devnet.mineUntilSolid();
  const shops = await openShops(database.connection, { url: receiver.url, secret });
  const client = new pg.Client(database.owner);
  await client.connect();
  cleanups.push(() => client.end());
  await client.query(WITNESS);
  cleanups.push(await startWitness(database));

  const ports = await Promise.all(ROLES.map((role) => (role === 'api' ? findSteadyPort() : 0)));
  const urls = ports.flatMap((port) => (port === 0 ? [] : [`http://127.0.0.1:${port}`]));
  const start = createStarter({ database, devnet, folder, publicUrl: String(urls[0]) });
  const members: Member[] = [];
  cleanups.push(() => Promise.all(members.map(({ process }) => process.kill())));
  for (const [index, role] of ROLES.entries()) {
    members.push(await start(role, ports[index] ?? 0, index === ROLES.indexOf('watcher') ? firstWatcher : undefined));
    // Makes the first watcher the first leader, so that the caller knows which one leads.
    if (index === ROLES.indexOf('watcher')) await members[index]?.process.ready;
  }
  for (const { process } of members) {
    if ((await process.ready) === 'ended') throw new Error(`a process did not start: ${process.output()}`);
  }
  const truth = createChainTruth(
    devnet,
    shops.flatMap(({ addresses }) => addresses),
  );
  const customers = startCustomers({ count: 3, urls, shops, devnet, dice, pauseMs: 100 });
  cleanups.push(async () => customers.abandon());
  const { acknowledged } = customers;
  const world: World = { client, truth, receiver, acknowledged, paid: new Set(), compared: new Set() };
  return {
    ...{ members, devnet, receiver, customers, world, client, urls },
    replace: async (member: Member, failpoint?: Failpoint) => {
      await member.process.kill();
      const port = ports[members.indexOf(member)] ?? 0;
      const next = await start(member.role, port, failpoint);
      Object.assign(member, next);
      if ((await next.process.ready) === 'ended') throw new Error(`a process ended: ${next.process.output()}`);
    },
  };
}

/**
 * Records which process followed the chain since when, and when blocks were examined, from outside. Foreign triggers on our tables would
 * make a start fail.
 */
const WITNESS = `
  create schema witness;
  create table witness.before as select name, epoch from leases;
  create table witness.leases (at timestamptz not null default clock_timestamp(), name text not null, epoch bigint not null);
  create table witness.progress (at timestamptz not null default clock_timestamp(), head bigint not null);`;
const LOOK = `
  insert into witness.leases (name, epoch)
    select name, epoch from leases l
    where name like 'watcher%' and not exists (
      select from (table witness.before union all select name, epoch from witness.leases) s where name = l.name and epoch = l.epoch);
  insert into witness.progress (head)
    select max(number) from head_blocks having max(number) > coalesce((select max(head) from witness.progress), 0)`;
/** The reported durations are in seconds. */
const LOOK_MS = 20;

/** Polls until the returned function is called. */
async function startWitness({ owner }: TestDatabase): Promise<() => Promise<void>> {
  const client = new pg.Client(owner);
  await client.connect();
  const stopping = new AbortController();
  const looking = (async () => {
    while (!stopping.signal.aborted) {
      await client.query(LOOK);
      await delay(LOOK_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    stopping.abort();
    await looking;
    await client.end();
  };
}

function createStarter(options: { database: TestDatabase; devnet: Devnet; folder: string; publicUrl: string }) {
  const { database, devnet, folder, publicUrl } = options;
  let started = 0;
  return async (role: Role, port: number, failpoint: Failpoint | undefined): Promise<Member> => {
    started += 1;
    const trace = join(folder, `trace-${started}`);
    const env = {
      DATABASE_URL: database.connectionString,
      // The test run's server has a hundred connections in total.
      QUITTANCE_DATABASE_POOL: '3',
      QUITTANCE_ROLES: role,
      QUITTANCE_PORT: String(port),
      QUITTANCE_PUBLIC_URL: publicUrl,
      QUITTANCE_DATA_DIR: join(folder, 'unused'),
      QUITTANCE_DEVNET_NODES: devnet.url,
      QUITTANCE_DEVNET_USDT: devnet.usdtContract,
      ...(role === 'watcher' ? {} : { QUITTANCE_MASTER_KEY: MASTER_KEY }),
      // The test writes unsealed rows.
      QUITTANCE_ROW_MACS: 'warn',
    };
    return {
      role,
      process: await startServiceProcess({ env, folder, failpoint, ...(role === 'watcher' ? { trace } : {}) }),
      trace: () => readTrace(trace),
    };
  };
}

function readTrace(trace: string): Traced[] {
  let text = '';
  try {
    text = readFileSync(trace, 'utf8');
  } catch (error) {
    // It hasn't changed anything yet.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [sentMs = '', statement = '', rows = ''] = line.split(' ');
      return { sentMs: Number(sentMs), statement, rows: Number(rows) };
    });
}
