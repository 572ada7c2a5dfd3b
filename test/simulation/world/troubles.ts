import { FAULT_KINDS, type Fault } from '@quittance/devnet/faults/faults';
import type { Random } from '../engine/random.ts';
import type { Settling } from '../engine/settling.ts';
import type { Strike } from '../engine/simulated-database.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import type { Owner, VirtualTime } from '../engine/virtual-time.ts';
import type { Plan, Shape, Trouble } from './plan.ts';
import type { Poisons } from './poisons.ts';
import type { Receivers } from './receivers.ts';
import type { SimulatedChain } from './simulated-chain.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';

/** The faults of a node that is merely broken: its answers contradict its own headers, or are incomplete. */
const BROKEN: readonly Fault['kind'][] = FAULT_KINDS.slice(0, FAULT_KINDS.indexOf('omitted-transaction'));
const LYING: readonly Fault['kind'][] = FAULT_KINDS.slice(FAULT_KINDS.indexOf('omitted-transaction'));

/** Lies that a single node is believed; see docs/explained/chain-truth.md. */
const BELIEVED: ReadonlySet<Fault['kind']> = new Set(['hidden-log', 'forged-log']);

/** Faults added with the poisons or later. Earlier plans keep the same worlds without them. */
const NEWER: ReadonlySet<Fault['kind']> = new Set([
  'slow-large-answer',
  'bracket-bomb',
  'fee-split',
  'not-allowed-405',
  'missing-logs',
  'limited-logs',
]);
/** In proportion to the answers of a simulated chain. */
const SIZES: Partial<Record<Fault['kind'], Partial<Fault>>> = {
  'slow-large-answer': { bytesPerSecond: 16 * 1024 },
  'bracket-bomb': { bytes: 640 * 1024 },
};

/** Faults of statements. Wherever a crash occurs, it's between two statements. */
const STRIKES: readonly Strike[] = ['crash', 'crash-after', 'cut', 'lost', 'serialization', 'lock-timeout'];
const STRIKE_CHANCE = 1 / 700;

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** Votes are counted every six hours. More changes than one vote could make at once must be refused. */
const ELECTION_MS = 7 * HOUR_MS;
/** With our setting, PostgreSQL ends a transaction whose process has been idle for this long. */
const IDLE_IN_TRANSACTION_MS = 5 * SECOND_MS;

type TroublesOptions = {
  plan: Plan;
  shape: Shape;
  random: Random;
  time: VirtualTime;
  world: Owner;
  settling: Settling;
  chain: SimulatedChain;
  nodes: SimulatedNodes;
  receivers: Receivers;
  poisons: Poisons;
  processes(): readonly SimulatedProcess[];
};

/** Creates a plan's troubles, each at its own times, until they are ended. */
export function createTroubles(options: TroublesOptions) {
  const { plan, shape, random, time, world, settling, chain, nodes, receivers, poisons, processes } = options;
  const counts: Record<string, number> = {};
  const count = (what: string) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  const state = { areOver: false, outageUntilMs: 0, databaseSkewMs: 0 };
  const has = (trouble: Trouble) => plan.troubles.has(trouble);

  /** Repeats a trouble at intervals around `meanMs` while troubles last. */
  const often = (trouble: Trouble, meanMs: number, strike: () => void) => {
    if (!has(trouble)) return;
    const own = random.fork();
    const next = () => {
      const waitMs = -Math.log(1 - own.next()) * meanMs;
      time.after(world, waitMs, () => {
        if (state.areOver) return;
        strike();
        next();
      });
    };
    next();
  };
  const forAWhile = (fromMs: number, toMs: number, end: () => void) =>
    time.after(world, random.between(fromMs, toMs), () => {
      if (!state.areOver) end();
    });
  const cutConnections = ({ session }: SimulatedProcess) => {
    const end = settling.begin();
    void settling.terminate(session).finally(end);
  };
  const aProcess = (): SimulatedProcess | undefined => {
    const alive = processes().filter(({ isAlive }) => isAlive);
    return alive.length === 0 ? undefined : random.pick(alive);
  };

  often('crash', 6 * MINUTE_MS, () => {
    count('kill -9');
    aProcess()?.kill();
  });
  often('pause', 9 * MINUTE_MS, () => {
    const process = aProcess();
    if (process === undefined) return;
    count('pause');
    process.pausedUntilMs = time.nowMs() + random.between(SECOND_MS, 45 * SECOND_MS);
    time.after(world, IDLE_IN_TRANSACTION_MS, () => {
      if (process.isAlive && process.pausedUntilMs > time.nowMs()) cutConnections(process);
    });
  });
  often('outage', 25 * MINUTE_MS, () => {
    count('database outage');
    state.outageUntilMs = time.nowMs() + random.between(SECOND_MS, 90 * SECOND_MS);
    for (const process of processes()) cutConnections(process);
  });
  often('clock', 15 * MINUTE_MS, () => {
    const process = aProcess();
    if (process === undefined) return;
    count('clock jump');
    process.skewMs = random.pick([-HOUR_MS, HOUR_MS, random.between(-HOUR_MS, HOUR_MS)]);
    forAWhile(MINUTE_MS, 20 * MINUTE_MS, () => {
      process.skewMs = 0;
    });
  });
  often('clock', 40 * MINUTE_MS, () => {
    count('database clock jump');
    state.databaseSkewMs = random.pick([-HOUR_MS, HOUR_MS]);
    forAWhile(MINUTE_MS, 20 * MINUTE_MS, () => {
      state.databaseSkewMs = 0;
    });
  });
  often('forks', 3 * MINUTE_MS, () => {
    count('fork');
    chain.fork();
  });
  often('producers', 20 * MINUTE_MS, () => {
    count('producers stall');
    chain.stall();
    forAWhile(10 * SECOND_MS, 6 * MINUTE_MS, chain.unstall);
  });
  let electedMs = Number.NEGATIVE_INFINITY;
  often('producers', HOUR_MS, () => {
    if (time.nowMs() - electedMs < ELECTION_MS) return;
    electedMs = time.nowMs();
    count('producers change');
    random.pick([chain.rotateSigner, chain.replaceProducer])();
  });
  const sicken = (kinds: readonly Fault['kind'][], node: SimulatedNodes['nodes'][number] | undefined, what: string) => {
    if (node === undefined || node.faults.length > 0) return;
    count(what);
    const kind = random.pick(has('poisons') ? kinds : kinds.filter((each) => !NEWER.has(each)));
    node.setFaults({ kind, ...SIZES[kind] });
    forAWhile(3 * SECOND_MS, 4 * MINUTE_MS, () => node.setFaults());
  };
  often('nodes', 2 * MINUTE_MS, () => sicken(BROKEN, random.pick(nodes.nodes), 'broken node'));
  often('nodes', 25 * MINUTE_MS, () => {
    for (const node of nodes.nodes) sicken(BROKEN.slice(0, 12), node, 'all nodes down');
  });
  // One operator out of at least two that must agree. A single one is believed about facts that only appear in logs.
  const lies = shape.agreement > 1 ? LYING : LYING.filter((kind) => !BELIEVED.has(kind));
  often('lies', 4 * MINUTE_MS, () => sicken(lies, nodes.nodes[0], 'lying node'));
  often('receivers', 2 * MINUTE_MS, () => {
    if (receivers.receivers.length === 0) return;
    count('receiver in a temper');
    const receiver = random.pick(receivers.receivers);
    receiver.temper = random.pick(receivers.tempers);
    forAWhile(SECOND_MS, 10 * MINUTE_MS, () => {
      receiver.temper = 'well';
    });
  });
  often('poisons', 6 * MINUTE_MS, () => count(poisons.strike()));

  return {
    counts,
    isOutage: () => time.nowMs() < state.outageUntilMs,
    databaseSkewMs: () => state.databaseSkewMs,
    areOver: () => state.areOver,
    /** Decides the fault of a process's statement. */
    strike: (_process: SimulatedProcess, _name: string): Strike | null => {
      if (time.nowMs() < state.outageUntilMs) return 'outage';
      if (state.areOver || !(has('database') || has('crash')) || !random.chance(STRIKE_CHANCE)) return null;
      const struck = random.pick(STRIKES);
      const isCrash = struck === 'crash' || struck === 'crash-after';
      if (!has(isCrash ? 'crash' : 'database')) return null;
      count(isCrash ? 'crash at a statement' : `statement: ${struck}`);
      return struck;
    },
    /** Ends all troubles. */
    end: () => {
      state.areOver = true;
      state.outageUntilMs = 0;
      state.databaseSkewMs = 0;
      chain.unstall();
      for (const process of processes()) process.skewMs = 0;
      for (const node of nodes.nodes) node.setFaults();
      for (const receiver of receivers.receivers) receiver.temper = 'well';
    },
  };
}
