import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { findWatchedNetworks, UNWATCHED_MS } from '../../store/chain/watched-networks.ts';
import type { Database } from '../../store/db/database.ts';
import { describeUnwatched } from '../watched-networks.ts';
import type { Trouble, Troubles } from './troubles.ts';

const LOOK_MS = 15_000;

type Deps = {
  troubles: Troubles;
  /** Those of this process's configuration. */
  networks: readonly Network[];
  log: Logger;
  now(): number;
};

/**
 * Looks for networks that have active addresses and no watcher. Any process finds that out, because of the watchers there may be none. A
 * line is logged at the start for a network that this process does not know.
 */
export function createUnwatchedLook({ troubles, networks, log, now }: Deps) {
  const startMs = now();
  let lookedMs: number | null = null;
  return async (db: Database): Promise<void> => {
    const nowMs = now();
    if (lookedMs !== null && Math.abs(nowMs - lookedMs) < LOOK_MS) return;
    const isFirst = lookedMs === null;
    lookedMs = nowMs;
    const unwatched = (await findWatchedNetworks(db)).filter(({ takesMoney, isWatched }) => takesMoney && !isWatched);
    if (isFirst) {
      for (const each of unwatched) {
        if (!networks.includes(each.network)) log.warn({ network: each.network }, describeUnwatched(each));
      }
    }
    // After a start, watchers have as long to begin.
    if (Math.abs(nowMs - startMs) < UNWATCHED_MS) return;
    const found = unwatched.filter(({ isSilent }) => isSilent);
    troubles.set(
      'network-unwatched',
      found.map((each): Trouble => {
        const detail = describeUnwatched(each);
        return { kind: 'network-unwatched', network: each.network, subject: '', detail, isReady: true };
      }),
    );
  };
}
