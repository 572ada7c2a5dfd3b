import type { EventType } from '../../domain/event.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { hexSeal, sealColumn } from '../db/seal.ts';
import { SEALED_EVENT } from '../db/sealed-tables.ts';
import { sealedBefore, statement } from '../db/statement.ts';
import { WANTS_EVENT } from './adapter-orders.ts';
import { expediteChosen, mayBeExpedited } from './deliveries.ts';

/**
 * The channel that the dispatcher listens on. A notification only triggers a check, so a lost one causes a delay of at most one polling
 * interval.
 */
export const DELIVERIES_CHANNEL = 'quittance_deliveries';

/** The channel that readers listen on while they wait for events. The payload is a project's UUID, a space, and a new event's type. */
export const EVENTS_CHANNEL = 'quittance_events';

export type NewEvent = {
  id: string;
  projectId: string;
  type: EventType;
  invoiceId: string | null;
  transferId: string | null;
  sequence: number;
  body: string;
};

/** No invoice has this many events. */
const MOST_EARLIER = 100;

/**
 * New events are due immediately. Deliveries must not be delayed even if a writer's clock is ahead, so they are due at the earlier of the
 * writer's time and the database's time.
 */
const DUE = 'least($2, now())';

/** A retry for the same invoice at the same endpoint becomes due as well, because the new event has to wait for it. */
const insertDeliveries = statement(
  'delivery-insert',
  { notified: 'text?' },
  `with planned as (
     insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, next_attempt_at, created_at)
     select e.id, w.id, e.project_id, e.invoice_id, e.sequence, ${DUE}, $2
     from events e join webhook_endpoints w on w.project_id = e.project_id and (w.disabled_at is null or w.adapter is not null)
       and ${WANTS_EVENT}
     where e.id = any($1::uuid[])
     returning endpoint_id, invoice_id, sequence),
   chosen as materialized (
     select d.tuple, d.next_attempt_at as due_at from planned cross join lateral (
       select d.ctid as tuple, d.* from deliveries d
       where d.endpoint_id = planned.endpoint_id and d.invoice_id = planned.invoice_id and d.sequence < planned.sequence
         and d.status = 'pending'
       order by d.sequence limit ${MOST_EARLIER}) d
     where d.next_attempt_at > ${DUE} and ${mayBeExpedited('d', DUE)}),
   ${expediteChosen(DUE)}
   select pg_notify('${DELIVERIES_CHANNEL}', '')::text as notified from (select from planned limit 1) planned`,
);

/**
 * Records events in the caller's transaction, and plans a delivery to each enabled endpoint that wants events of their type. An adapter's
 * deliveries are planned even while the adapter is disabled, because its shop has no feed.
 */
export async function insertEvents(tx: Sql, network: Network, events: NewEvent[], now: UnixMs): Promise<void> {
  if (events.length === 0) return;
  await recordEvents(tx, network, events, now);
  await tx.run(insertDeliveries, [events.map(({ id }) => id), new Date(now)]);
}

// Assigns a batch's positions in one step. The row of a project's stream stays locked until the commit, so the next writer gets its
// positions only after these have been committed or rolled back. Thus positions are committed in order. They have no gaps, except after a
// restore, and at the start if an endpoint was enabled before the first event. Projects are locked in the order of their ids, so that two
// batches can't deadlock.
/**
 * Records events for the feed. The caller must plan their deliveries. A reader that sees position n in a project can also read everything
 * below it. Other writers for the same projects have to wait until the caller's transaction ends, so it should end soon.
 */
export async function recordEvents(tx: Sql, network: Network, events: NewEvent[], now: UnixMs): Promise<void> {
  const sealer = await tx.sealer();
  const sealed = events.map((event) => ({
    ...event,
    mac: hexSeal(sealer, SEALED_EVENT, { ...event, network }),
  }));
  await tx.run(insert, [network, JSON.stringify(sealed), new Date(now)]);
}

const insert = statement(
  'event-insert',
  { notified: 'text?' },
  `with input as (
     select e->>'id' as id, (e->>'projectId')::uuid as project_id, e->>'type' as type, e->>'invoiceId' as invoice_id,
       e->>'transferId' as transfer_id, (e->>'sequence')::int4 as sequence, e->>'body' as body,
       decode(e->>'mac', 'hex') as mac, place
     from jsonb_array_elements($2::text::jsonb) with ordinality as _ (e, place)),
   counted as (select project_id, count(*) as events from input group by project_id order by project_id),
   taken as (
     insert into event_streams as s (project_id, last_position) select project_id, events from counted order by project_id
     on conflict (project_id) do update set last_position = s.last_position + excluded.last_position
     returning s.project_id, s.last_position),
   recorded as (
     insert into events (id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at, mac, position)
     select input.id::uuid, project_id, $1, input.type, input.invoice_id::uuid, input.transfer_id::uuid, input.sequence, input.body, $3, input.mac,
       taken.last_position - counted.events + row_number() over (partition by project_id order by input.place)
     from input join counted using (project_id) join taken using (project_id)
     order by input.place)
   select pg_notify('${EVENTS_CHANNEL}', project_id || ' ' || type)::text as notified
   from (select distinct project_id, type from input) told`,
);

/**
 * `after` is an event's UUID, or null to start from the beginning. `limit` is the maximum number of events per page. If `types` is given,
 * the next 10,000 events are searched for these types.
 */
export type FeedQuestion = { keyId: string; after: string | null; limit: number; types?: readonly EventType[] | null };

/**
 * The stored bodies of a project's events, oldest first, and the UUID of its newest event. `nextId` is the last scanned event, or `after`
 * if there was none; the next page starts after it. `hasMore` means that more events follow it.
 */
export type FeedPage = { bodies: string[]; hasMore: boolean; latestId: string | null; nextId: string | null };

type FoundFeedPage =
  | ({ kind: 'page' } & FeedPage)
  /** The key's project has no such event. */
  | { kind: 'unknown-cursor' }
  | { kind: 'key-not-valid' };

/**
 * No index covers the type, because it would slow down every payment. Scanning this many events takes a few hundredths of a second. They are
 * counted from the next event, because a restore leaves a gap of more than a trillion positions.
 */
const WINDOW = 10_000;
/** No project has this many events, and the sum of this number and a position doesn't overflow. */
const NO_WINDOW = Number.MAX_SAFE_INTEGER;

// The innermost query makes PostgreSQL find the cursor by its primary key first, and only then check the project. An event of another
// project therefore takes as long as an unknown one, whatever the project's size.
const select = statement(
  'event-feed',
  {
    ...{ isCursorKnown: 'bool', latestId: 'uuid?', lookedId: 'uuid?', isBeyond: 'bool?' },
    ...{ id: 'uuid?', body: 'text?', seal: sealedBefore(SEALED_EVENT) },
  },
  `select c.position is not null as is_cursor_known, latest.id as latest_id, looked.id as looked_id,
     latest.position > looked.position as is_beyond, page.id, page.body, page.seal
   from api_keys k
   left join lateral (
     select 0::int8 as position where $2::uuid is null
     union all
     select found.position from (select project_id, position from events where id = $2 limit 1) found
     where found.project_id = k.project_id) c on true
   left join lateral (
     select e.id, e.position from events e where e.project_id = k.project_id order by e.position desc limit 1) latest on true
   left join lateral (
     select e.position from events e
     where e.project_id = k.project_id and e.position > c.position order by e.position limit 1) following on true
   left join lateral (
     select e.id, e.position from events e
     where e.project_id = k.project_id and e.position >= following.position and e.position < following.position + $6::int8
     order by e.position desc limit 1) looked on true
   left join lateral (
     select e.id, e.body, e.position, ${sealColumn(SEALED_EVENT, 'e.')} as seal from events e
     where e.project_id = k.project_id and e.position >= following.position and e.position < following.position + $6::int8
       and ($5::text[] is null or e.type = any($5))
     order by e.position limit $3) page on true
   where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $4)
   order by page.position`,
);

/**
 * Returns the events of the key's project after a given event, ordered by position, oldest first. Positions are committed in order (see
 * `recordEvents`), so no event can ever appear below one that was already read. The page is read in a single statement, so it's consistent.
 */
export async function findFeedPage(db: Sql, question: FeedQuestion, now: UnixMs): Promise<FoundFeedPage> {
  const { keyId, after, limit, types = null } = question;
  // If there's one more event than requested, there's another page.
  const rows = await db.run(select, [
    ...[keyId, after, limit + 1, new Date(now), types],
    types === null ? NO_WINDOW : WINDOW,
  ]);
  const [first] = rows;
  if (first === undefined) return { kind: 'key-not-valid' };
  if (!first.isCursorKnown) return { kind: 'unknown-cursor' };
  const { latestId, lookedId, isBeyond } = first;
  const found = rows.flatMap(({ id, body }) => (body === null ? [] : [{ id, body }]));
  const shown = found.slice(0, limit);
  const isCut = found.length > limit;
  return {
    kind: 'page',
    bodies: shown.map(({ body }) => body),
    hasMore: isCut || isBeyond === true,
    latestId,
    nextId: (isCut ? shown.at(-1)?.id : lookedId) ?? after,
  };
}
