import { formatSigned } from '../../../core/chain/reconcile.ts';
import { encodeId, firstIdOf } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { DAY_MS, HOUR_MS, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { count, micro, type Row, text } from '../../../core/store/db/statement.ts';
import { notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import type { Project } from '../../../core/store/ledger/projects.ts';
import { csvLine } from '../export/write-rows.ts';
import { clip, FieldError } from '../input/problems.ts';
import { parseMoment } from '../input/readers.ts';
import { isGivenUp, limitTime } from '../limit-time.ts';
import { operation } from '../operation.ts';
import { projectId } from '../option.ts';
import { selectProject } from '../select.ts';
import type { TransferKind } from './transfer-export.ts';

/** The sums that also have a number of transfers. */
const COUNTED = ['late', 'duplicate', 'unmatched', 'out'] as const;
type CountedName = (typeof COUNTED)[number];
const forCounted = <Value>(value: (name: CountedName) => Value) =>
  Object.fromEntries(COUNTED.map((name) => [name, value(name)])) as Record<CountedName, Value>;

/**
 * The sums for a period. `requested` is the total amount that the `paid` invoices requested, and `received` is the total that arrived for
 * them. `late` counts the invoices paid after their deadline. `duplicate` and `unmatched` are transfers that also arrived, but didn't pay
 * an invoice. `out` contains the transfers sent from the addresses.
 */
const sums = {
  paid: Type.Integer(),
  ...{ requested: Type.String(), received: Type.String(), tails: Type.String() },
  ...forCounted(() => Type.Object({ count: Type.Integer(), amount: Type.String() })),
};
const ReportSums = Type.Object(sums);
export type ReportSums = Static<typeof ReportSums>;

/** Days are in UTC, such as `2026-11-01`; `to` is included. Days and months without any transfer are left out. */
export const ReportView = Type.Object({
  ...{ projectId: Type.String(), network: Type.String(), from: Type.String(), to: Type.String() },
  days: Type.Array(Type.Object({ day: Type.String(), ...sums })),
  months: Type.Array(Type.Object({ month: Type.String(), ...sums })),
  total: ReportSums,
  /**
   * The addresses' balance according to the ledger: `start` + `came` − `left` = `end`. `uncompared` counts addresses that were never
   * compared with the chain; their earlier balance isn't included.
   */
  balance: Type.Object({
    ...{ start: Type.String(), came: Type.String(), left: Type.String(), end: Type.String() },
    uncompared: Type.Integer(),
  }),
});
export type ReportView = Static<typeof ReportView>;

/** A report's first and last day in UTC, such as `2026-11-01`. */
export type ReportPeriod = { from: string; to: string };

/** The days in a leap year so that every year fits in one request. */
const MAX_DAYS = 366;
/** The latest day, in the year 2999. */
const DAY = /^[12]\d{3}-\d\d-\d\d$/;

/** Reads a report's days. The default is this month up to today. Throws `INVALID_ARGUMENT`. */
export function readReportPeriod(
  given: { from?: string | undefined; to?: string | undefined },
  now: UnixMs,
): ReportPeriod {
  const to = readDay('to', given.to) ?? dayOf(now);
  const from = readDay('from', given.from) ?? `${to.slice(0, 8)}01`;
  const days = (startOf(to) - startOf(from)) / DAY_MS + 1;
  if (days < 1) throw new FieldError('from', say`is ${from}, after ${{ field: 'to' }} ${to}: use an earlier day`);
  if (days > MAX_DAYS) {
    throw new FieldError(
      'from',
      say`is ${from}, ${days} days up to ${{ field: 'to' }} ${to}: a report covers at most ${MAX_DAYS} days`,
    );
  }
  return { from, to };
}

function readDay(field: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (DAY.test(text) && (parseMoment(text, 0) ?? -1) >= 0) return text;
  throw new FieldError(field, `is ${clip(text)}: use a day in UTC, such as 2026-09-01`);
}

export function dayOf(time: UnixMs): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Returns when a day starts. */
function startOf(day: string): UnixMs {
  return unixMs(Date.parse(day));
}

/** This must be shorter than the general statement timeout. */
const PATIENCE_MS = 15_000;

const Day = (description: string) => Type.Optional(Type.String({ description }));

/** No statement takes longer than `patienceMs`. */
export const showReport = operation({
  action: 'showReport',
  summary: "Show a project's daily bookkeeping figures: requested, received, unmatched, outgoing, and balance",
  route: 'GET /reports',
  output: ReportView,
  input: Type.Object({
    projectId: projectId(),
    from: Day('First day (2026-11-01, UTC); default: the first of the month of `to`'),
    to: Day('Last day, inclusive; default: today. At most 366 days'),
  }),
  read: ({ projectId, ...given }, now) => ({
    ...{ projectId, period: readReportPeriod(given, now), patienceMs: PATIENCE_MS },
  }),
  run: async ({ db, now }: { db: Database; now(): UnixMs }, actor, { projectId, period, patienceMs }) => {
    const project = await selectProject(db, actor, projectId);
    const read = await db
      .snapshot(async (tx) => {
        await limitTime(tx, patienceMs);
        return readSums(db, tx, project.id, period, now());
      })
      .catch((error: unknown) => {
        if (!isGivenUp(error)) throw error;
        throw new FieldError(
          'from',
          say`${period.from}, up to ${{ field: 'to' }} ${period.to}: the calculation took longer than ${patienceMs / 1000} s and was stopped. Choose a shorter period`,
        );
      });
    return makeReport(project, period, read);
  },
});

type Counted = { count: number; micro: bigint };
type Sums = Record<CountedName, Counted> & { paid: number; requested: bigint; received: bigint };

type DailySums = Awaited<ReturnType<typeof readSums>>;

/** Builds a period's report from daily sums. */
function makeReport({ id, network }: Project, { from, to }: ReportPeriod, read: DailySums): ReportView {
  const { openings, incoming, paid, outgoing } = read;
  const isWithin = ({ day }: { day: string }) => day >= from && day <= to;
  const parts = [
    ...incoming.filter(isWithin).map((each) => [each.day, sumsOfIncoming(each)] as const),
    ...paid.filter(isWithin).map((each) => [each.day, sumsOfPaid(each)] as const),
    ...outgoing.filter(isWithin).map((each) => [each.day, { ...NONE, out: countedOf(each) }] as const),
  ];
  const days = [...groupBy(parts, (day) => day)];
  const months = [...groupBy(days, (day) => day.slice(0, 7))];
  const total = days.reduce((sum, [, each]) => addSums(sum, each), NONE);

  const [came, left] = [amountOf(incoming.filter(isWithin)), amountOf(outgoing.filter(isWithin))];
  const isLater = ({ day }: { day: string }) => day > to;
  const moved = aboveOf(incoming) - aboveOf(outgoing);
  const since = amountOf(incoming.filter(isLater)) - amountOf(outgoing.filter(isLater));
  const end = openings.openingMicro + moved - since;
  return {
    ...{ projectId: encodeId('prj', id), network, from, to },
    days: days.map(([day, sums]) => ({ day, ...viewSums(sums) })),
    months: months.map(([month, sums]) => ({ month, ...viewSums(sums) })),
    total: viewSums(total),
    balance: {
      ...{ start: formatSigned(end - came + left), came: formatSigned(came), left: formatSigned(left) },
      ...{ end: formatSigned(end), uncompared: openings.uncompared },
    },
  };
}

const NONE: Sums = { paid: 0, requested: 0n, received: 0n, ...forCounted(() => ({ count: 0, micro: 0n })) };

const countedOf = ({ count, amountMicro }: MovedDay): Counted => ({ count, micro: amountMicro });

function sumsOfIncoming(moved: IncomingDay): Sums {
  const { kind, count, amountMicro } = moved;
  if (kind === 'matched') return { ...NONE, paid: count, received: amountMicro };
  return { ...NONE, [kind]: countedOf(moved) };
}

function sumsOfPaid({ requestedMicro, lateCount, lateMicro }: PaidDay): Sums {
  return { ...NONE, requested: requestedMicro, late: { count: lateCount, micro: lateMicro } };
}

/** Adds up daily sums by group, in order. */
function groupBy(parts: readonly (readonly [day: string, sums: Sums])[], groupOf: (day: string) => string) {
  const groups = new Map<string, Sums>();
  for (const [day, sums] of parts.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    groups.set(groupOf(day), addSums(groups.get(groupOf(day)) ?? NONE, sums));
  }
  return groups;
}

function addSums(a: Sums, b: Sums): Sums {
  return {
    ...{ paid: a.paid + b.paid, requested: a.requested + b.requested, received: a.received + b.received },
    ...forCounted((name) => ({ count: a[name].count + b[name].count, micro: a[name].micro + b[name].micro })),
  };
}

const amountOf = (moved: readonly MovedDay[]) => moved.reduce((sum, { amountMicro }) => sum + amountMicro, 0n);
const aboveOf = (moved: readonly MovedDay[]) => moved.reduce((sum, { aboveMicro }) => sum + aboveMicro, 0n);

function viewSums({ paid, requested, received, ...sums }: Sums): ReportSums {
  return {
    ...{ paid, requested: formatSigned(requested), received: formatSigned(received) },
    tails: formatSigned(received - requested),
    ...forCounted((name) => ({ count: sums[name].count, amount: formatSigned(sums[name].micro) })),
  };
}

/**
 * Daily sums of everything recorded before `until`; a day may occur twice. They cover all transfers, and the payments in the requested
 * months. They are valid as long as `compared` and `annulled` stay the same.
 */
type Kept = Pick<Openings, 'compared' | 'annulled'> & {
  until: number;
  incoming: readonly IncomingDay[];
  paid: ReadonlyMap<string, readonly PaidDay[]>;
};

// Summing up a busy project's month takes a few tenths of a second. Sums of rows recorded at least an hour before today change only if a
// transfer is taken back, or if an address is compared with the chain for the first time.
const memories = new WeakMap<Database, Map<string, Kept>>();
/** The maximum number of projects to keep. Ten years in one project are about 15,000 sums. */
const MAX_KEPT = 50;

/** Reads a report's daily sums: all transfers in and out, and payments for at least the period. */
async function readSums(db: Database, tx: Sql, projectId: string, period: ReportPeriod, now: UnixMs) {
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

/** Adds the rows recorded since. */
async function extend(tx: Sql, projectId: string, known: Kept, until: number): Promise<Kept> {
  if (known.until >= until) return known;
  const recorded: Recorded = { from: known.until, until };
  const incoming = [...known.incoming, ...(await sumIncoming(tx, projectId, recorded))];
  if (known.paid.size === 0) return { ...known, until, incoming };
  const since = await sumPaid(tx, projectId, recorded, ALL_TIME);
  const paid = new Map([...known.paid].map(([month, sums]) => [month, [...sums, ...ofMonth(since, month)]]));
  return { ...known, until, incoming, paid };
}

/** Adds the period's months that aren't kept yet. */
async function addMonths(tx: Sql, projectId: string, known: Kept, period: ReportPeriod): Promise<Kept> {
  const missing = monthsOf(period).filter((month) => !known.paid.has(month));
  const [first, last = first] = [missing[0], missing.at(-1)];
  if (first === undefined || last === undefined) return known;
  const span = { from: startOf(`${first}-01`), until: startOf(`${nextMonth(last)}-01`) };
  // A row is written after its block, and clocks differ by minutes at most.
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

/** The period in which rows were recorded, according to the times in their ids: at or after `from`, before `until`. */
type Recorded = { from: number; until: number };
/** The highest time that an id can contain. */
const FOREVER = 2 ** 48 - 1;
/** By block time. */
const ALL_TIME = { from: unixMs(0), until: unixMs(Date.UTC(3000, 0)) };

/**
 * A day's transfers (UTC). `aboveMicro` is the sum of the transfers in blocks after their address's opening balance, because that balance
 * includes everything earlier.
 */
const movedDay = { day: 'text', count, amountMicro: micro(), aboveMicro: micro() } as const;
type MovedDay = Row<typeof movedDay>;

const SUMS = `count(*) as count, sum(amount_micro) as amount_micro,
     coalesce(sum(amount_micro) filter (where is_above), 0) as above_micro`;
const MOVED = `(t.block_time at time zone 'UTC')::date as day, t.amount_micro, t.block_number > coalesce(b.opening_block, -1) as is_above`;

const incomingDay = { ...movedDay, kind: text<TransferKind>() } as const;
type IncomingDay = Row<typeof incomingDay>;

/** Sums the transfers to a project's addresses by day and kind, for rows recorded in a period. */
const sumIncoming = rowsOf(
  'report-incoming',
  incomingDay,
  `select day::text, ${SUMS}, kind
   from (select ${MOVED}, t.kind from transfers t left join balance_checks b on b.address_id = t.address_id
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and ${notAnnulled('t')}) came
   group by day, kind`,
  (projectId: string, recorded: Recorded) => [projectId, ...idsOf(recorded)],
);

/** Sums the transfers from a project's addresses by day. */
const sumOutgoing = rowsOf(
  'report-outgoing',
  movedDay,
  `select day::text, ${SUMS}
   from (select ${MOVED} from outgoing_transfers t left join balance_checks b on b.address_id = t.address_id
     where t.project_id = $1 and ${outgoingNotAnnulled('t')}) gone
   group by day`,
  (projectId: string) => [projectId],
);

const paidDay = { day: 'text', requestedMicro: micro(), lateCount: count, lateMicro: micro() } as const;
type PaidDay = Row<typeof paidDay>;

/** Sums, by day, the requested amounts of invoices paid in a period's blocks, and the late payments, for rows recorded in a period. */
const sumPaid = rowsOf(
  'report-paid',
  paidDay,
  `select day::text, sum(requested_micro) as requested_micro, count(*) filter (where is_late) as late_count,
     coalesce(sum(amount_micro) filter (where is_late), 0) as late_micro
   from (select (t.block_time at time zone 'UTC')::date as day, i.requested_micro, t.amount_micro, t.block_time > i.expires_at as is_late
     from transfers t join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
     where t.project_id = $1 and t.id >= $2 and t.id < $3 and t.kind = 'matched' and t.block_time >= $4 and t.block_time < $5
       and ${notAnnulled('t')}) paid
   group by day`,
  (projectId: string, recorded: Recorded, period: { from: UnixMs; until: UnixMs }) => [
    projectId,
    ...idsOf(recorded),
    new Date(period.from),
    new Date(period.until),
  ],
);

const idsOf = ({ from, until }: Recorded) => [firstIdOf(from), firstIdOf(until)];

const opening = { openingMicro: micro(), compared: count, uncompared: count, annulled: count } as const;
type Openings = Row<typeof opening>;

/** Finds the opening balances of a project's addresses, and the values that show whether kept sums are still valid. */
const findOpenings = answerOf(
  'report-openings',
  opening,
  `select coalesce(sum(b.opening_micro), 0) as opening_micro, count(b.address_id) as compared, count(*) - count(b.address_id) as uncompared,
     (select count(*) from transfer_annulments n where n.project_id = $1) as annulled
   from addresses a left join balance_checks b on b.address_id = a.id where a.project_id = $1`,
  (projectId: string) => [projectId],
  ([row]) => row ?? { openingMicro: 0n, compared: 0, uncompared: 0, annulled: 0 },
);

/** A report's columns, in order. Scripts and spreadsheets rely on the order, so add new columns at the end. */
const CSV_COLUMNS = [
  ...(['day', 'projectId', 'network', 'paid', 'requested', 'received', 'tails'] as const),
  ...COUNTED.flatMap((name) => [`${name}Count`, name] as const),
];

/** Writes a report as CSV with a line for each day. There is no line of totals, because a spreadsheet's own sums would include it. */
export function writeReport({ projectId, network, days }: ReportView): string {
  const lines = days.map(({ day, paid, requested, received, tails, ...sums }) => {
    const counted = COUNTED.flatMap((name) => [sums[name].count, sums[name].amount]);
    return csvLine([day, projectId, network, paid, requested, received, tails, ...counted]);
  });
  return csvLine(CSV_COLUMNS) + lines.join('');
}

export const operations = [showReport];
