import type { Network } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import { findWatchedNetworks } from '../store/chain/watched-networks.ts';
import type { Sql } from '../store/db/database.ts';

export type WatchedNetworks = { isKnown(network: Network): Promise<boolean> };

/**
 * The networks for which invoices are made: those of this process's configuration, and those that a watcher of another process ever
 * followed. One that is down keeps none from being made, for it reads later what was paid meanwhile; where there never was one, nobody
 * would.
 */
export function createWatchedNetworks({ db, networks }: { db: Sql; networks: readonly Network[] }): WatchedNetworks {
  const known = new Set(networks);
  return {
    isKnown: async (network) => {
      if (known.has(network)) return true;
      const [found] = await findWatchedNetworks(db, [network]);
      if (found?.wasWatched === true) known.add(network);
      return found?.wasWatched === true;
    },
  };
}

/** What is wrong with a network that no watcher holds, for everybody to read. */
export function describeUnwatched({ network, seenAt }: { network: Network; seenAt: UnixMs | null }): string {
  const since = seenAt === null ? 'has ever run' : `has been seen since ${toIso(seenAt)}`;
  return `no watcher of ${network} ${since}, so nobody sees what is paid there: set QUITTANCE_${network.toUpperCase()}_NODES, and start a process with the role watcher`;
}
