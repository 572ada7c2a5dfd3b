import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Project } from '../../store/ledger/projects.ts';
import type { readSums } from './recorded-sums.ts';
import type { ReportPeriod } from './report-period.ts';
import type { IncomingDay, MovedDay, PaidDay } from './report-queries.ts';
import type { ReportSums, ReportView } from './views.ts';

type Counted = { count: number; micro: bigint };
type Sums = Record<'late' | 'duplicate' | 'unmatched' | 'out', Counted> & {
  paid: number;
  requested: bigint;
  received: bigint;
};

/** The report of a period out of sums by day. */
export function makeReport(
  { id, network }: Project,
  { from, to }: ReportPeriod,
  read: Awaited<ReturnType<typeof readSums>>,
): ReportView {
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

const NOTHING: Counted = { count: 0, micro: 0n };
const NONE: Sums = {
  ...{ paid: 0, requested: 0n, received: 0n },
  ...{ late: NOTHING, duplicate: NOTHING, unmatched: NOTHING, out: NOTHING },
};

const countedOf = ({ count, amountMicro }: MovedDay): Counted => ({ count, micro: amountMicro });

function sumsOfIncoming(moved: IncomingDay): Sums {
  const { kind, count, amountMicro } = moved;
  if (kind === 'matched') return { ...NONE, paid: count, received: amountMicro };
  return { ...NONE, [kind]: countedOf(moved) };
}

function sumsOfPaid({ requestedMicro, lateCount, lateMicro }: PaidDay): Sums {
  return { ...NONE, requested: requestedMicro, late: { count: lateCount, micro: lateMicro } };
}

/** Sums by the group of their day, in order. */
function groupBy(
  parts: readonly (readonly [day: string, sums: Sums])[],
  groupOf: (day: string) => string,
): Map<string, Sums> {
  const groups = new Map<string, Sums>();
  for (const [day, sums] of parts.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    groups.set(groupOf(day), addSums(groups.get(groupOf(day)) ?? NONE, sums));
  }
  return groups;
}

function addSums(a: Sums, b: Sums): Sums {
  const counted = (one: Counted, other: Counted) => ({
    count: one.count + other.count,
    micro: one.micro + other.micro,
  });
  return {
    ...{ paid: a.paid + b.paid, requested: a.requested + b.requested, received: a.received + b.received },
    ...{ late: counted(a.late, b.late), duplicate: counted(a.duplicate, b.duplicate) },
    ...{ unmatched: counted(a.unmatched, b.unmatched), out: counted(a.out, b.out) },
  };
}

const amountOf = (moved: readonly MovedDay[]) => moved.reduce((sum, { amountMicro }) => sum + amountMicro, 0n);
const aboveOf = (moved: readonly MovedDay[]) => moved.reduce((sum, { aboveMicro }) => sum + aboveMicro, 0n);

function viewSums({ paid, requested, received, late, duplicate, unmatched, out }: Sums): ReportSums {
  const counted = ({ count, micro }: Counted) => ({ count, amount: formatSigned(micro) });
  return {
    ...{ paid, requested: formatSigned(requested), received: formatSigned(received) },
    tails: formatSigned(received - requested),
    ...{ late: counted(late), duplicate: counted(duplicate), unmatched: counted(unmatched), out: counted(out) },
  };
}
