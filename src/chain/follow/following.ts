import type { UnixMs } from '../../domain/time.ts';
import type { HeldBack } from '../../payments/held-back.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { RequestShare } from '../../runtime/request-share.ts';
import type { Database } from '../../store/db/database.ts';
import type { AccountHex } from '../../tron/address.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import type { KnownProducers } from '../verify/producers.ts';
import type { ReadDeps } from '../verify/read-block.ts';
import type { Alarms } from './alarms.ts';
import type { Pace } from './pace.ts';
import type { WindowBlock } from './window.ts';

export type FollowDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  /** The network's rhythm: 3,000 ms on real networks. */
  blockMs: number;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  /** Is told how long recording took and when blocks are caught up with, where requests share the process. */
  requestShare?: Pick<RequestShare, 'onWork' | 'onBehind'>;
  alarms: Alarms;
  /** Knows the orders that cannot expire. */
  held?: HeldBack;
};

/**
 * A watcher's knowledge of a network beyond the database: a cache that is rebuilt from the solid cursor after a restart.
 * `window` holds the verified blocks above `base`, linked by parent, the newest last.
 */
export type Following = {
  base: { number: number; id: string; time: UnixMs };
  window: WindowBlock[];
  producers: KnownProducers | null;
  /** The period (of `PERIOD_MS`) for which the producers were asked for. */
  producersPeriod: number;
  /** When the nodes may be asked for the producers again because of a block, monotonic. */
  producersNextMs: number;
  /** When they are asked again although nothing called for it, because they refused or disagreed; monotonic. */
  producersRetryMs: number;
  /**
   * The producer of the last block that no known key signed, until nodes name its key: the key is asked for anew each time. Only
   * one is kept, for a forger of blocks could otherwise make us ask for every producer's key.
   */
  suspect: AccountHex | null;
  /** The newest block that nodes called irreversible. */
  nodeSolid: { number: number; time: UnixMs };
  /** The oldest height that a node called irreversible and that is not so by our count yet; `null`: there is none. */
  solidClaim: number | null;
  /** The height that `agreement` operators call irreversible; asked for when no known key signed a block. */
  agreedSolid: number;
  /** Counts up with each node that was behind when it was asked what is irreversible: the next one is another. */
  solidAsker: number;
  /** Whether a node shows the next block without its infos, and of how many blocks in a row it did at first. */
  lateInfos: { isNow: boolean; blocks: number };
  /** An operator whose block we cannot judge now: others are asked first for a while. */
  avoided: { operator: string; untilMs: number } | null;
  /** Ranges in a row that a node, by origin, did not show: it may not answer them at all. */
  rangeFailures: Map<string, number>;
  /** The height up to which blocks were read with the successor that is known now; infinity: all of them. */
  judgedUpTo: number;
  /** Recorded blocks that no header proves, since this process follows the chain: in a row up to the newest, and the times of the last ones. */
  unproven: { inARow: number; times: UnixMs[] };
  pace: Pace;
  /** The newest block when a node had no further one and the database was told so, and when; monotonic. */
  live: { number: number; ms: number };
  /** Blocks that were examined and are of no branch that is followed any more, until the database is told; the newest. */
  orphaned: WindowBlock[];
  /** The contract's events above the solid block that the database shows the effects of, as text; `null`: not known yet. */
  shownEvents: string | null;
  /** Operators whose irreversible chain is another than ours, with what they show. */
  diagnosingFork: Map<string, string>;
  /** When logs are asked for again, monotonic. */
  quorumNextMs: number;
  /** Since when many blocks wait for the logs of further operators, monotonic; `null`: few do. */
  openSinceMs: number | null;
  /** When a node may be asked again what is irreversible because it shows blocks after an outage, monotonic. */
  backNextMs: number;
  /** When operators that differ are asked for again, monotonic. */
  disputeNextMs: number;
};

/** More than a branch that is walked back. */
const MAX_ORPHANED = 200;

/** Takes the blocks from a place on out of the window, and puts others there. */
export function replaceFrom({ window, orphaned }: Following, place: number, ...blocks: WindowBlock[]): void {
  const gone = window.splice(place, Number.POSITIVE_INFINITY, ...blocks);
  orphaned.push(...gone.filter(({ detected }) => detected !== 'nothing'));
  orphaned.splice(0, orphaned.length - MAX_ORPHANED);
}

/** The newest verified block. */
export function tipOf({ window, base }: Following): { number: number; id: string; time: UnixMs } {
  return window.at(-1) ?? base;
}

/** All transfers up to this time are certain. Past it no invoice is surely unpaid: its payment may stand in a block that waits. */
export function certainTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed }) => agreed === null);
}

/**
 * All transfers up to this time are certain and in the database: past it nothing expires. After a restart blocks are verified again
 * before they are sighted again, and the database decides what a payment does to its invoice.
 */
export function detectedTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed, detected }) => agreed === null || detected !== 'everything');
}

/** The time of the newest block before the first one that is open, or not judged; the solid one's, if that is the next. */
function timeBefore({ base, window, judgedUpTo }: Following, isOpen: (block: WindowBlock) => boolean): UnixMs {
  const first = window.findIndex((block) => block.number > judgedUpTo || isOpen(block));
  const last = first < 0 ? window.at(-1) : window[first - 1];
  return (last ?? base).time;
}
