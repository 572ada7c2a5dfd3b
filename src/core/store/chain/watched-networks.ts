import { NETWORKS, type Network } from '../../domain/network.ts';
import { rowsOf } from '../db/rows-of.ts';
import { text } from '../db/statement.ts';

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
