import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createFollower, startCursor } from '../../src/core/chain/follow/follower.ts';
import { createAlarms } from '../../src/core/chain/follow/watcher.ts';
import type { Node } from '../../src/core/chain/nodes/node.ts';
import type { Checkpoint } from '../../src/core/chain/proof/checkpoints.ts';
import { createKnownTerms } from '../../src/core/chain/verify/fee-terms.ts';
import { createWalk } from '../../src/core/chain/verify/walk-producers.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { longTest } from '../support/some-cases.ts';
import { blockAfter, EVIL, HONEST, keysNamed, SLOT_MS, USDT } from './attack-chain.ts';
import {
  checkpointOf,
  createHeaderNode,
  createLongChain,
  FIRST,
  type HeaderLies,
  type LongChain,
  membersOf,
  own,
  PERIOD_BLOCKS,
  type Producer,
  signingWith,
  votedOut,
} from './checkpoint-chain.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database, 2);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const log = createLogger({ level: 'silent' });
const metrics = createMetrics();

/** One more than may change at once without a majority. */
const TOO_MANY = 9;
const MOST_NEW = 8;
const EVIL_SET = EVIL.map(own);

const CURSOR = unlistedStatement(
  '',
  { number: 'int8', id: 'text' },
  `select solid_number as number, encode(solid_id, 'hex') as id from chain_cursors where network = 'nile'`,
);
const SET = unlistedStatement(
  '',
  { producers: 'text' },
  `select producers::text as producers from producer_sets where network = 'nile'`,
);

let reports: { node: string; problem: string; reason: string }[] = [];
beforeEach(() => {
  reports = [];
});

/** Starts a process on the network for the first time, with a release's checkpoint. Everything that it stores is rolled back. */
function newProcess(chain: Pick<LongChain, 'now'>, checkpoint: Checkpoint, agreement = 1) {
  let available: readonly Node[] = [];
  const pool = {
    available: async () => [...available],
    report: ({ origin }: Node, problem: string, reason: string) => reports.push({ node: origin, problem, reason }),
    praise: () => undefined,
    health: () => [],
    restore: () => undefined,
    setGenesis: () => undefined,
    close: async () => undefined,
  };
  const network = 'nile' as const;
  const deps = {
    ...{ db, network, agreement, pool, log, metrics, usdt: USDT, slotMs: SLOT_MS, blockMs: SLOT_MS },
    ...{ now: chain.now, publicUrl: 'http://localhost', fees: createKnownTerms() },
    random: (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes)),
    alarms: createAlarms({ db, network, log, metrics }),
  };
  const walk = createWalk(deps, checkpoint);
  return {
    walk,
    /** Returns what a first start stores. */
    start: async (nodes: readonly Node[]) => {
      const reported = new Undone();
      const transaction: Database['transaction'] = (work) =>
        db.transaction(async (tx) => {
          await work(tx);
          const cursor = await tx.run(CURSOR, []);
          const set = await tx.run(SET, []);
          reported.stored = { cursor: cursor[0], producers: JSON.parse(set[0]?.producers ?? 'null') };
          throw reported;
        });
      await startCursor({ ...deps, db: { ...db, transaction } }, nodes, walk).catch((error: unknown) => {
        if (error !== reported) throw error;
      });
      return reported.stored;
    },
    /** Lets the watcher read the chain. */
    follow: async (nodes: readonly Node[]) => {
      available = nodes;
      const lease = await acquireLease(db, 'watcher:nile', 'test', 600_000);
      if (lease === null) throw new Error('the lease is not free');
      const follower = createFollower(deps, async () => undefined, checkpoint);
      return () => follower.step(lease, () => false);
    },
    stored: async () => ({ cursors: (await db.run(CURSOR, [])).length, sets: (await db.run(SET, [])).length }),
  };
}

class Undone extends Error {
  stored: { cursor: { number: bigint; id: string } | undefined; producers: unknown } = {
    cursor: undefined,
    producers: null,
  };
}

const KEYS = [...HONEST, ...keysNamed('later', 100)];
const FIRST_SET = HONEST.map(own);

describe('a first start from a checkpoint', () => {
  test.each([
    ['an hour', 1200, 0],
    ['a day, with no change', 4 * PERIOD_BLOCKS, 0],
    ['five votes, each of which replaces eight of 27', 5 * PERIOD_BLOCKS, MOST_NEW],
    ['twenty votes, each of which replaces one', 20 * PERIOD_BLOCKS, 1],
  ])('%s later learns who makes blocks now and stands on their chain', async (_, blocks, replaced) => {
    const chain = createLongChain(blocks, votedOut(KEYS, replaced));
    const nodes = ['a', 'b'].map((name) => createHeaderNode(name, chain));
    const { cursor, producers } = await newProcess(chain, checkpointOf(chain, FIRST_SET), 2).start(nodes);
    expect(producers).toEqual(membersOf(chain.producers()));
    expect(cursor?.id).toBe(chain.at(Number(cursor?.number)).id);
    expect(reports).toEqual([]);
  });

  test.each([
    // Block 0, the checkpoint's block, the newest one, the producers, two rounds and 18 blocks to the start.
    ['with no change', 0, 28 + 3 + 54 + 18],
    ['with a new producer each week', 1, 1000],
  ])('a year later, %s, takes a bounded number of requests', async (_, replaced, most) => {
    const week = 28 * PERIOD_BLOCKS;
    const chain = createLongChain(52 * week, votedOut(KEYS, replaced, week));
    const node = createHeaderNode('a', chain);
    const { producers } = await newProcess(chain, checkpointOf(chain, FIRST_SET)).start([node]);
    expect(producers).toEqual(membersOf(chain.producers()));
    expect(node.requests()).toBeLessThanOrEqual(most);
  });

  longTest('is given up where too much changed to be followed at a bounded cost', async () => {
    const sets = votedOut(keysNamed('many', 420), 1, 3 * PERIOD_BLOCKS, 5);
    const chain = createLongChain(1200 * PERIOD_BLOCKS, sets);
    const node = createHeaderNode('a', chain);
    await expect(newProcess(chain, checkpointOf(chain, sets(FIRST))).start([node])).rejects.toThrow(
      'after 200 attempts',
    );
  });

  longTest('goes on from where a node failed, and another process begins again', async () => {
    const chain = createLongChain(6 * PERIOD_BLOCKS, votedOut(KEYS, MOST_NEW));
    const node = createHeaderNode('a', chain);
    const checkpoint = checkpointOf(chain, FIRST_SET);
    const first = newProcess(chain, checkpoint);
    node.lies.block = (number) => (number > FIRST + 20_000 && number < chain.head - 200 ? 'refuse' : undefined);
    await expect(first.start([node])).rejects.toMatchObject({ code: 'NO_NODE', retryable: true });
    node.lies = {};
    const before = node.requests();
    await first.start([node]);
    const rest = node.requests() - before;
    await newProcess(chain, checkpoint).start([node]);
    expect(rest).toBeLessThan(node.requests() - before - rest);
    expect(reports).toEqual([]);
  });

  test('asks another node where one keeps no history, and does not blame it', async () => {
    const chain = createLongChain(4 * PERIOD_BLOCKS, votedOut(KEYS, MOST_NEW));
    const light: HeaderLies = { block: (number) => (number < chain.head - 1000 ? null : undefined) };
    const nodes = [createHeaderNode('light', chain, light), createHeaderNode('whole', chain)];
    const { producers } = await newProcess(chain, checkpointOf(chain, FIRST_SET)).start(nodes);
    expect(producers).toEqual(membersOf(chain.producers()));
    expect(reports).toEqual([]);
    const alone = newProcess(chain, checkpointOf(chain, FIRST_SET)).start(nodes.slice(0, 1));
    await expect(alone).rejects.toThrow('use a node with the full history');
  });

  test('needs no history where enough of the same producers make blocks', async () => {
    const chain = createLongChain(400 * PERIOD_BLOCKS, votedOut(KEYS, MOST_NEW, 300 * PERIOD_BLOCKS));
    const node = createHeaderNode('light', chain, {
      block: (number) => (number < chain.head - 1000 ? null : undefined),
    });
    const { producers } = await newProcess(chain, checkpointOf(chain, FIRST_SET)).start([node]);
    expect(producers).toEqual(membersOf(chain.producers()));
    // Block 0, the checkpoint's block, the newest one, the producers, two rounds, and the starting block.
    expect(node.requests()).toBeLessThanOrEqual(3 + 28 + 54 + 20);
  });

  test('learns producers whose blocks are signed with other keys than their own as far as they cannot decide', async () => {
    const others = keysNamed('other', 100);
    const votes = votedOut(KEYS, MOST_NEW);
    const delegating = (number: number) =>
      votes(number).map((producer) => {
        const index = KEYS.findIndex(({ account }) => account === producer.account);
        return index < HONEST.length ? producer : signingWith(producer, others[index] ?? producer);
      });
    const near = createLongChain(PERIOD_BLOCKS + 1000, delegating);
    const { producers } = await newProcess(near, checkpointOf(near, FIRST_SET)).start([createHeaderNode('a', near)]);
    expect(producers).toEqual(membersOf(near.producers()));
    const far = createLongChain(2 * PERIOD_BLOCKS + 1000, delegating);
    await expect(newProcess(far, checkpointOf(far, FIRST_SET)).start([createHeaderNode('a', far)])).rejects.toThrow(
      'which has a newer checkpoint',
    );
  });

  test('waits while the nodes show no chain of now', async () => {
    const chain = createLongChain(4 * PERIOD_BLOCKS, () => FIRST_SET);
    const late = { now: () => unixMs(chain.now() + 7 * 3_600_000) };
    const node = createHeaderNode('a', chain);
    await expect(newProcess(late, checkpointOf(chain, FIRST_SET)).start([node])).rejects.toThrow('the current chain');
    const ahead = { ...checkpointOf(chain, FIRST_SET), number: chain.head + 1000 };
    await expect(newProcess(chain, ahead).start([node])).rejects.toThrow(
      `this release's checkpoint is the later block ${ahead.number}. Use nodes that have caught up with`,
    );
  });

  test('is refused from a checkpoint that is older than two years', async () => {
    const chain = createLongChain(4 * PERIOD_BLOCKS, () => FIRST_SET);
    const old = { ...checkpointOf(chain, FIRST_SET), time: unixMs(chain.now() - 2.1 * 365 * 86_400_000) };
    const node = createHeaderNode('a', chain);
    await expect(newProcess(chain, old).start([node])).rejects.toThrow('install the newest release');
  });
});

describe('nobody is believed', () => {
  /** What all of the nodes show together. */
  type Lie = { chain: LongChain; lies: HeaderLies };

  /** The true chain up to a height, and from there a chain of any producers. */
  const forkedAt = (upTo: number, producers: readonly Producer[]): Lie => {
    const honest = createLongChain(4 * PERIOD_BLOCKS, () => FIRST_SET);
    const chain = createLongChain(4 * PERIOD_BLOCKS, () => producers, { chain: honest, upTo });
    return { chain, lies: {} };
  };
  const HEAD = FIRST + 4 * PERIOD_BLOCKS;

  test.each<[string, () => Lie, string]>([
    ['sign a chain of their own from after the checkpoint', () => forkedAt(FIRST, EVIL_SET), 'only 0 of the 27'],
    [
      'have nine keys of 27',
      () => forkedAt(FIRST, [...EVIL_SET.slice(0, TOO_MANY), ...FIRST_SET.slice(TOO_MANY)]),
      'only 18 of the 27',
    ],
    // The producers of these blocks are only proven up to where enough of the others built on them.
    ['put blocks of their own on top of a true chain', () => forkedAt(HEAD - 60, EVIL_SET), 'only 0 of the 27'],
    [
      'put blocks of eight of their own where those who made blocks are looked for, and name sixteen',
      () => ({
        // 46 true blocks and 8 of theirs are two rounds.
        ...forkedAt(HEAD - 81, EVIL_SET.slice(0, MOST_NEW)),
        lies: { producers: () => [...EVIL_SET.slice(0, 16), ...FIRST_SET.slice(16)] },
      }),
      'only 11 of the 27',
    ],
    [
      'put blocks of their own on top of a true chain, near its end',
      () => forkedAt(HEAD - 25, EVIL_SET),
      'only 0 of the 27',
    ],
    [
      'show true blocks with signatures of their own, and name the keys that made them',
      () => {
        const honest = forkedAt(HEAD, []).chain;
        const set = FIRST_SET.map((producer, index) =>
          index < TOO_MANY ? signingWith(producer, EVIL[index] ?? producer) : producer,
        );
        const block = (number: number) => {
          const shown = honest.at(number);
          const producer = set.find(({ account }) => shown.header.witness_address === `41${account}`);
          const parent = { number: number - 1, id: shown.parentId, time: shown.time - SLOT_MS };
          return number <= FIRST || number > HEAD || producer === undefined ? undefined : blockAfter(parent, producer);
        };
        return { chain: honest, lies: { block, producers: () => set } };
      },
      'only 18 of the 27',
    ],
    [
      'show the true chain, and name nine others',
      () => ({
        chain: forkedAt(HEAD, []).chain,
        lies: { producers: () => [...EVIL_SET.slice(0, TOO_MANY), ...FIRST_SET.slice(TOO_MANY)] },
      }),
      'only 18 of the 27',
    ],
    [
      'show the true chain, and name fewer',
      () => ({ chain: forkedAt(HEAD, []).chain, lies: { producers: () => FIRST_SET.slice(0, 20) } }),
      'of the 20 producers',
    ],
  ])('although all nodes agree, where they %s', async (_, lie, reason) => {
    const { chain, lies } = lie();
    const nodes = ['a', 'b', 'c'].map((name) => createHeaderNode(name, chain, lies));
    const started = newProcess(chain, checkpointOf(chain, FIRST_SET), 2).start(nodes);
    await expect(started).rejects.toMatchObject({ message: expect.stringContaining(reason), retryable: true });
    expect(reports.length).toBeGreaterThan(0);
  });

  test('and the watcher stores nothing, however often it tries', async () => {
    const { chain } = forkedAt(FIRST, EVIL_SET);
    const nodes = [createHeaderNode('a', chain), createHeaderNode('b', chain)];
    const { follow, stored } = newProcess(chain, checkpointOf(chain, FIRST_SET), 2);
    const step = await follow(nodes);
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(step()).rejects.toMatchObject({ code: 'CHAIN_CONTRADICTION' });
    }
    expect(await stored()).toEqual({ cursors: 0, sets: 0 });
  });

  test('signatures of their own on blocks of eight producers, over and over, gain them no key', async () => {
    const chain = createLongChain(10 * PERIOD_BLOCKS, () => FIRST_SET);
    // Different ones in each run.
    const block = (number: number) => {
      const shown = chain.at(number);
      const group = Math.floor((number - FIRST) / 5000) * MOST_NEW;
      const place = FIRST_SET.findIndex(({ account }) => shown.header.witness_address === `41${account}`);
      const isTaken = (place - (group % 27) + 27) % 27 < MOST_NEW;
      const key = EVIL[place];
      if (!isTaken || key === undefined || number === FIRST) return undefined;
      const parent = { number: number - 1, id: shown.parentId, time: shown.time - SLOT_MS };
      return blockAfter(parent, signingWith(FIRST_SET[place] ?? own(key), key));
    };
    const process = newProcess(chain, checkpointOf(chain, FIRST_SET));
    for (let step = 1; step <= 10; step += 1) {
      const newest = chain.at(FIRST + step * PERIOD_BLOCKS - 20);
      const members = await process.walk.to([createHeaderNode('liar', chain, { block })], {
        ...newest,
        time: unixMs(newest.time),
      });
      expect(membersOf(members as unknown as Producer[])).toEqual(membersOf(FIRST_SET));
    }
  });

  test('a node whose chain is another one is told and left out, and with no other the start is refused', async () => {
    const chain = createLongChain(4 * PERIOD_BLOCKS, () => FIRST_SET);
    const other = createLongChain(4 * PERIOD_BLOCKS, () => [...FIRST_SET].reverse());
    const nodes = [createHeaderNode('other', other), createHeaderNode('right', chain)];
    const checkpoint = checkpointOf(chain, FIRST_SET);
    const { cursor } = await newProcess(chain, checkpoint).start(nodes);
    expect(cursor?.id).toBe(chain.at(Number(cursor?.number)).id);
    expect(reports).toEqual([expect.objectContaining({ node: 'other', problem: 'wrong-network' })]);
    reports.length = 0;
    const alone = newProcess(chain, checkpoint).start(nodes.slice(0, 1));
    await expect(alone).rejects.toThrow(
      `this release's checkpoint is block ${FIRST} (${checkpoint.id}), but other returned ${other.at(FIRST).id}. Either no node belongs to nile, or the checkpoint is wrong`,
    );
    expect(reports).toEqual([]);
  });

  test('a vote that replaces more producers than can be followed is refused, and the same node is not asked again at once', async () => {
    const chain = createLongChain(4 * PERIOD_BLOCKS, votedOut(KEYS, TOO_MANY));
    const node = createHeaderNode('a', chain);
    const { start, walk } = newProcess(chain, checkpointOf(chain, FIRST_SET));
    await expect(start([node])).rejects.toMatchObject({
      code: 'CHAIN_CONTRADICTION',
      message: expect.stringContaining('18 of the 27 producers'),
    });
    expect(reports).toEqual([expect.objectContaining({ node: 'a', problem: 'disagrees' })]);
    const before = node.requests();
    const newest = chain.solid();
    await expect(walk.to([node], { ...newest, time: unixMs(newest.time) })).rejects.toThrow('18 of the 27');
    expect(node.requests()).toBe(before);
    const honest = createHeaderNode('b', chain);
    await expect(walk.to([node, honest], { ...newest, time: unixMs(newest.time) })).rejects.toThrow('18 of the 27');
    expect(honest.requests()).toBeGreaterThan(0);
  });

  test('a node that shows a chain of its own first does not keep an honest one from being asked', async () => {
    const votes = votedOut(KEYS, MOST_NEW);
    const chain = createLongChain(4 * PERIOD_BLOCKS, votes);
    const evil = createLongChain(4 * PERIOD_BLOCKS, () => EVIL_SET, { chain, upTo: FIRST });
    const block = (number: number) => (number > FIRST && number < chain.head - 500 ? evil.at(number) : undefined);
    const nodes = [createHeaderNode('liar', chain, { block }), createHeaderNode('honest', chain)];
    const { cursor, producers } = await newProcess(chain, checkpointOf(chain, FIRST_SET)).start(nodes);
    expect(producers).toEqual(membersOf(chain.producers()));
    expect(cursor?.id).toBe(chain.at(Number(cursor?.number)).id);
  });
});
