import { say, type Text } from '../domain/message.ts';
import { keyMode, type Network, nodesVariable } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import { findWatchedNetworks } from '../store/chain/watched-networks.ts';
import type { Sql } from '../store/db/database.ts';

/** Why no invoice can be created on a network: no watcher follows it, or no node has ever returned one of its blocks. */
export type Unwatched = 'not-set-up' | 'never-seen';

export type WatchedNetworks = { whyNot(network: Network): Promise<Unwatched | null> };

/**
 * Invoices can be created on the networks in this process's configuration, and on networks that another process's watcher has ever
 * followed. It doesn't matter if that watcher is currently down, because it reads the payments later. On a network with real money, a node
 * must have returned at least one block, because no payment would be seen if the node's URL was mistyped.
 */
export function createWatchedNetworks({ db, networks }: { db: Sql; networks: readonly Network[] }): WatchedNetworks {
  const ready = new Set(networks.filter((network) => keyMode(network) === 'test'));
  return {
    whyNot: async (network) => {
      if (ready.has(network)) return null;
      const [found] = await findWatchedNetworks(db, [network]);
      if (!networks.includes(network) && found?.wasWatched !== true) return 'not-set-up';
      if (keyMode(network) === 'live' && found?.wasSeen !== true) return 'never-seen';
      ready.add(network);
      return null;
    },
  };
}

/** Returns a warning for the operator who creates a project or a key, or `null` if there's no problem. */
export async function warnUnwatched(db: Sql, network: Network, networks: readonly Network[]): Promise<Text | null> {
  const [found] = await findWatchedNetworks(db, [network]);
  if (found === undefined) return null;
  if (!found.isWatched && !networks.includes(network)) {
    const then = found.wasWatched ? '' : '. Until a watcher runs, Quittance creates no invoices for the project (503)';
    return describeUnwatched(found) + then;
  }
  if (keyMode(network) === 'test' || found.wasSeen) return null;
  return say`${neverSeen(network)}. Until a node returns a block, Quittance creates no invoices for the project (503). If this does not change, check ${nodesVariable(network)} with "${{ command: 'doctor' }}"`;
}

export const neverSeen = (network: Network): string => `no ${network} node has returned a block yet`;

/** Describes the problem with a network that has no watcher. The text may be shown publicly. */
export function describeUnwatched({ network, seenAt }: { network: Network; seenAt: UnixMs | null }): string {
  const since = seenAt === null ? 'has ever run' : `has run since ${toIso(seenAt)}`;
  return `no ${network} watcher ${since}, so payments on this network go unnoticed: set ${nodesVariable(network)}, and start a process with the watcher role`;
}
