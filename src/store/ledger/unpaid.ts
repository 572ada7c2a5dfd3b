import { firstIdOf } from '../../domain/ids.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { MINUTE_MS, UNPAID_MS } from '../../domain/unpaid.ts';
import { rowOf } from '../db/rows-of.ts';
import { count, micro, type Row } from '../db/statement.ts';

// Ids hold their time, so the latest invoices are one range of the primary key, read from its end. No more are counted than the
// limits ask for: in a flood that is all of the work. Without limits nothing is.
const COUNTED = `select i.id, i.created_at, i.requested_micro from invoices i
   where i.project_id = p.id and i.id >= $2 and i.status in ('PENDING', 'EXPIRED')
   order by i.id desc limit greatest(p.max_unpaid, p.max_unpaid_per_minute)`;

const unpaid = {
  maxUnpaid: 'int4?',
  maxUnpaidPerMinute: 'int4?',
  unpaid: count,
  unpaidLastMinute: count,
  oldestAt: 'timestamptz?',
  oldestLastMinuteAt: 'timestamptz?',
} as const;

export type Unpaid = Row<typeof unpaid>;

/** The limits of a project and its unpaid invoices of the last 30 minutes, counted up to the higher limit; `null` if there is no project. */
export const countUnpaid = rowOf(
  'unpaid-count',
  unpaid,
  `select p.max_unpaid, p.max_unpaid_per_minute, u.*
   from projects p
   cross join lateral (
     select count(*) as unpaid, count(*) filter (where i.id >= $3) as unpaid_last_minute,
       min(i.created_at) as oldest_at, min(i.created_at) filter (where i.id >= $3) as oldest_last_minute_at
     from (${COUNTED}) i
     where greatest(p.max_unpaid, p.max_unpaid_per_minute) is not null) u
   where p.id = $1`,
  (projectId: string, now: UnixMs) => [projectId, firstIdOf(now - UNPAID_MS), firstIdOf(now - MINUTE_MS)],
);

/** The amount that most of these are of, and how many. */
export const findBusiestUnpaid = rowOf(
  'unpaid-busiest-amount',
  { requestedMicro: micro<MicroUsdt>('int8'), count },
  `select i.requested_micro, count(*) as count
   from projects p cross join lateral (${COUNTED}) i
   where p.id = $1 group by i.requested_micro order by count desc, i.requested_micro limit 1`,
  (projectId: string, now: UnixMs) => [projectId, firstIdOf(now - UNPAID_MS)],
);
