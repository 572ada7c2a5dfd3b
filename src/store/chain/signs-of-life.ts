import { NETWORKS, type Network } from '../../domain/network.ts';
import { rowsOf } from '../db/rows-of.ts';
import { maybeText } from '../db/statement.ts';

/**
 * What goes on while each work is done by some process, and whether there is such work: a lease is renewed every few seconds, and the oldest
 * delivery that is due to a working endpoint is another one. `sign` is null where there is none.
 */
export const findSignsOfLife = rowsOf(
  'signs-of-life',
  { work: 'text', network: maybeText<Network>(), sign: 'text?', isNeeded: 'bool' },
  `select l.name as work, n.network, l.holder || ' ' || l.epoch || ' ' || l.expires_at as sign,
     case
       when n.network is not null then exists (
         select from projects p join addresses a on a.project_id = p.id where p.network = n.network and a.retired_at is null)
       when l.name = 'notifier' then exists (select from notify_channels where removed_at is null)
       when l.name = 'rates' then exists (select from webhook_endpoints where rate_source is not null and disabled_at is null)
       else false end as is_needed
   from leases l left join unnest($1::text[]) n (network) on l.name = 'watcher:' || n.network
   union all
   select 'webhooks', null, min(d.next_attempt_at)::text, true
   from webhook_endpoints w cross join lateral (
     select d.next_attempt_at from deliveries d
     where d.endpoint_id = w.id and d.status = 'pending' order by d.next_attempt_at limit 1) d
   where w.disabled_at is null and w.failing_since is null and w.open_until is null and d.next_attempt_at < now()`,
  () => [[...NETWORKS]],
);
