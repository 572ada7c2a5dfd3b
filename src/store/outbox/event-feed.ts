import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_EVENT } from '../db/sealed-tables.ts';
import { sealedBefore, statement } from '../db/statement.ts';

/** `after` is the UUID of an event, null for the beginning. `limit` bounds what a page holds. */
export type FeedQuestion = { keyId: string; after: string | null; limit: number };

/** The stored bodies of some events of one project, oldest first, and the UUID of the project's newest event. */
export type FeedPage = { bodies: string[]; hasMore: boolean; latestId: string | null };

export type FoundFeedPage =
  | ({ kind: 'page' } & FeedPage)
  /** There is no such event in the project of the key. */
  | { kind: 'unknown-cursor' }
  | { kind: 'key-not-valid' };

// The innermost query makes PostgreSQL find the cursor by its primary key, and then look whose it is: so an event of another
// project takes as long as an unknown one, and a project with many events as long as one with few.
const select = statement(
  'event-feed',
  { isCursorKnown: 'bool', latestId: 'uuid?', body: 'text?', seal: sealedBefore(SEALED_EVENT) },
  `select c.position is not null as is_cursor_known, latest.id as latest_id, page.body, page.seal
   from api_keys k
   left join lateral (
     select 0::int8 as position where $2::uuid is null
     union all
     select found.position from (select project_id, position from events where id = $2 limit 1) found
     where found.project_id = k.project_id) c on true
   left join lateral (
     select e.id from events e where e.project_id = k.project_id order by e.position desc limit 1) latest on true
   left join lateral (
     select e.body, e.position, ${sealColumn(SEALED_EVENT, 'e.')} as seal from events e where e.project_id = k.project_id and e.position > c.position
     order by e.position limit $3) page on true
   where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $4)
   order by page.position`,
);

/**
 * The events of a key's project after another one, oldest first, in the order of their positions. Positions are committed in
 * their order and without a gap (see `recordEvents`), so no event ever appears below one that was read. A single statement reads the
 * page, so it is all of one moment.
 */
export async function findFeedPage(db: Sql, question: FeedQuestion, now: UnixMs): Promise<FoundFeedPage> {
  const { keyId, after, limit } = question;
  // An event more than asked for shows whether there is another page.
  const rows = await db.run(select, [keyId, after, limit + 1, new Date(now)]);
  const [first] = rows;
  if (first === undefined) return { kind: 'key-not-valid' };
  if (!first.isCursorKnown) return { kind: 'unknown-cursor' };
  const bodies = rows.flatMap(({ body }) => (body === null ? [] : [body]));
  return { kind: 'page', bodies: bodies.slice(0, limit), hasMore: bodies.length > limit, latestId: first.latestId };
}
