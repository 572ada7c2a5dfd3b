import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

const columns = { position: 'int8', type: 'text', body: 'text' } as const;

/** An event as the operator's view of the feed needs it. `position` counts the events of its project from 1. */
export type TailedEvent = Row<typeof columns>;

/** How far back events of some types are looked for: weeks of a busy shop, and some hundred milliseconds. */
const EVENTS_SEARCHED = 100_000;

const selectNewest = statement(
  'event-tail-newest',
  columns,
  `select e.position, e.type, e.body
   from (select position, type, body from events where project_id = $1 order by position desc limit ${EVENTS_SEARCHED}) e
   where $2::text[] is null or e.type = any($2) order by e.position desc limit $3`,
);

/** The newest events of a project, oldest first. With `types`, those among the newest 100,000 events. */
export async function findNewestEvents(
  db: Sql,
  projectId: string,
  { types, limit }: { types: readonly string[] | null; limit: number },
): Promise<TailedEvent[]> {
  return (await db.run(selectNewest, [projectId, types, limit])).reverse();
}

const selectAfter = statement(
  'event-tail-after',
  columns,
  'select position, type, body from events where project_id = $1 and position > $2 order by position limit $3',
);

/** The events of a project above a position, oldest first. None can appear later below one of them (see `recordEvents`). */
export function findEventsAfter(db: Sql, projectId: string, position: bigint, limit: number): Promise<TailedEvent[]> {
  return db.run(selectAfter, [projectId, position, limit]);
}

const selectPosition = statement(
  'event-position',
  { position: 'int8' },
  'select position from events where project_id = $1 and id = $2',
);

/** The position of an event (UUID), `null` if the project has none with this id. */
export async function findEventPosition(db: Sql, projectId: string, id: string): Promise<bigint | null> {
  return (await db.run(selectPosition, [projectId, id]))[0]?.position ?? null;
}

const selectLast = statement(
  'event-last-position',
  { position: 'int8' },
  'select last_position as position from event_streams where project_id = $1',
);

/** The position of the newest event of a project, 0 while it has none. */
export async function findLastPosition(db: Sql, projectId: string): Promise<bigint> {
  return (await db.run(selectLast, [projectId]))[0]?.position ?? 0n;
}
