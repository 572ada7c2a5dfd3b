import { byUrgency, DAY_MS, type Forecast, forecastCapacity } from '../domain/capacity.ts';
import type { MicroUsdt } from '../domain/money.ts';
import { countPayable, payableRange } from '../domain/policy.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { Sql } from '../store/db/database.ts';
import {
  type CapacityProject,
  countReserved,
  findRecentUse,
  findUsedBefore,
  type RecentUse,
} from '../store/ledger/capacity.ts';
import { findRefusedAmounts } from '../store/ledger/refused-amounts.ts';

export type AmountCapacity = Forecast & Pick<RecentUse, 'requestedMicro' | 'used7Days' | 'used30Days' | 'countedSince'>;

export type Capacity = {
  /** The most urgent first. */
  amounts: AmountCapacity[];
  /** The free share of the scarcest amount; `null` where nothing can be said, because no amount is in use. */
  freeShare: number | null;
  /** The days until the first amount is gone; `null` where nothing was used. */
  daysLeft: number | null;
  isLow: boolean;
};

/** Amounts that are looked at: those asked for most often. */
const MAX_AMOUNTS = 100;
/** Amounts beside them for which an invoice was refused, the latest. */
const MAX_REFUSED = 20;
/** Reading so many invoices takes a few tenths of a second. Where 30 days had more, the rate is that of the latest. */
const MAX_INVOICES = 100_000;
/** Lookups of an address and an amount in all: a few seconds. More addresses mean fewer amounts. */
const MAX_LOOKUPS = 1_000_000;
/** Index entries that one statement counts, if it counts more than one amount: far from the time at which it is given up. */
const MAX_ENTRIES = 2_000_000;
/** The cost of finding a range, in entries. */
const ENTRIES_PER_LOOKUP = 20;
/** An operator may make a key before the first address without an alarm at once. */
const SETUP_MS = 3_600_000;

/**
 * Measures how much is free, and how long it will last: of the amounts that a project asked for most often in the last 30 days and
 * of those that were refused, or of those given. Reads only. The constants above bound its work, however many invoices and
 * addresses there are.
 */
export async function measureCapacity(
  db: Sql,
  project: CapacityProject,
  now: UnixMs,
  asked?: readonly MicroUsdt[],
): Promise<Capacity> {
  // A retired address has nothing free, but it counts for since when an amount is used.
  const addressCount = Math.max(Number(project.activeAddresses + project.retiredAddresses), 1);
  const width = widthOf(project);
  const since30Days = unixMs(now - 30 * DAY_MS);
  const findUse = (amounts: readonly MicroUsdt[] | { busiest: number }) =>
    findRecentUse(db, {
      projectId: project.id,
      policy: project.policy,
      width,
      since7Days: unixMs(now - 7 * DAY_MS),
      since30Days,
      maxInvoices: MAX_INVOICES,
      amounts,
    });
  const uses = await findUse(asked ?? { busiest: clamp(Math.floor(MAX_LOOKUPS / addressCount), 1, MAX_AMOUNTS) });
  if (asked === undefined) {
    // An amount whose invoices are all older is none of the busiest, and is wanted all the same.
    const known = new Set(uses.map(({ requestedMicro }) => requestedMicro));
    const refused = await findRefusedAmounts(db, project.id, since30Days, MAX_REFUSED);
    const missing = refused.filter((amount) => !known.has(amount));
    if (missing.length > 0) uses.push(...(await findUse(missing)));
  }
  const batchSize = Math.max(1, Math.floor(MAX_ENTRIES / (addressCount * (ENTRIES_PER_LOOKUP + Number(width / 10n)))));
  const amounts: AmountCapacity[] = [];
  for (let start = 0; start < uses.length; start += batchSize) {
    amounts.push(...(await measureAmounts(db, project, uses.slice(start, start + batchSize), now)));
  }
  return judge(project, amounts.sort(byUrgency), now);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

/** How wide the range of payable amounts of one request is, in micro-USDT. */
function widthOf({ policy, maxSurchargeMicro }: CapacityProject): bigint {
  return policy === 'exact' ? 1n : maxSurchargeMicro;
}

async function measureAmounts(
  db: Sql,
  project: CapacityProject,
  uses: readonly RecentUse[],
  now: UnixMs,
): Promise<AmountCapacity[]> {
  const { id, policy } = project;
  const entries = uses.map((use) => ({ use, range: payableRange(project, use.requestedMicro) }));
  const ranges = entries.map(({ range }) => range);
  const counts = await countReserved(db, id, policy, ranges);
  // All were counted from the same time on.
  const usedBefore = await findUsedBefore(db, id, policy, ranges, uses[0]?.countedSince ?? now);
  return entries.map(({ use, range }, index) => {
    const { addresses, reserved } = counts[index] ?? { addresses: 0n, reserved: 0n };
    const total = addresses * countPayable(policy, range);
    const free = total > reserved ? total - reserved : 0n;
    const firstUseAt = usedBefore.has(index) ? null : use.firstUseAt;
    const { requestedMicro, used7Days, used30Days, countedSince } = use;
    const forecast = forecastCapacity({ total, free }, { ...use, firstUseAt }, now);
    return { requestedMicro, used7Days, used30Days, countedSince, ...forecast };
  });
}

function judge(project: CapacityProject, amounts: AmountCapacity[], now: UnixMs): Capacity {
  const hasAddress = project.activeAddresses > 0n;
  if (!hasAddress && !project.hasKeys) return judgeClosed(amounts);
  const lacksAddress = !hasAddress && (project.hasInvoices || now - project.createdAt > SETUP_MS);
  const days = amounts.flatMap(({ daysLeft }) => (daysLeft === null ? [] : [daysLeft]));
  return {
    amounts,
    freeShare: lacksAddress ? 0 : amounts.length === 0 ? null : Math.min(...amounts.map(({ freeShare }) => freeShare)),
    daysLeft: days.length === 0 ? null : Math.min(...days),
    isLow: lacksAddress || amounts.some(({ isLow }) => isLow),
  };
}

/** A project without a key and without an address cannot be asked for an invoice: it was closed, or is not set up yet. */
function judgeClosed(amounts: AmountCapacity[]): Capacity {
  return {
    amounts: amounts.map((amount) => ({ ...amount, isLow: false })),
    freeShare: null,
    daysLeft: null,
    isLow: false,
  };
}
