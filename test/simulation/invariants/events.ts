import { decodeId } from '../../../src/core/domain/ids.ts';
import type { Truth } from '../truth.ts';
import { fromSql } from './from-sql.ts';

/** The milliseconds at the beginning of an id. Ids depend on clocks, and clocks more than a minute apart raise an alarm. */
const MADE = (id: string) => `('x' || left(replace(${id}::text, '-', ''), 12))::bit(48)::int8`;

const STORY = fromSql({
  number: 11,
  title: 'one state change is one event, and sequences are gapless',
  when: 'step',
  body: `
    select format('change %s of invoice %s was to %s, and event %s is %s', coalesce(c.place, e.sequence), coalesce(c.invoice_id, e.invoice_id),
      c.after, e.sequence, e.type)
    from (
      select invoice_id, after, row_number() over (partition by invoice_id order by n) as place from witness.transitions
      where before is not null) c
    full join (select * from events where invoice_id is not null) e on e.invoice_id = c.invoice_id and e.sequence = c.place
    where e.type is distinct from 'invoice.' || lower(c.after)
    union all
    select format('invoice %s counts %s events, and has %s', i.id, i.event_count, count(e.id))
    from invoices i left join events e on e.project_id = i.project_id and e.invoice_id = i.id
    group by i.project_id, i.id having i.event_count <> count(e.id)
    union all
    select format('%s transfer %s has %s events of %s', r.kind, r.id, count(e.id), string_agg(e.type, ', '))
    from transfers r
    left join events e on e.transfer_id = r.id and e.type = case r.kind when 'matched' then 'invoice.paid' else 'transfer.' || r.kind end
    left join untold_transfers u on u.transfer_id = r.id
    group by r.id, r.kind, u.transfer_id having count(e.id) + count(distinct u.transfer_id) <> 1
    union all
    select format('transfer %s is told of after %s, which was recorded later', transfer_id, before)
    from (
      select transfer_id, lag(transfer_id) over (partition by project_id order by position) as before from events
      where type in ('transfer.unmatched', 'transfer.duplicate')) told
    where transfer_id < before and ${MADE('before')} - ${MADE('transfer_id')} < 60000
    union all
    select format('project %s has %s events at positions %s to %s, and its stream is at %s', project_id, found.events, found.first, found.last,
      s.last_position)
    from (
      select project_id, count(distinct position) as events, min(position) as first, max(position) as last from events
      group by project_id) found
    full join event_streams s using (project_id)
    where (found.first, found.last, found.events) is distinct from (1::bigint, s.last_position, s.last_position)`,
});

const DELIVERED = fromSql({
  number: 12,
  title: 'every event is delivered, or dead and in the feed',
  when: 'quiet',
  body: `
    select format('transfer %s is not told of', transfer_id) from untold_transfers
    union all
    select format('%s %s to endpoint %s %s', e.type, e.event_id, p.endpoint_id,
      coalesce('is ' || d.status || format(' after %s of %s attempts', d.attempt_count, d.max_attempts), 'was never planned'))
    from witness.planned p
    join witness.events e using (event_id)
    join webhook_endpoints w on w.id = p.endpoint_id
    left join deliveries d using (event_id, endpoint_id)
    left join witness.ended x using (event_id, endpoint_id)
    where case coalesce(d.status, x.status, 'missing')
      when 'delivered' then false
      when 'dead' then d.attempt_count < d.max_attempts
      when 'pending' then w.disabled_at is null
      else true end
    union all
    select format('%s %s of project %s is not in the feed at position %s', e.type, e.event_id, e.project_id, e.position)
    from witness.events e left join events f on f.id = e.event_id
    where (f.project_id, f.position) is distinct from (e.project_id, e.position)`,
  also: deliveredUnreceived,
});

/** The result of each change: its event, and the event's deliveries. */
export const EVENTS = [STORY, DELIVERED];

async function deliveredUnreceived({ query, received }: Truth): Promise<string[]> {
  const arrived = new Set(
    received.map(({ headers, endpointId }) => `${decodeId('evt', headers['webhook-id'] ?? '')} ${endpointId}`),
  );
  const rows = await query(
    "select event_id || ' ' || endpoint_id as delivery from deliveries where status = 'delivered'",
  );
  return rows
    .map(({ delivery }) => String(delivery))
    .filter((delivery) => !arrived.has(delivery))
    .map((delivery) => `event and endpoint ${delivery} are delivered by the books, and nobody received it`);
}
