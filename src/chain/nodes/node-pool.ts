import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Network } from '../../domain/network.ts';
import { type NodeSpec, nodeOrigin } from '../../domain/node.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { RememberedPause } from '../../store/chain/status.ts';
import type { NodeClient, NodeClientOptions } from './client.ts';
import type { Node, NodeHealth, NodeProblem } from './node.ts';
import { createNodeMember, type NodeMember } from './node-member.ts';
import { ALONE } from './node-pause.ts';
import { createPatience } from './patience.ts';

/** The nodes of one network, in order of preference, as far as they can be asked. */
export type NodePool = {
  /**
   * Those that may be asked now, in order of preference; a node that is only just being tried again comes last. Each was
   * found to be of the right network. Makes no request, and waits for none, while a node that was checked is well.
   */
  available(): Promise<Node[]>;
  /** Something is wrong with what a node said: pauses it, doubling with each report in a row. */
  report(node: Node, problem: NodeProblem, reason: string): void;
  /** Ends a node's row of failures, for its answer was right. Called per verified block. */
  praise(node: Node): void;
  health(): NodeHealth[];
  /** Goes on with the pauses that a former process knew of, by the node's origin; those of an unknown one are passed over. */
  restore(pauses: readonly RememberedPause[]): void;
  /** Sets the block id by which nodes are recognised (64 hex); null: not known yet, any node passes. */
  setGenesis(id: string | null): void;
  /** Ends requests under way. */
  close(): Promise<void>;
};

export type NodePoolOptions = {
  network: Network;
  nodes: readonly NodeSpec[];
  now(): UnixMs;
  log: Logger;
  metrics: Metrics;
  /** The block time: timeouts at the head are chosen so that failover takes less than one. */
  blockMs: number;
  /** A monotonic clock in milliseconds. */
  clockMs?(): number;
  random?(): number;
  /** How nodes are asked; over the network when absent. */
  createClient?(options: NodeClientOptions): NodeClient;
};

/** For a small answer where no other node is left to ask instead. */
const ALONE_TIMEOUT_MS = 10_000;
/** For a small answer where there is one: this share of a block time, so that another answers within the same block time. */
const FAILOVER_SHARE = 0.6;
const MIN_FAILOVER_MS = 1500;
/** How long a start waits for further nodes once one is known to be right, so that the preferred one is not missed by a hair. */
const GRACE_MS = 250;

/** Never fails because of a node: one that cannot be asked is left out until it can. */
export function createNodePool(options: NodePoolOptions): NodePool {
  const { nodes, blockMs, clockMs = () => performance.now(), random = Math.random } = options;
  const timeoutMs = nodes.length === 1 ? ALONE_TIMEOUT_MS : Math.max(MIN_FAILOVER_MS, FAILOVER_SHARE * blockMs);
  const patience = createPatience();
  const closing = new AbortController();
  // Each request that waits for its turn listens; the budget bounds their number.
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
    available: async () => {
      if (closing.signal.aborted) return [];
      if (!members.some((member) => member.isUsable()))
        for (const member of members) member.shortenPause(ALONE.longestMs);
      for (const member of members) member.showMetrics();
      const checks = members.flatMap((member) => member.recognise() ?? []);
      if (ready().length === 0 && checks.length > 0) await firstThenGrace(checks);
      return inOrder(ready());
    },
    report: ({ origin }, problem, reason) => byOrigin.get(origin)?.report(problem, reason),
    praise: ({ origin }) => byOrigin.get(origin)?.praise(),
    health: () => members.map((member) => member.health()),
    restore: (pauses) => {
      for (const pause of pauses) byOrigin.get(pause.url)?.restorePause(pause);
    },
    setGenesis: (id) => {
      for (const member of members) member.setGenesis(id);
    },
    close: async () => {
      closing.abort();
      await Promise.all(members.map((member) => member.close()));
    },
  };
}

/** A node that failed and has an answer outstanding is on trial: one request tries it, the others go elsewhere. */
function inOrder(members: readonly NodeMember[]): Node[] {
  const steady = members.filter((member) => !member.isOnTrial());
  const onTrial = members.filter((member) => member.isOnTrial());
  return [...steady, ...onTrial].map(({ node }) => node);
}

/** Waits until all checks are done, or one succeeded and the others had a moment more. Checks never reject. */
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

/** Names for logs, without paths, which may hold a token. Where one host serves several nodes they are numbered. */
function nameOrigins(nodes: readonly NodeSpec[]): string[] {
  const seen = new Map<string, number>();
  return nodes.map(({ url }) => {
    const origin = nodeOrigin(url);
    const count = (seen.get(origin) ?? 0) + 1;
    seen.set(origin, count);
    return count === 1 ? origin : `${origin}#${count}`;
  });
}
