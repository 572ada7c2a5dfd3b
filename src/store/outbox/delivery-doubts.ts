import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { rowsOf } from '../db/rows-of.ts';
import { text } from '../db/statement.ts';
import { WANTS_EVENT } from './adapter-orders.ts';

const doubt = {
  eventId: 'uuid',
  endpointId: 'uuid',
  kind: text<'missing' | 'unproven'>(),
  createdAt: 'timestamptz',
} as const;

/**
 * Of the newest 1,000 events with ids from one on: `missing`, an endpoint that is there longer, is active and wants the event, is told nothing of it;
 * `unproven`, a delivery ended, and no attempt says so. A ping is for one endpoint. The first 20.
 */
export const findDeliveryDoubts = rowsOf(
  'delivery-doubts',
  doubt,
  `with newest as materialized (
     select e.id, e.project_id, e.invoice_id, e.type, e.created_at from events e where e.network = $1 and e.id >= $2 order by e.id desc limit 1000)
   select e.id as event_id, w.id as endpoint_id, case when d.event_id is null then 'missing' else 'unproven' end as kind, e.created_at
   from newest e join webhook_endpoints w on w.project_id = e.project_id
   left join deliveries d on d.event_id = e.id and d.endpoint_id = w.id
   where case
     when d.event_id is null then w.disabled_at is null and w.created_at < e.created_at and e.type <> 'ping'
       and ${WANTS_EVENT}
     else d.status <> 'pending' and not exists (
       select from delivery_attempts a where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
         and a.attempt = d.attempt_count and (a.error is null) = (d.status = 'delivered')) end
   order by e.id limit 20`,
  (network: Network, from: string) => [network, from],
);

/** Makes what is put off until later than `after` due at `now`, up to 100 of each endpoint, and returns it. */
export const hastenPutOff = rowsOf(
  'delivery-hasten-put-off',
  { eventId: 'uuid', endpointId: 'uuid' },
  `update deliveries d set next_attempt_at = $2
   from webhook_endpoints w cross join lateral (
     select p.event_id from deliveries p
     where p.endpoint_id = w.id and p.status = 'pending' and p.next_attempt_at > $3 limit 100 for update skip locked) late
   where w.network = $1 and d.endpoint_id = w.id and d.event_id = late.event_id and d.status = 'pending'
   returning d.event_id, d.endpoint_id`,
  (network: Network, now: UnixMs, after: UnixMs) => [network, new Date(now), new Date(after)],
);
