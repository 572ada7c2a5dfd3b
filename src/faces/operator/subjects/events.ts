import { setTimeout as delay } from 'node:timers/promises';
import { notFound } from '../../../core/domain/errors.ts';
import { EVENT_TYPES } from '../../../core/domain/event.ts';
import { decodeId } from '../../../core/domain/ids.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { statement } from '../../../core/store/db/statement.ts';
import type { Actor } from '../actor.ts';
import { clip, FieldError } from '../input/problems.ts';
import { readLengthLimit } from '../input/readers.ts';
import { selectProject } from '../select.ts';

/** The number of events to read at once, at most two megabytes. */
const BATCH = 100;
const POLL_MS = 1000;

type Asked = { type?: readonly string[] | undefined; limit: string; after?: string | undefined };

/** Reads which events to show. Throws `INVALID_ARGUMENT`. */
export function readTail({ type: types, limit, after }: Asked) {
  const unknown = types?.find((type) => !EVENT_TYPES.some((known) => known === type));
  if (unknown !== undefined) {
    throw new FieldError('type', `${clip(unknown)} is not an event type: choose from ${EVENT_TYPES.join(', ')}`);
  }
  if (after !== undefined && decodeId('evt', after) === null) {
    throw new FieldError('after', `${clip(after)} is not an event id: an id is "evt_" followed by 26 characters`);
  }
  return { types: types ?? null, limit: readLengthLimit(limit, { least: 0, most: 1000 }), after };
}

type Input = ReturnType<typeof readTail> & { projectId: string | undefined; follow: boolean };

/**
 * Yields the stored bodies of a project's newest events, or of those after an event, oldest first. With `follow`, also yields each new
 * event until `signal` aborts. No event is skipped or repeated. Throws `INVALID_ARGUMENT` or `NOT_FOUND`.
 */
export async function* tailEvents(
  { db, signal, pollMs = POLL_MS }: { db: Sql; signal: AbortSignal; pollMs?: number | undefined },
  actor: Actor,
  { projectId, types, limit, after, follow }: Input,
): AsyncGenerator<string[]> {
  const { id: project } = await selectProject(db, actor, projectId);
  let position: bigint;
  if (after === undefined) {
    const last = (await db.run(selectLast, [project]))[0]?.position ?? 0n;
    const newest = limit === 0 ? [] : (await db.run(selectNewest, [project, types, limit])).reverse();
    yield newest.map(({ body }) => body);
    // The newest position may belong to an event of another type, or to one that was committed after `last` was read.
    position = [last, ...newest.map((event) => event.position)].reduce((a, b) => (a > b ? a : b));
  } else {
    position = await positionOf(db, project, after);
  }
  while (!signal.aborted) {
    // An event that appears later always has a higher position (see `recordEvents`).
    const events = await db.run(selectAfter, [project, position, BATCH]);
    yield events.filter(({ type }) => types?.includes(type) ?? true).map(({ body }) => body);
    position = events.at(-1)?.position ?? position;
    if (events.length === BATCH) continue;
    if (!follow) return;
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

async function positionOf(db: Sql, projectId: string, eventId: string): Promise<bigint> {
  const [event] = await db.run(selectPosition, [projectId, decodeId('evt', eventId)]);
  if (event !== undefined) return event.position;
  throw notFound`there is no event ${eventId} in this project`;
}

const columns = { position: 'int8', type: 'text', body: 'text' } as const;

/** The number of events to search when only some types are wanted: several weeks of a busy shop's events, in a few hundred milliseconds. */
const EVENTS_SEARCHED = 100_000;

const selectNewest = statement(
  'event-tail-newest',
  columns,
  `select e.position, e.type, e.body
   from (select position, type, body from events where project_id = $1 order by position desc limit ${EVENTS_SEARCHED}) e
   where $2::text[] is null or e.type = any($2) order by e.position desc limit $3`,
);

const selectAfter = statement(
  'event-tail-after',
  columns,
  'select position, type, body from events where project_id = $1 and position > $2 order by position limit $3',
);

const selectPosition = statement(
  'event-position',
  { position: 'int8' },
  'select position from events where project_id = $1 and id = $2',
);

const selectLast = statement(
  'event-last-position',
  { position: 'int8' },
  'select last_position as position from event_streams where project_id = $1',
);
