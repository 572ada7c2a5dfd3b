import type { AccountHex } from '@quittance/tron/address';
import { ALARM_KINDS, type AlarmKind } from '../../domain/alarm-kinds.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { HeldBack } from '../../payments/held-back.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { RequestShare } from '../../runtime/request-share.ts';
import { countOpenAlarms, resolveAlarms } from '../../store/chain/alarms.ts';
import { tellAlarm } from '../../store/chain/tell-alarms.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import type { KnownProducers } from '../verify/producers.ts';
import type { ReadDeps } from '../verify/read-block.ts';
import type { Pace } from './pace.ts';
import type { WindowBlock } from './window.ts';

export type FollowDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  /** The network's block time, which is 3,000 ms on real networks. */
  blockMs: number;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  /** Is notified of how long recording takes and whether Quittance is catching up. Set only in a process that also serves requests. */
  requestShare?: Pick<RequestShare, 'onWork' | 'onBehind'>;
  alarms: Alarms;
  /** Orders that can't expire at the moment. */
  held?: HeldBack;
};

/**
 * The part of a watcher's state that isn't in the database. It's a cache, rebuilt from the solid cursor after a restart. `window` holds the
 * verified blocks above `base`, each linked to its parent, with the newest last.
 */
export type Following = {
  base: { number: number; id: string; time: UnixMs };
  window: WindowBlock[];
  producers: KnownProducers | null;
  /** The period (of `PERIOD_MS`) in which the producers were last read. */
  producersPeriod: number;
  /** Earliest time at which a block may cause another request for the producers (monotonic). */
  producersNextMs: number;
  /** Time at which the producers are requested again, whatever the blocks show, because nodes refused or disagreed (monotonic). */
  producersRetryMs: number;
  /**
   * The producer of the last block that no known key signed, until nodes report its key. The key is requested each time. Only one suspect
   * is kept; otherwise forged blocks could make Quittance request the key of every producer.
   */
  suspect: AccountHex | null;
  nodeSolid: { number: number; time: UnixMs };
  /** The lowest height that a node has called irreversible but our own count hasn't confirmed yet, or `null` if there's none. */
  solidClaim: number | null;
  /** The height that `agreement` operators call irreversible. It's requested only when no known key signed a block. */
  agreedSolid: number;
  /** Incremented when the node that we asked for the irreversible block is behind, so that the next request goes to another node. */
  solidAsker: number;
  /** Whether a node is showing the next block without its infos, and for how many consecutive blocks this has happened. */
  lateInfos: { isNow: boolean; blocks: number };
  /** An operator whose block can't be judged yet. For a while, other operators are asked first. */
  avoided: { operator: string; untilMs: number } | null;
  /** Consecutive failed ranges, by the node's origin. Some nodes don't support ranges at all. */
  rangeFailures: Map<string, number>;
  /** The height up to which blocks were read with the current successor, or infinity if all of them were. */
  judgedUpTo: number;
  /** Recorded blocks that no header proves, since this process started: the length of the current run, and the times of the latest ones. */
  unproven: { inARow: number; times: UnixMs[] };
  pace: Pace;
  /** The newest block at the time when a node had no later one and the database was updated, and that time (monotonic). */
  live: { number: number; ms: number };
  /** Examined blocks that were orphaned, but aren't marked as orphaned in the database yet. Only the newest are kept. */
  orphaned: WindowBlock[];
  /** The contract's events above the solid block whose effects are already in the database, as text; `null` until known. */
  shownEvents: string | null;
  /** Operators whose irreversible chain differs from ours, each with the reason. */
  diagnosingFork: Map<string, string>;
  /** Time of the next request for logs (monotonic). */
  quorumNextMs: number;
  /**
   * The time since when many blocks have been waiting for the logs of further operators (monotonic), or `null` if only a few are waiting.
   */
  openSinceMs: number | null;
  /** Earliest time at which a node that shows blocks again after an outage may be asked for the irreversible block (monotonic). */
  backNextMs: number;
  /** Time at which differing operators are asked again (monotonic). */
  disputeNextMs: number;
};

/** Longer than any branch that Quittance walks back. */
const MAX_ORPHANED = 200;

/** Replaces the blocks of the window from index `place` onwards. */
export function replaceFrom({ window, orphaned }: Following, place: number, ...blocks: WindowBlock[]): void {
  const gone = window.splice(place, Number.POSITIVE_INFINITY, ...blocks);
  orphaned.push(...gone.filter(({ detected }) => detected !== 'nothing'));
  orphaned.splice(0, orphaned.length - MAX_ORPHANED);
}

export function tipOf({ window, base }: Following): { number: number; id: string; time: UnixMs } {
  return window.at(-1) ?? base;
}

/**
 * Returns the time up to which all transfers are certain. Later invoices may have been paid in a block that is still waiting for agreement.
 */
export function certainTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed }) => agreed === null);
}

/**
 * Returns the time up to which all transfers are certain and in the database. An invoice that expires later must not expire yet. After a
 * restart, blocks are verified again before they are sighted again, and only sightings in the database can change an invoice.
 */
export function detectedTime(following: Following): UnixMs {
  return timeBefore(following, ({ agreed, detected }) => agreed === null || detected !== 'everything');
}

/** Returns the time of the newest block before the first that is open or not judged, or the time of the solid block if there's none. */
function timeBefore({ base, window, judgedUpTo }: Following, isOpen: (block: WindowBlock) => boolean): UnixMs {
  const first = window.findIndex((block) => block.number > judgedUpTo || isOpen(block));
  const last = first < 0 ? window.at(-1) : window[first - 1];
  return (last ?? base).time;
}

export type Alarms = {
  /**
   * Opens an alarm, or counts another occurrence if it's already open. Runs in the transaction `tx` if one is given. Only a new alarm is
   * logged.
   */
  raise(kind: AlarmKind, subject: string, detail: string, tx?: Sql): Promise<void>;
  /** Closes all alarms of this kind. Sends no query if none is open. */
  resolve(kind: AlarmKind): Promise<void>;
  /** Sets the metric from the alarms that any process has raised, and caches which kinds are open. */
  refresh(): Promise<void>;
};

type AlarmDeps = { db: Sql; network: Network; log: Logger; metrics: Metrics };

export function createAlarms({ db, network, log, metrics }: AlarmDeps): Alarms {
  /** The kinds of which an alarm may be open, or `null` until they have been loaded. */
  let open: Set<AlarmKind> | null = null;
  const refresh = async () => {
    const counts = await countOpenAlarms(db, network);
    open = new Set(counts.keys());
    for (const kind of ALARM_KINDS) metrics.alarmsOpen.set({ network, kind }, counts.get(kind) ?? 0);
  };
  return {
    refresh,
    raise: async (kind, subject, detail, tx = db) => {
      open?.add(kind);
      await tellAlarm({ db: tx, log }, kind, { network, subject, detail });
    },
    resolve: async (kind) => {
      if (open === null) await refresh();
      if (open?.has(kind) !== true) return;
      const count = await resolveAlarms(db, network, kind);
      open.delete(kind);
      if (count > 0) log.info({ alarm: kind }, 'the alarm is resolved');
    },
  };
}
