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
  /** The amounts are sorted by urgency, the most urgent one first. */
  amounts: AmountCapacity[];
  /** The free share of the scarcest amount, or `null` if no amount is in use. */
  freeShare: number | null;
  /** The days until the first amount is used up, or `null` if none has been used. */
  daysLeft: number | null;
  isLow: boolean;
};

/** Maximum number of amounts to measure; the most requested amounts are measured. */
const MAX_AMOUNTS = 100;
/** Maximum number of further amounts that were refused for an invoice, latest first. */
const MAX_REFUSED = 20;
/**
 * Reading this many invoices takes a few tenths of a second. If there were more in 30 days, the rate is calculated from the latest ones.
 */
const MAX_INVOICES = 100_000;
/**
 * Maximum total number of lookups. Each address and amount needs one, and this many take a few seconds. The more addresses there are, the
 * fewer amounts are measured.
 */
const MAX_LOOKUPS = 1_000_000;
/** Maximum number of index entries that a statement counts if it counts several amounts. That takes far less than the statement timeout. */
const MAX_ENTRIES = 2_000_000;
/** The cost of finding a range, expressed in index entries. */
const ENTRIES_PER_LOOKUP = 20;
/** During this time, an operator can have a key without an address and doesn't get an alarm. */
const SETUP_MS = 3_600_000;

/**
 * Measures how many payable amounts are free, and how long they will last. By default, measures the amounts that a project requested most
 * often in the last 30 days, and the amounts that were refused. Only reads. The constants above limit the work, however many invoices and
 * addresses there are.
 */
export async function measureCapacity(
  db: Sql,
  project: CapacityProject,
  now: UnixMs,
  asked?: readonly MicroUsdt[],
): Promise<Capacity> {
  // Retired addresses have no free amounts, but they count when determining how long an amount has been in use.
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
    // If all invoices for an amount are older than that, the amount isn't among the most requested ones, but it's still in demand.
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

/** Returns how wide the range of payable amounts is for one requested amount, in micro-USDT. */
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
  // The count starts at the same time for all amounts.
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

/** A project with neither a key nor an address can't create invoices, because it was closed or isn't set up yet. */
function judgeClosed(amounts: AmountCapacity[]): Capacity {
  return {
    amounts: amounts.map((amount) => ({ ...amount, isLow: false })),
    freeShare: null,
    daysLeft: null,
    isLow: false,
  };
}
