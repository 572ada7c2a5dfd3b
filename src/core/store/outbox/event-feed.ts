import type { EventType } from '../../domain/event.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_EVENT } from '../db/sealed-tables.ts';
import { sealedBefore, statement } from '../db/statement.ts';

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

export type FoundFeedPage =
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
