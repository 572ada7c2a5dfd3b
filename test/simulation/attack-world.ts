import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { vi } from 'vitest';
import { createFollower } from '../../src/core/chain/follow/follower.ts';
import { createAlarms } from '../../src/core/chain/follow/watcher.ts';
import type { NodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { createKnownTerms } from '../../src/core/chain/verify/fee-terms.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { insertCursor } from '../../src/core/store/chain/cursor.ts';
import { acquireLease } from '../../src/core/store/chain/leases.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { passBlock } from '../../src/faces/operator/subjects/chain-producers.ts';
import { createAttackBooks } from './attack-books.ts';
import { type AttackChain, SLOT_MS, type Transaction, USDT } from './attack-chain.ts';
import type { AttackNode } from './attack-node.ts';

const NETWORK = 'nile';
/** How long after its time a block reaches the nodes. */
const ARRIVAL_MS = 300;
/** The minimum duration of a step, so that one that asks again immediately is counted and doesn't hang the test. */
const STEP_MS = 50;
/** The pause after a step that threw. */
const RETRY_MS = 1000;
const LEASE_MS = 600_000;

type AttackWorldOptions = {
  chain: AttackChain;
  /** The available nodes in order of preference. May change. */
  nodes: AttackNode[];
  agreement: number;
  /** No cursor is set, and nothing is known. */
  isFirstStart?: boolean;
  /** A pool other than the default, which only records reports. */
  pool?: NodePool;
};

export type AttackWorld = Awaited<ReturnType<typeof createAttackWorld>>;

/** Runs the real watcher on a real PostgreSQL with a clock that the test moves: nothing waits, and it runs at the network's pace. */
export async function createAttackWorld({ chain, nodes, agreement, isFirstStart, pool }: AttackWorldOptions) {
  const clock = { ms: chain.head().time + ARRIVAL_MS };
  const now = () => unixMs(clock.ms);
  const { db, random, ask, close } = await createAttackBooks({ now });
  if (isFirstStart !== true) {
    await insertCursor(db, NETWORK, { ...chain.start, time: unixMs(chain.start.time) }, GENESIS_BLOCK_IDS[NETWORK]);
  }
  const lease = await acquireLease(db, `watcher:${NETWORK}`, 'attack', LEASE_MS);
  if (lease === null) throw new Error('the lease is not free');
  // The watcher's pauses and retries use the monotonic clock.
  const monotonic = vi.spyOn(performance, 'now').mockImplementation(() => clock.ms);
  const reports: { node: string; problem: string; reason: string }[] = [];
  const noting: NodePool = {
    available: async () => [...nodes],
    report: ({ origin }, problem, reason) => reports.push({ node: origin, problem, reason }),
    praise: () => undefined,
    health: () => [],
    restore: () => undefined,
    setGenesis: () => undefined,
    close: async () => undefined,
  };
  const log = createLogger({ level: 'silent' });
  const metrics = createMetrics();
  const alarms = createAlarms({ db, network: NETWORK, log, metrics });
  const fees = createKnownTerms(now);
  const parameters = { fees, usdt: USDT, slotMs: SLOT_MS, agreement, blockMs: SLOT_MS, publicUrl: 'http://localhost' };
  const follower = createFollower(
    { ...parameters, db, network: NETWORK, pool: pool ?? noting, now, random, log, metrics, alarms },
    async () => undefined,
  );
  const life = createLife(clock, async () => (await follower.step(lease, () => false)).pauseMs);
  return {
    ...ask,
    ...{ clock, reports, errors: life.errors, step: life.step, steps: life.steps },
    /** Lets time pass without a block. */
    pass: (ms: number) => life.runUntil(clock.ms + ms),
    /** Makes this many blocks, and runs the watcher until just before the next one is due. */
    async run(count: number, transactions: () => readonly Transaction[] = () => []) {
      for (let made = 0; made < count; made += 1) {
        const passedSlots = Math.floor((clock.ms - chain.head().time) / SLOT_MS);
        chain.mine(transactions(), { gapMs: Math.max(1, passedSlots) * SLOT_MS });
        const arrivedMs = chain.head().time + ARRIVAL_MS;
        clock.ms = Math.max(clock.ms, arrivedMs);
        await life.runUntil(arrivedMs + SLOT_MS - 1);
      }
    },
    /** Extends the chain by this many blocks while nothing is watching, then restarts the process. */
    restartAfter(count: number, transactions: () => readonly Transaction[] = () => []) {
      for (let made = 0; made < count; made += 1) chain.mine(transactions());
      clock.ms = Math.max(clock.ms, chain.head().time + ARRIVAL_MS);
      follower.reset();
    },
    /** Blocks between the newest one and the newest verified one. */
    behind: () => chain.head().number - (follower.status()?.headNumber ?? 0),
    /** Irreversible blocks that aren't recorded: up to 8 while no payment is expected. */
    unrecorded: () => chain.solid().number - (follower.status()?.processedNumber ?? 0),
    /** How many irreversible blocks aren't recorded, according to the watcher. */
    lag: () => (follower.status()?.nodeSolidNumber ?? 0) - (follower.status()?.processedNumber ?? 0),
    /** Does the same as "quittance chain pass" for the block as the nodes show it. */
    letPass: (number: number) =>
      passBlock(
        {
          ...parameters,
          ...{ db, network: NETWORK, pool: pool ?? noting, now, random, metrics, patienceMs: 0 },
          onSilent: () => undefined,
        },
        commandActor('anna'),
        { number, id: null, reason: 'compared', isCompared: true },
      ),
    /** Returns the newest block recorded as irreversible. */
    async cursor() {
      const [row] = await ask.query(`select solid_number, encode(solid_id, 'hex') as id from chain_cursors`);
      const block = chain.at(Number(row.solid_number));
      if (block === undefined || block.id !== row.id)
        throw new Error(`block ${row.solid_number} is not on the honest chain`);
      return block;
    },
    /** Returns recorded transfers that aren't on the honest chain. */
    inventions: async () =>
      (await ask.query(`select block_number, encode(block_id, 'hex') as block_id from transfers`)).filter(
        ({ block_number, block_id }) => chain.at(Number(block_number))?.id !== block_id,
      ),
    async stop() {
      monotonic.mockRestore();
      await close();
    },
  };
}

/** Runs steps as often as they request it. Errors about nodes are recorded, all others fail the test. */
function createLife(clock: { ms: number }, step: () => Promise<number>) {
  const errors: string[] = [];
  let wakeMs = 0;
  let steps = 0;
  const life = {
    errors,
    steps: () => steps,
    step: async () => {
      steps += 1;
      let pauseMs = RETRY_MS;
      try {
        pauseMs = await step();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        errors.push(error.message);
      }
      wakeMs = clock.ms + Math.max(STEP_MS, Math.ceil(pauseMs));
    },
    /** Runs the watcher until that time. */
    runUntil: async (untilMs: number) => {
      while (wakeMs < untilMs) {
        clock.ms = Math.max(clock.ms, wakeMs);
        await life.step();
      }
      clock.ms = Math.max(clock.ms, untilMs);
    },
  };
  return life;
}
