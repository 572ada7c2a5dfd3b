import { firstIdOf } from '../../domain/ids.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { DEFAULT_UNPAID_LIMITS, MINUTE_MS, UNPAID_MS, type UnpaidLimits } from '../../domain/unpaid.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, rowOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_LIMITS } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, micro, type Row } from '../db/statement.ts';

const limits = {
  id: 'uuid',
  network: 'text',
  maxUnpaid: 'int4?',
  maxUnpaidPerMinute: 'int4?',
  isSound: isAsSealed(SEALED_LIMITS),
} as const;

/**
 * Returns a project's limits, or the defaults if its limits were changed directly in the database. Returns `null` if the project doesn't
 * exist.
 */
const findUnpaidLimits = answerOf(
  'unpaid-limits',
  limits,
  `select ${listColumns(limits, 'p.', { isSound: sealColumn(SEALED_LIMITS, 'p.') })} from projects p where p.id = $1`,
  (projectId: string) => [projectId],
  ([row]): UnpaidLimits | null => {
    if (row === undefined) return null;
    const { maxUnpaid, maxUnpaidPerMinute } = row;
    return row.isSound ? { maxUnpaid, maxUnpaidPerMinute } : DEFAULT_UNPAID_LIMITS;
  },
);

// Ids contain the time of their creation, so the latest invoices are a single range of the primary key, read backwards. Counting stops at
// the limits, so a flood of orders can't make it slow.
const COUNTED = `select i.id, i.created_at, i.requested_micro from invoices i
   where i.project_id = $1 and i.id >= $2 and i.status in ('PENDING', 'EXPIRED')
   order by i.id desc limit $3`;

const counts = {
  unpaid: count,
  unpaidLastMinute: count,
  oldestAt: 'timestamptz?',
  oldestLastMinuteAt: 'timestamptz?',
} as const;

export type Unpaid = UnpaidLimits & Row<typeof counts>;

const NOTHING: Row<typeof counts> = { unpaid: 0, unpaidLastMinute: 0, oldestAt: null, oldestLastMinuteAt: null };

const countUpTo = answerOf(
  'unpaid-count',
  counts,
  `select count(*) as unpaid, count(*) filter (where i.id >= $4) as unpaid_last_minute,
     min(i.created_at) as oldest_at, min(i.created_at) filter (where i.id >= $4) as oldest_last_minute_at
   from (${COUNTED}) i`,
  (projectId: string, now: UnixMs, most: number) => [
    ...[projectId, firstIdOf(now - UNPAID_MS), BigInt(most), firstIdOf(now - MINUTE_MS)],
  ],
  ([row]) => row ?? NOTHING,
);

const mostOf = ({ maxUnpaid, maxUnpaidPerMinute }: UnpaidLimits) =>
  maxUnpaid === null && maxUnpaidPerMinute === null ? null : Math.max(maxUnpaid ?? 0, maxUnpaidPerMinute ?? 0);

/**
 * Returns a project's limits and its number of unpaid invoices in the last 30 minutes, counting up to the higher limit. Returns `null` if
 * the project doesn't exist.
 */
export async function countUnpaid(db: Sql, projectId: string, now: UnixMs): Promise<Unpaid | null> {
  const found = await findUnpaidLimits(db, projectId);
  if (found === null) return null;
  const most = mostOf(found);
  // Without limits nothing is counted.
  return { ...found, ...(most === null ? NOTHING : await countUpTo(db, projectId, now, most)) };
}

/** Returns the most frequent amount among these invoices, with its count, or `null` if there are none or nothing is counted. */
export async function findBusiestUnpaid(db: Sql, projectId: string, now: UnixMs) {
  const found = await findUnpaidLimits(db, projectId);
  const most = found && mostOf(found);
  return most === null ? null : findBusiest(db, projectId, now, most);
}

const findBusiest = rowOf(
  'unpaid-busiest-amount',
  { requestedMicro: micro<MicroUsdt>('int8'), count },
  `select i.requested_micro, count(*) as count from (${COUNTED}) i
   group by i.requested_micro order by count desc, i.requested_micro limit 1`,
  (projectId: string, now: UnixMs, most: number) => [projectId, firstIdOf(now - UNPAID_MS), BigInt(most)],
);
