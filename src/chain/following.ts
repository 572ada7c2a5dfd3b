import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Database } from '../store/database.ts';
import type { Alarms } from './alarms.ts';
import type { Node } from './node-member.ts';
import type { NodePool } from './node-pool.ts';
import type { Pace } from './pace.ts';
import type { KnownProducers } from './producers.ts';
import type { ChainParameters } from './read-block.ts';
import type { WindowBlock } from './window.ts';

/** What a watcher works with. */
export type FollowDeps = ChainParameters & {
  db: Database;
  network: Network;
  pool: NodePool;
  /** Operators that must show the same logs, and name the same producers. */
  agreement: number;
  /** The network's rhythm: 3,000 ms on real networks. */
  blockMs: number;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  alarms: Alarms;
};

/**
 * What a watcher knows of a network beyond the database: a cache that is built anew from the solid cursor after a restart.
 * `window` holds the verified blocks above `base`, linked by parent, the newest last.
 */
export type Following = {
  base: { number: number; id: string; time: UnixMs };
  window: WindowBlock[];
  producers: KnownProducers | null;
  /** The period (of `PERIOD_MS`) for which the producers were asked for. */
  producersPeriod: number;
  /** When the nodes may be asked for the producers again, monotonic. */
  producersNextMs: number;
  /** What nodes said is irreversible. */
  nodeSolid: { number: number; time: UnixMs };
  /** The same by `agreement` operators, asked for when a block is signed by nobody known. */
  agreedSolid: number;
  pace: Pace;
  /** Operators whose irreversible chain is another than ours, with what they show. */
  contradicting: Map<string, string>;
  /** When blocks on which nodes disagree are asked for again, monotonic. */
  disputeNextMs: number;
};

/** The newest verified block. */
export function tipOf({ window, base }: Following): { number: number; id: string; time: UnixMs } {
  return window.at(-1) ?? base;
}

/** The first nodes, in order of preference, of `count` different operators. */
export function ofDifferentOperators(nodes: readonly Node[], count: number): Node[] {
  const operators = new Set<string>();
  return nodes.filter(({ operator }) => {
    if (operators.has(operator) || operators.size >= count) return false;
    operators.add(operator);
    return true;
  });
}
