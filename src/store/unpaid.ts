import { uuidV7 } from '../domain/ids.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { UnixMs } from '../domain/time.ts';
import { MINUTE_MS, UNPAID_MS, type UnpaidCounts, type UnpaidLimits } from '../domain/unpaid.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

// Ids hold their time, so the latest invoices are one range of the primary key, read from its end. No more are counted than the
// limits ask for: in a flood that is all of the work. Without limits nothing is.
const COUNTED = `select i.id, i.created_at, i.requested_micro from invoices i
   where i.project_id = p.id and i.id >= $2 and i.status in ('PENDING', 'EXPIRED')
   order by i.id desc limit greatest(p.max_unpaid, p.max_unpaid_per_minute)`;

const count = statement(
  'unpaid-count',
  {
    max_unpaid: 'int4?',
    max_unpaid_per_minute: 'int4?',
    unpaid: 'int8',
    unpaid_last_minute: 'int8',
    oldest_at: 'timestamptz?',
    oldest_last_minute_at: 'timestamptz?',
  },
  `select p.max_unpaid, p.max_unpaid_per_minute, u.*
   from projects p
   cross join lateral (
     select count(*) as unpaid, count(*) filter (where i.id >= $3) as unpaid_last_minute,
       min(i.created_at) as oldest_at, min(i.created_at) filter (where i.id >= $3) as oldest_last_minute_at
     from (${COUNTED}) i
     where greatest(p.max_unpaid, p.max_unpaid_per_minute) is not null) u
   where p.id = $1`,
);

export type Unpaid = UnpaidLimits & UnpaidCounts & { oldestAt: UnixMs | null; oldestLastMinuteAt: UnixMs | null };

/** The limits of a project and its unpaid invoices of the last 30 minutes, counted up to the higher limit; `null` if there is no project. */
export async function countUnpaid(db: Sql, projectId: string, now: UnixMs): Promise<Unpaid | null> {
  const [row] = await db.run(count, [projectId, firstIdAt(now - UNPAID_MS), firstIdAt(now - MINUTE_MS)]);
  if (row === undefined) return null;
  return {
    maxUnpaid: row.max_unpaid,
    maxUnpaidPerMinute: row.max_unpaid_per_minute,
    unpaid: Number(row.unpaid),
    unpaidLastMinute: Number(row.unpaid_last_minute),
    oldestAt: row.oldest_at,
    oldestLastMinuteAt: row.oldest_last_minute_at,
  };
}

const busiest = statement(
  'unpaid-busiest-amount',
  { requested_micro: 'int8', count: 'int8' },
  `select i.requested_micro, count(*) as count
   from projects p cross join lateral (${COUNTED}) i
   where p.id = $1 group by i.requested_micro order by count desc, i.requested_micro limit 1`,
);

/** The amount that most of these are of, and how many. */
export async function findBusiestUnpaid(
  db: Sql,
  projectId: string,
  now: UnixMs,
): Promise<{ requestedMicro: MicroUsdt; count: number } | null> {
  const [row] = await db.run(busiest, [projectId, firstIdAt(now - UNPAID_MS)]);
  return row === undefined ? null : { requestedMicro: row.requested_micro as MicroUsdt, count: Number(row.count) };
}

function firstIdAt(atMs: number): string {
  return uuidV7(Math.max(0, atMs), new Uint8Array(10), 0);
}
