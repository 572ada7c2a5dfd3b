import { say, type Text } from '../domain/message.ts';
import { keyMode, NETWORKS, type Network, nodesVariable } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { Sql } from '../store/db/database.ts';
import { rowsOf } from '../store/db/rows-of.ts';
import { text } from '../store/db/statement.ts';

/** A standby takes over within 10 s, so if no watcher has run for this long, there's no standby. */
export const UNWATCHED_MS = 60_000;

/**
 * Returns how each network is watched. `wasWatched`: a watcher has held its lease or followed its blocks at some time, because both leave
 * permanent rows. `wasSeen`: a node has returned a block at some time. `seenAt`: when the last lease ended, or `null` if a lease is held or
 * none ever was. `isSilent`: no lease is held or has been held for `UNWATCHED_MS`. `takesMoney`: the network has an active address.
 */
export const findWatchedNetworks = rowsOf(
  'watched-networks',
  {
    network: text<Network>(),
    wasWatched: 'bool',
    wasSeen: 'bool',
    isWatched: 'bool',
    isSilent: 'bool',
    takesMoney: 'bool',
    seenAt: 'timestamptz?',
  },
  `select n.network, l.name is not null or exists (select from chain_cursors c where c.network = n.network) as was_watched,
     exists (select from chain_cursors c where c.network = n.network) as was_seen,
     coalesce(l.expires_at > now(), false) as is_watched,
     coalesce(l.expires_at <= now() - ${UNWATCHED_MS} * interval '1 millisecond', true) as is_silent,
     exists (select from projects p join addresses a on a.project_id = p.id
             where p.network = n.network and a.retired_at is null) as takes_money,
     case when l.expires_at <= now() then l.expires_at end as seen_at
   from unnest($1::text[]) n (network) left join leases l on l.name = 'watcher:' || n.network`,
  (networks: readonly Network[] = NETWORKS) => [[...networks]],
);

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
