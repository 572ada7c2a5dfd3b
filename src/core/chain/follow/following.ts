import type { AccountHex } from '@quittance/tron/address';
import type { UnixMs } from '../../domain/time.ts';
import type { HeldBack } from '../../payments/held-back.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { RequestShare } from '../../runtime/request-share.ts';
import type { Database } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import type { KnownProducers } from '../verify/producers.ts';
import type { ReadDeps } from '../verify/read-block.ts';
import type { Alarms } from './alarms.ts';
import type { Pace } from './pace.ts';
import type { WindowBlock } from './window.ts';

export type FollowDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  /** The network's block time: 3,000 ms on real networks. */
  blockMs: number;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  /** Receives how long recording took, and when Quittance is catching up, in a process that also serves requests. */
  requestShare?: Pick<RequestShare, 'onWork' | 'onBehind'>;
  alarms: Alarms;
  /** The orders that can't expire. */
  held?: HeldBack;
};

/**
 * A watcher's state of a network that isn't in the database. It's a cache, rebuilt from the solid cursor after a restart. `window` holds
 * the verified blocks above `base`, linked by parent, the newest last.
 */
export type Following = {
  base: { number: number; id: string; time: UnixMs };
  window: WindowBlock[];
  producers: KnownProducers | null;
  /** The period (of `PERIOD_MS`) in which the producers were last read. */
  producersPeriod: number;
  /** When a block may cause another request for the producers, monotonic. */
  producersNextMs: number;
  /** When the producers are requested again without a reason, because nodes refused or disagreed; monotonic. */
  producersRetryMs: number;
  /**
   * The producer of the last block that no known key signed, until nodes name its key. The key is requested each time. Only one is kept,
   * because otherwise forged blocks could make Quittance request every producer's key.
   */
  suspect: AccountHex | null;
  nodeSolid: { number: number; time: UnixMs };
  /** The lowest height that a node called irreversible and our own count doesn't confirm yet. `null`: none. */
  solidClaim: number | null;
  /** The height that `agreement` operators call irreversible. Requested when no known key signed a block. */
  agreedSolid: number;
  /** Incremented when the node that was asked for the irreversible block is behind, so that the next request goes to another node. */
  solidAsker: number;
  /** Whether a node shows the next block without its infos, and for how many consecutive blocks it did so at first. */
  lateInfos: { isNow: boolean; blocks: number };
  /** An operator whose block can't be judged yet. Other operators are asked first for a while. */
  avoided: { operator: string; untilMs: number } | null;
  /** Consecutive failed ranges by the node's origin. A node may not support ranges at all. */
  rangeFailures: Map<string, number>;
  /** The height up to which blocks were read with the current successor. Infinity: all of them. */
  judgedUpTo: number;
  /** Recorded blocks that no header proves, since this process started: how many in a row up to the newest, and the times of the latest. */
  unproven: { inARow: number; times: UnixMs[] };
  pace: Pace;
  /** The newest block when a node had no later one and the database was updated, with the time of that; monotonic. */
  live: { number: number; ms: number };
  /** Examined blocks that were orphaned and aren't in the database as orphaned yet; only the newest are kept. */
  orphaned: WindowBlock[];
  /** The contract's events above the solid block whose effects the database shows, as text. `null`: not known yet. */
  shownEvents: string | null;
  /** Operators whose irreversible chain differs from ours, with the reason. */
  diagnosingFork: Map<string, string>;
  /** When logs are requested again, monotonic. */
  quorumNextMs: number;
  /** Since when many blocks have waited for the logs of further operators, monotonic. `null`: only a few wait. */
  openSinceMs: number | null;
  /** When a node that shows blocks again after an outage may next be asked for the irreversible block, monotonic. */
  backNextMs: number;
  /** When differing operators are asked again, monotonic. */
  disputeNextMs: number;
};

/** More than the longest branch that is walked back. */
const MAX_ORPHANED = 200;

/** Replaces the blocks of the window from index `place` on. */
export function replaceFrom({ window, orphaned }: Following, place: number, ...blocks: WindowBlock[]): void {
  const gone = window.splice(place, Number.POSITIVE_INFINITY, ...blocks);
  orphaned.push(...gone.filter(({ detected }) => detected !== 'nothing'));
  orphaned.splice(0, orphaned.length - MAX_ORPHANED);
}

export function tipOf({ window, base }: Following): { number: number; id: string; time: UnixMs } {
  return window.at(-1) ?? base;
}

/** All transfers up to this time are certain. After it, an invoice may have been paid in a block that waits for agreement. */
export function certainTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed }) => agreed === null);
}

/**
 * All transfers up to this time are certain and in the database. Nothing that expires later is expired yet. After a restart blocks are
 * verified again before they are sighted again, and the database decides how a payment changes its invoice.
 */
export function detectedTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed, detected }) => agreed === null || detected !== 'everything');
}

/**
 * The time of the newest block before the first one that is open or not judged. If the first block is open, the time of the solid block.
 */
function timeBefore({ base, window, judgedUpTo }: Following, isOpen: (block: WindowBlock) => boolean): UnixMs {
  const first = window.findIndex((block) => block.number > judgedUpTo || isOpen(block));
  const last = first < 0 ? window.at(-1) : window[first - 1];
  return (last ?? base).time;
}
