import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ShownHeader } from '@quittance/tron/shown-block';
import { retryableError } from '../../domain/errors.ts';
import { nodesVariable } from '../../domain/network.ts';
import { type NodeSpec, nodeOrigin } from '../../domain/node.ts';
import { DAY_MS, type UnixMs } from '../../domain/time.ts';
import { createSemaphore, unlessAborted } from '../../runtime/concurrency.ts';
import { backoffMs } from '../../runtime/loop.ts';
import type { RememberedPause } from '../../store/chain/status.ts';
import { readBlockId } from '../proof/prove-block.ts';
import type { Node, NodeHealth, NodeProblem } from './node.ts';
import {
  ALONE,
  createAdaptiveTimeout,
  createNodeLine,
  createNodePause,
  type NodeLineOptions,
  type NodePause,
} from './node-line.ts';
import { headerAt } from './questions.ts';

export type NodePool = ReturnType<typeof createNodePool>;

type NodePoolOptions = Pick<NodeLineOptions, 'network' | 'now' | 'log' | 'metrics' | 'createClient'> &
  Partial<Pick<NodeLineOptions, 'clockMs' | 'random'>> & {
    nodes: readonly NodeSpec[];
    /** The block time. Timeouts at the head are so short that failover takes less than one block time. */
    blockMs: number;
  };

/** The timeout for small answers if no other node is available. */
const ALONE_TIMEOUT_MS = 10_000;
/**
 * The timeout for small answers if another node is available, as a share of the block time, so that the other node can still answer before
 * the block time is over.
 */
const FAILOVER_SHARE = 0.6;
const MIN_FAILOVER_MS = 1500;
/** How long startup waits for more nodes once one is verified, so that a preferred node that is slightly slower is still used. */
const GRACE_MS = 250;

/**
 * Keeps the nodes of one network, in order of preference. Never fails because of a node: an unavailable node is left out until it can be
 * asked again.
 */
export function createNodePool(options: NodePoolOptions) {
  const { nodes, blockMs, clockMs = () => performance.now(), random = Math.random } = options;
  const timeoutMs = nodes.length === 1 ? ALONE_TIMEOUT_MS : Math.max(MIN_FAILOVER_MS, FAILOVER_SHARE * blockMs);
  const patience = createAdaptiveTimeout();
  const closing = new AbortController();
  // Each request that waits for its turn adds a listener. The budget limits how many there are.
  setMaxListeners(0, closing.signal);
  const origins = nameOrigins(nodes);
  const members: NodeMember[] = nodes.map((spec, index) =>
    createNodeMember({
      ...options,
      spec,
      origin: origins[index] ?? spec.operator,
      timeoutMs,
      patience,
      clockMs,
      random,
      closing: closing.signal,
      isAlone: () => !members.some((other, place) => place !== index && other.isUsable()),
    }),
  );
  const byOrigin = new Map(members.map((member) => [member.node.origin, member]));
  const ready = () => members.filter((member) => member.isUsable() && member.isRecognised());
  return {
    /**
     * Returns the nodes that may be asked now, in order of preference; a node that is being retried comes last. All of them are verified to
     * be on the right network. As long as a verified node is healthy, this sends no request and returns immediately.
     */
    available: async (): Promise<Node[]> => {
      if (closing.signal.aborted) return [];
      if (!members.some((member) => member.isUsable()))
        for (const member of members) member.shortenPause(ALONE.longestMs);
      for (const member of members) member.showMetrics();
      const checks = members.flatMap((member) => member.recognise() ?? []);
      if (ready().length === 0 && checks.length > 0) await firstThenGrace(checks);
      return inOrder(ready());
    },
    /** Reports a wrong answer. Pauses the node, and doubles the pause with each consecutive report. */
    report: ({ origin }: Node, problem: NodeProblem, reason: string): void =>
      byOrigin.get(origin)?.report(problem, reason),
    /** Ends a node's series of failures, because one of its answers was verified. Call this once per verified block. */
    praise: ({ origin }: Node): void => byOrigin.get(origin)?.praise(),
    health: () => members.map((member) => member.health()),
    /** Restores a previous process's pauses, by the nodes' origins. Pauses of unknown nodes are ignored. */
    restore: (pauses: readonly RememberedPause[]) => {
      for (const pause of pauses) byOrigin.get(pause.url)?.restorePause(pause);
    },
    /**
     * Sets the id of block 0 (64 hex characters), which identifies a node's network. `null` means that the id isn't known yet, and then all
     * nodes are accepted.
     */
    setGenesis: (id: string | null) => {
      for (const member of members) member.setGenesis(id);
    },
    close: async () => {
      closing.abort();
      await Promise.all(members.map((member) => member.close()));
    },
  };
}

/** A node that has failed and has a pending request is on trial: that request tries it, while all others go to other nodes. */
function inOrder(members: readonly NodeMember[]): Node[] {
  const steady = members.filter((member) => !member.isOnTrial());
  const onTrial = members.filter((member) => member.isOnTrial());
  return [...steady, ...onTrial].map(({ node }) => node);
}

/** Waits until all checks are done, or until one has succeeded and the grace period has passed. Checks never reject. */
async function firstThenGrace(checks: readonly Promise<boolean>[]): Promise<void> {
  const succeeded = checks.map(async (check) => {
    if (!(await check)) throw new Error('not recognised');
  });
  const grace = Promise.any(succeeded).then(
    () => delay(GRACE_MS, undefined, { ref: false }),
    () => undefined,
  );
  await Promise.race([Promise.all(checks), grace]);
}

/** Returns names for logs, without paths because a path may contain a token. If several nodes share a host, they are numbered. */
function nameOrigins(nodes: readonly NodeSpec[]): string[] {
  const seen = new Map<string, number>();
  return nodes.map(({ url }) => {
    const origin = nodeOrigin(url);
    const count = (seen.get(origin) ?? 0) + 1;
    seen.set(origin, count);
    return count === 1 ? origin : `${origin}#${count}`;
  });
}

type NodeMember = ReturnType<typeof createNodeMember>;

/** After a pause of at least this length, a node's network is checked again before its answers are used. */
const LONG_PAUSE_MS = 2000;

/** Creates a node in a pool, with its budget, its pauses and the state of its network check. */
function createNodeMember(options: NodeLineOptions) {
  const { spec, origin, network, metrics } = options;
  const line = createNodeLine(options);
  const { pause, budget, seen } = line;
  const identity = createNodeIdentity({ ...options, ask: line.ask, onFailure: line.report });
  /** Whether the node can be asked: it's on the right network, not paused, and has requests left in its budget. */
  const isUsable = () => line.isOpen() && !identity.isWrong();
  const stateOf = (): NodeHealth['state'] => {
    if (identity.isWrong()) return 'wrong-network';
    if (budget.isExhausted()) return 'out-of-budget';
    if (pause.remainingMs() > 0) return 'paused';
    return seen.isWell && identity.isRecognised() ? 'healthy' : 'unknown';
  };
  const ask: Node['ask'] = async (question, call) => {
    if (!identity.isWrong()) return line.ask(question, call);
    throw retryableError('NODE_REFUSED', `${origin} was not queried: the node belongs to another network`);
  };
  const isRecognised = () => {
    if (pause.takeLong(LONG_PAUSE_MS)) identity.doubt();
    return identity.isRecognised();
  };
  return {
    node: {
      ...{ url: spec.url, origin, operator: spec.operator, ask },
      ...{ hasBytes: line.hasBytes, isOpenFor: line.isOpenFor, setAside: line.setAside },
      requestsLeft: budget.requestsLeft,
    } satisfies Node,
    isUsable,
    isRecognised,
    isOnTrial: () => pause.failures() > 0 && seen.inFlight > 0,
    /** Starts a check of the node's network if one is due. Returns the pending check, or `null` if there's none. */
    recognise: () => (line.isOpen() && !isRecognised() ? identity.check() : null),
    report: (problem: NodeProblem, reason: string) => {
      if (problem === 'wrong-network') identity.markWrong(reason);
      else line.report(`${problem}: ${reason}`);
    },
    praise: line.praise,
    shortenPause: pause.shorten,
    restorePause: ({ reason, ...remembered }: RememberedPause) => {
      pause.restore(remembered);
      seen.reason ??= reason;
    },
    setGenesis: identity.setGenesis,
    health: (): NodeHealth => {
      const { requests, refusals, answerMs, reason } = seen;
      return {
        url: origin,
        operator: spec.operator,
        state: stateOf(),
        reason: identity.wrongReason() ?? reason,
        pausedForMs: Math.ceil(pause.remainingMs()),
        failures: pause.failures(),
        requests,
        refusals,
        requestsToday: budget.requestsToday(),
        requestsPerDay: spec.requestsPerDay,
        answerMs,
      };
    },
    showMetrics: () => {
      metrics.nodePaused.set({ network, node: origin }, isUsable() ? 0 : 1);
      metrics.nodeBudgetUsed.set({ network, node: origin }, budget.usedShare() ?? 0);
    },
    close: async () => {
      await line.close();
      await identity.settled();
    },
  };
}

type IdentityOptions = Pick<NodeLineOptions, 'network' | 'origin' | 'timeoutMs' | 'clockMs' | 'isAlone' | 'log'> & {
  ask: Node['ask'];
  /** Called if the node answers with something other than its genesis block. */
  onFailure(reason: string): void;
};

/**
 * A node on the wrong network is checked again, because its operator may have fixed it. The interval doubles, up to the longest pause of a
 * failing node, because without this node the others may be too few to agree. If no other node is available, the interval stays short.
 */
const RECHECK = { firstMs: 5000, longestMs: 60_000 };
/** A start must not wait long for a node that hangs. */
const MAX_CHECK_MS = 3000;

/** Recognises by the genesis block whether a node is on the right network. */
function createNodeIdentity(options: IdentityOptions) {
  const { network, origin, clockMs, isAlone, log, ask, onFailure } = options;
  const timeoutMs = Math.min(options.timeoutMs, MAX_CHECK_MS);
  let genesisId: string | null = null;
  let state: 'unknown' | 'right' | 'wrong' = 'unknown';
  let reason: string | null = null;
  let wrongMs = 0;
  let wrongTimes = 0;
  let checking: Promise<boolean> | null = null;
  /** It's also true while no genesis block is known, because all nodes are accepted then. */
  const isRecognised = () => state === 'right' || (state === 'unknown' && genesisId === null);
  const markWrong = (what: string) => {
    const isNew = state !== 'wrong';
    state = 'wrong';
    reason = what;
    wrongMs = clockMs();
    wrongTimes += 1;
    if (!isNew) return;
    log.error(
      { network, node: origin, reason },
      `${origin} belongs to another network: correct ${nodesVariable(network)}`,
    );
  };
  const run = async (): Promise<boolean> => {
    const expected = genesisId;
    // The refusal has already been counted by the request itself.
    const answer = await ask(headerAt('any', 0), { timeoutMs }).then(readShown, () => null);
    // The genesis block may have been replaced in the meantime. The next check compares with the new one.
    if (answer === null || expected !== genesisId) return false;
    const { id } = answer;
    if (id === null) onFailure('it did not return its genesis block');
    else if (id !== expected) markWrong(`its genesis block is ${id} instead of ${expected}`);
    else {
      state = 'right';
      reason = null;
      wrongTimes = 0;
    }
    return isRecognised();
  };
  const recheckMs = () => (isAlone() ? RECHECK.firstMs : backoffMs(wrongTimes, RECHECK));
  const isDue = () =>
    genesisId !== null && (state === 'wrong' ? clockMs() - wrongMs >= recheckMs() : state === 'unknown');
  return {
    isRecognised,
    markWrong,
    isWrong: () => state === 'wrong',
    wrongReason: () => (state === 'wrong' ? reason : null),
    /** Makes the node count as unrecognised until it has passed another check. */
    doubt: () => {
      if (state === 'right') state = 'unknown';
    },
    setGenesis: (id: string | null) => {
      if (id === genesisId) return;
      genesisId = id;
      state = 'unknown';
    },
    /**
     * Starts a check if one is due. Returns the pending check, or `null` if there's none. A check never rejects; it resolves to whether the
     * node is recognised.
     */
    check: () => {
      if (checking === null && isDue()) {
        checking = run().finally(() => {
          checking = null;
        });
      }
      return checking;
    },
    /** Resolves when no check is pending. */
    settled: () => checking ?? Promise.resolve(),
  };
}

/** Returns the id of block 0, or `null` if the node doesn't show it. */
function readShown(shown: ShownHeader | null): { id: string | null } {
  try {
    const mark = shown === null ? null : readBlockId(shown);
    return { id: mark?.number === 0 ? mark.id : null };
  } catch {
    return { id: null };
  }
}

/** If a node accepts only a few requests per second, the watcher has to wait for at most this many requests of the long-running work. */
const AT_ONCE = 2;
/** The pause before each request. It limits the rate to 40 requests per second, which is about 30 blocks and a quarter of a CPU core. */
const REST_MS = 50;
/** No user is waiting for the answer, so the timeout can be as long as if there were only one node. */
const TIMEOUT_MS = 10_000;
/** Following a chain takes 75,000 requests per day, and payers' lookups take at most 17,340. */
const NEEDED_A_DAY = 92_340;

/**
 * Returns a view of the pool for long-running work that can wait, while a watcher that can't wait uses the same nodes. It makes few
 * concurrent requests, and leaves enough of a node's daily limit for the watcher and payers until midnight (UTC). A wrong answer pauses the
 * node only for this work. `signal` aborts pending requests and rejects all later ones, with its reason.
 */
export function poolShare(pool: NodePool, { signal, now }: { signal: AbortSignal; now(): UnixMs }): NodePool {
  const inTurn = createSemaphore(AT_ONCE);
  const pauses = new Map<string, NodePause>();
  const clockMs = () => performance.now();
  const pausedMs = ({ origin }: Node) => pauses.get(origin)?.remainingMs() ?? 0;
  const shareOf = (node: Node): Node => ({
    ...node,
    ask: (question, call) =>
      inTurn(async () => {
        await delay(REST_MS, undefined, { signal });
        leaveOthersTheirs(node, now());
        // The questions are optional, because a node without history isn't to blame if it can't answer them.
        return unlessAborted(signal, () => node.ask(question, { timeoutMs: TIMEOUT_MS, ...call, isOptional: true }));
      }),
  });
  return {
    ...pool,
    available: async () => {
      const nodes = await unlessAborted(signal, () => pool.available());
      if (nodes.every((node) => pausedMs(node) > 0)) {
        for (const pause of pauses.values()) pause.shorten(ALONE.longestMs);
      }
      return nodes.filter((node) => pausedMs(node) === 0).map(shareOf);
    },
    report: ({ origin }) => {
      const pause = pauses.get(origin) ?? createNodePause({ clockMs, random: Math.random });
      pauses.set(origin, pause);
      pause.fail({ kind: 'report', sentMs: clockMs(), costMs: 0, askedMs: null, isAlone: false });
    },
    praise: ({ origin }) => void pauses.get(origin)?.praise(),
  };
}

function leaveOthersTheirs({ origin, requestsLeft }: Node, now: UnixMs): void {
  const left = requestsLeft();
  const needed = Math.ceil((NEEDED_A_DAY * (DAY_MS - (now % DAY_MS))) / DAY_MS);
  if (left === null || left > needed) return;
  const message = `${origin} was not queried: its last ${left} requests for today are reserved for the watcher and for payers; try again tomorrow (UTC), or add a node`;
  throw retryableError('NODE_REFUSED', message);
}
