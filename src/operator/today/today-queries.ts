import { firstIdOf } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, micro } from '../../store/db/statement.ts';
import { stands } from '../../store/ledger/standing.ts';

/** A row is written after its block. The clock of the chain and ours may differ by so much. */
const CLOCK_ERROR_MS = 600_000;

/** What paid invoices in blocks since `from`, by day (UTC): `2026-09-01`; of what was recorded in a period. */
const sumRecorded = rowsOf(
  'today-paid',
  { day: 'text', count, amountMicro: micro() },
  `select day::text, count(*) as count, sum(amount_micro) as amount_micro
   from (select (t.block_time at time zone 'UTC')::date as day, t.amount_micro from transfers t
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and t.block_time >= $4 and t.kind = 'matched' and ${stands('t')}) paid
   group by day order by day`,
  (projectId: string, recorded: { from: number; until: number }, from: UnixMs) => [
    projectId,
    firstIdOf(recorded.from),
    firstIdOf(recorded.until),
    new Date(from),
  ],
);

const countAnnulments = answerOf(
  'today-annulments',
  { count },
  'select count(*) as count from (select from transfer_annulments limit 10000) annulled',
  () => [],
  ([row]) => row?.count ?? 0,
);

type PaidDay = Awaited<ReturnType<typeof sumRecorded>>[number];

/** A month of a busy project takes a tenth of a second and more to sum up. What was recorded an hour before today changes only by what is taken back. */
const summed = new Map<string, PaidDay[]>();
const MAX_SUMMED = 100;
const HOUR_MS = 3_600_000;
const AFTER_ALL_MS = 365 * 24 * HOUR_MS;

/** What paid invoices in blocks since `from`, by the day; days may come twice. `today`: when it began. */
export async function sumPaidByDay(
  db: Sql,
  projectId: string,
  { from, today }: { from: UnixMs; today: number },
): Promise<PaidDay[]> {
  const until = today - HOUR_MS;
  const name = [projectId, until, await countAnnulments(db)].join();
  const before = summed.get(name) ?? (await sumRecorded(db, projectId, { from: from - CLOCK_ERROR_MS, until }, from));
  keepNewest(summed, name, before, MAX_SUMMED);
  return [...before, ...(await sumRecorded(db, projectId, { from: until, until: today + AFTER_ALL_MS }, from))];
}

/** Invoices: enough for a share, and read in hundredths of a second. */
export const MAX_SHARED = 5000;

/** Of the newest 5,000 invoices since `from`, how many are decided (paid, or their deadline passed), and how many are paid. `isSample`: there may be more. */
export const countPaidShare = answerOf(
  'today-share',
  { decided: count, paid: count, looked: count },
  `select count(*) filter (where status in ('PAID', 'EXPIRED')) as decided, count(*) filter (where status = 'PAID') as paid, count(*) as looked
   from (select status from invoices where project_id = $1 and id >= $2 order by id desc limit ${MAX_SHARED}) newest`,
  (projectId: string, from: UnixMs) => [projectId, firstIdOf(from)],
  ([{ decided, paid, looked } = { decided: 0, paid: 0, looked: 0 }]) => ({
    decided,
    paid,
    isSample: looked >= MAX_SHARED,
  }),
);

/** Enough for a median. */
const MAX_TIMED = 500;

/** The median time from an invoice to its `PAID`, of the newest 500 payments since `from`; `null` if there is none. `isSample`: there may be more. */
export const findMedianPaid = answerOf(
  'today-median',
  { medianMs: 'int8?', count },
  `select (percentile_cont(0.5) within group (order by extract(epoch from coalesce(e.created_at, t.recorded_at) - i.created_at)) * 1000)::int8
     as median_ms, count(*) as count
   from (select * from transfers where project_id = $1 and id >= $2 and kind = 'matched' order by id desc limit ${MAX_TIMED}) t
   join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   left join lateral (select created_at from events where transfer_id = t.id order by created_at limit 1) e on true`,
  (projectId: string, from: UnixMs) => [projectId, firstIdOf(from)],
  ([{ medianMs, count } = { medianMs: null, count: 0 }]) => ({
    ...{ medianMs: medianMs === null ? null : Number(medianMs), count, isSample: count >= MAX_TIMED },
  }),
);

/** Counting more says no more. */
export const MAX_OPEN = 10_000;

/** What came and paid nothing, and waits for a decision; of the newest 10,000. */
export const sumOpenTransfers = answerOf(
  'today-open',
  { count, amountMicro: micro(), oldestAt: 'timestamptz?' },
  `select count(*) as count, coalesce(sum(amount_micro), 0) as amount_micro, min(block_time) as oldest_at from (
     select t.amount_micro, t.block_time from transfers t
     where t.project_id = $1 and t.kind <> 'matched' and ${stands('t')}
       and not exists (select from transfer_resolutions r where r.transfer_id = t.id)
     order by t.id desc limit ${MAX_OPEN}) open`,
  (projectId: string) => [projectId],
  ([row]) => row ?? { count: 0, amountMicro: 0n, oldestAt: null },
);

/** Whether anything was ever paid. */
export const hasPayment = answerOf(
  'today-has-payment',
  { found: 'bool' },
  `select exists (select from transfers where project_id = $1 and kind = 'matched') as found`,
  (projectId: string) => [projectId],
  ([row]) => row?.found === true,
);
