import { DAY_MS } from '../../domain/capacity.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { type ReportPeriod, startOf } from './report-period.ts';
import {
  ALL_TIME,
  FOREVER,
  findOpenings,
  type IncomingDay,
  type Openings,
  type PaidDay,
  type Recorded,
  sumIncoming,
  sumOutgoing,
  sumPaid,
} from './report-queries.ts';

/**
 * Sums by day of what was recorded before `until`, where days may come twice: of all that came, and of what paid in months that were asked
 * for. They hold as long as `compared` and `annulled` are the same.
 */
type Kept = Pick<Openings, 'compared' | 'annulled'> & {
  until: number;
  incoming: readonly IncomingDay[];
  paid: ReadonlyMap<string, readonly PaidDay[]>;
};

// A month of a busy project takes some tenths of a second to sum up. What was recorded an hour before today and earlier changes only by
// what is taken back, and by what counts for the balance when an address is first compared with the chain.
const memories = new WeakMap<Database, Map<string, Kept>>();
/** Projects. Ten years of one are some 15,000 sums. */
const MAX_KEPT = 50;
const HOUR_MS = 3_600_000;

/** All that a report is made of, by day: what came and left in all time, and what paid in the period at least. */
export async function readSums(db: Database, tx: Sql, projectId: string, period: ReportPeriod, now: UnixMs) {
  const memory = memories.get(db) ?? new Map<string, Kept>();
  memories.set(db, memory);
  const openings = await findOpenings(tx, projectId);
  const until = Math.floor(now / DAY_MS) * DAY_MS - HOUR_MS;
  const known = await extend(tx, projectId, knownOf(memory.get(projectId), openings), until);
  const kept = await addMonths(tx, projectId, known, period);
  keepNewest(memory, projectId, kept, MAX_KEPT);
  const rest = { from: kept.until, until: FOREVER };
  return {
    openings,
    incoming: [...kept.incoming, ...(await sumIncoming(tx, projectId, rest))],
    paid: [...[...kept.paid.values()].flat(), ...(await sumPaid(tx, projectId, rest, ALL_TIME))],
    outgoing: await sumOutgoing(tx, projectId),
  };
}

function knownOf(before: Kept | undefined, { compared, annulled }: Openings): Kept {
  if (before?.compared === compared && before.annulled === annulled) return before;
  return { compared, annulled, until: 0, incoming: [], paid: new Map() };
}

/** Adds what was recorded since. */
async function extend(tx: Sql, projectId: string, known: Kept, until: number): Promise<Kept> {
  if (known.until >= until) return known;
  const recorded: Recorded = { from: known.until, until };
  const incoming = [...known.incoming, ...(await sumIncoming(tx, projectId, recorded))];
  if (known.paid.size === 0) return { ...known, until, incoming };
  const since = await sumPaid(tx, projectId, recorded, ALL_TIME);
  const paid = new Map([...known.paid].map(([month, sums]) => [month, [...sums, ...ofMonth(since, month)]]));
  return { ...known, until, incoming, paid };
}

/** Adds the months of a period that are not known. */
async function addMonths(tx: Sql, projectId: string, known: Kept, period: ReportPeriod): Promise<Kept> {
  const missing = monthsOf(period).filter((month) => !known.paid.has(month));
  const [first, last = first] = [missing[0], missing.at(-1)];
  if (first === undefined || last === undefined) return known;
  const span = { from: startOf(`${first}-01`), until: startOf(`${nextMonth(last)}-01`) };
  // A row is written after its block, by clocks that differ by minutes at most.
  const recorded = { from: Math.max(0, span.from - DAY_MS), until: known.until };
  const found = await sumPaid(tx, projectId, recorded, span);
  const added = missing.map((month) => [month, ofMonth(found, month)] as const);
  return { ...known, paid: new Map([...known.paid, ...added]) };
}

const ofMonth = (sums: readonly PaidDay[], month: string) => sums.filter(({ day }) => day.startsWith(month));

function monthsOf({ from, to }: ReportPeriod): string[] {
  const months: string[] = [];
  for (let month = from.slice(0, 7); month <= to.slice(0, 7); month = nextMonth(month)) months.push(month);
  return months;
}

/** `2026-12` → `2027-01` */
function nextMonth(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(unixMs(Date.UTC(year, number, 1))).toISOString().slice(0, 7);
}
