import { randomBytes } from 'node:crypto';
import { byUrgency, type Forecast, forecastCapacity, LOW_PERCENT } from '../domain/capacity.ts';
import { encodeId, firstIdOf } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import { countPayable, type Policy, payableRange, type WordRange } from '../domain/policy.ts';
import { DAY_MS, type UnixMs, unixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { endAlarm, tellAlarm } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../store/db/rows-of.ts';
import { micro, type Row, text } from '../store/db/statement.ts';
import { isInUse } from '../store/ledger/addresses.ts';
import { adviseAddresses, countReserved, createRelief, type Relief } from './derive-addresses.ts';
import { type Leading, loopWhileLeading, whileLeading } from './watching.ts';

export type AmountCapacity = Forecast & Pick<RecentUse, 'requestedMicro' | 'used7Days' | 'used30Days' | 'countedSince'>;

type Capacity = {
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

type CapacityWatchDeps = Leading & { metrics: Metrics };

/** With this interval, a low capacity or a recovery is reported within a minute. A refused invoice raises the alarm immediately. */
const CHECK_MS = 30_000;
/** If measuring is slow, pauses become longer, so that measuring takes at most a twentieth of the time. */
const PAUSE_PER_ROUND = 20;
/** Maximum number of amounts in an alarm (`quittance address capacity` shows all of them), and of failures in a log line. */
const MAX_NAMED = 3;

/** Measures each project on a network, immediately and then every 30 seconds, while this process is the leader. Runs until it's stopped. */
export function startCapacityWatch(options: CapacityWatchDeps): Loop {
  const { network, metrics, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  const { relieve } = createRelief({ ...options, db, random: randomBytes });
  const deps = { ...options, db, relieve };
  const shown = new Set<string>();
  let dueMs = 0;
  const measure = async (shouldEnd: () => boolean) => {
    const startMs = performance.now();
    if (startMs < dueMs) return;
    await measureAll(deps, shown, shouldEnd);
    dueMs = startMs + Math.max(CHECK_MS, (performance.now() - startMs) * PAUSE_PER_ROUND);
  };
  // Another process measures now, so the values that this process shows would become outdated.
  const onFollower = () => {
    for (const project of shown) forget(metrics, network, project);
    shown.clear();
    dueMs = 0;
  };
  return loopWhileLeading(options, { name: 'capacity', onFollower }, measure);
}

type Measuring = CapacityWatchDeps & Pick<Relief, 'relieve'>;
type Failure = { what: string; error: unknown };

/**
 * Measures all projects once. If a project can't be measured, the others aren't delayed. Failures are logged together at the end, and
 * retried in the next round.
 */
async function measureAll(deps: Measuring, shown: Set<string>, shouldEnd: () => boolean): Promise<void> {
  const failures: Failure[] = [];
  try {
    for await (const project of allProjects(deps)) {
      if (shouldEnd()) return;
      const name = encodeId('prj', project.id);
      try {
        const capacity = await measureRelieved(deps, project);
        // This process may report its results only as long as it leads and hasn't been asked to stop.
        if (shouldEnd()) return;
        shown.add(name);
        show(deps, project, capacity);
        await notify(deps, project, capacity);
      } catch (error) {
        if (shouldEnd()) return;
        forget(deps.metrics, deps.network, name);
        failures.push({ what: name, error });
      }
    }
  } catch (error) {
    if (shouldEnd()) return;
    failures.push({ what: 'the list of projects', error });
  } finally {
    report(deps, failures);
  }
}

/** Measures again if a pool was 80 % used and more addresses could be derived. */
async function measureRelieved({ db, now, relieve }: Measuring, project: CapacityProject): Promise<Capacity> {
  const capacity = await measureCapacity(db, project, now());
  const scarce = capacity.amounts.filter(({ total, free }) => total > 0n && free * 100n <= total * LOW_PERCENT);
  if (scarce.length === 0) return capacity;
  const { id: projectId, policy, maxSurchargeMicro } = project;
  for (const { requestedMicro } of scarce) {
    if (!(await relieve({ projectId, policy, maxSurchargeMicro, requestedMicro }))) return capacity;
  }
  return measureCapacity(db, (await findCapacityProject(db, projectId, now())) ?? project, now());
}

function report({ log, network }: CapacityWatchDeps, failures: readonly Failure[]): void {
  const [first] = failures;
  if (first === undefined) return;
  const named = failures.slice(0, MAX_NAMED).map(({ what }) => what);
  const more = failures.length - named.length;
  log.warn(
    { err: first.error, failures: failures.length },
    `could not measure the capacity of ${network} for ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}; Quittance retries in the next round`,
  );
}

async function* allProjects({ db, network, now }: CapacityWatchDeps): AsyncGenerator<CapacityProject> {
  for (let afterId: string | null = null; ; ) {
    const page: CapacityProject[] = await listCapacityProjects(db, network, afterId, now());
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    afterId = last.id;
  }
}

function show({ metrics, network }: CapacityWatchDeps, { id }: CapacityProject, capacity: Capacity): void {
  const labels = { network, project: encodeId('prj', id) };
  forget(metrics, network, labels.project);
  if (capacity.freeShare !== null) metrics.capacityFreeRatio.set(labels, capacity.freeShare);
  if (capacity.daysLeft !== null) metrics.capacityDaysLeft.set(labels, capacity.daysLeft);
}

function forget(metrics: Metrics, network: Network, project: string): void {
  metrics.capacityFreeRatio.remove({ network, project });
  metrics.capacityDaysLeft.remove({ network, project });
}

async function notify(
  { db, network, log, now }: CapacityWatchDeps,
  project: CapacityProject,
  capacity: Capacity,
): Promise<void> {
  const subject = encodeId('prj', project.id);
  if (!capacity.isLow) return endAlarm({ db, log }, 'capacity-low', network, subject);
  const detail = describe(subject, project, capacity, await adviseAddresses({ db, now }, project.id));
  await tellAlarm({ db, log }, 'capacity-low', { network, subject, detail });
}

function describe(
  projectId: string,
  { policy, activeAddresses }: CapacityProject,
  { amounts }: Capacity,
  fix: string,
): string {
  if (activeAddresses === 0n) {
    return `${projectId} has no active address with its policy ${policy}, so no invoice can be created. ${fix}`;
  }
  const low = amounts.filter(({ isLow }) => isLow);
  const more = low.length - MAX_NAMED;
  const named = low.slice(0, MAX_NAMED).map(describeAmount).join('; ');
  return `${projectId} is running out of payable amounts: ${named}${more > 0 ? `; and ${more} more` : ''}. ${fix}`;
}

function describeAmount({ requestedMicro, free, total, daysLeft }: AmountCapacity): string {
  const left = daysLeft === null || free === 0n ? '' : `, enough for ${daysLeft} days at the current rate`;
  return `for ${formatAmount(requestedMicro)} USDT, ${free} of ${total} are free${left}`;
}

const columns = {
  id: 'uuid',
  network: text<Network>(),
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
  createdAt: 'timestamptz',
  activeAddresses: 'int8',
  retiredAddresses: 'int8',
  hasInvoices: 'bool',
  hasKeys: 'bool',
} as const;

// Only addresses with the current policy get new invoices. Selecting the first invoice makes PostgreSQL use the primary key; with `exists`,
// it may read the whole table if a project has no invoices.
const COLUMNS = `p.id, p.network, p.policy, p.max_surcharge_micro, p.created_at,
   (select count(*) from addresses a
    where a.project_id = p.id and a.policy = p.policy and ${isInUse('a.')}) as active_addresses,
   (select count(*) from addresses a
    where a.project_id = p.id and a.policy = p.policy and a.retired_at is not null) as retired_addresses,
   (select i.id from invoices i where i.project_id = p.id order by i.id limit 1) is not null as has_invoices,
   exists (select from api_keys k where k.project_id = p.id and k.revoked_at is null
     and (k.expires_at is null or k.expires_at > $1)) as has_keys`;

/** The facts about a project that determine its capacity. `createdAt` is the database's time. */
export type CapacityProject = Row<typeof columns>;

/** Returns a network's next 100 projects after `afterId`, by id, without archived ones. */
export const listCapacityProjects = rowsOf(
  'capacity-projects',
  columns,
  `select ${COLUMNS} from projects p
   where p.network = $2 and p.archived_at is null and ($3::uuid is null or p.id > $3) order by p.id limit 100`,
  (network: Network, afterId: string | null, now: UnixMs) => [new Date(now), network, afterId],
);

export const findCapacityProject = rowOf(
  'capacity-project',
  columns,
  `select ${COLUMNS} from projects p where p.id = $2`,
  (id: string, now: UnixMs) => [new Date(now), id],
);

// Ids contain the time of their creation, so the latest invoices are a single range of the primary key, read backwards. Uses are counted by
// payable amount, because overlapping ranges share code words, and only on addresses with the current policy. A range that is as wide as
// `width` spans at most two buckets of that width, so a hash join is possible instead of a cross join.
const use = {
  requestedMicro: micro<MicroUsdt>('int8'),
  used7Days: 'int8',
  used30Days: 'int8',
  firstUseAt: 'timestamptz?',
  countedSince: 'timestamptz',
} as const;

/** `firstUseAt` is the first use within the scanned invoices. `countedSince` is the time since which invoices were counted. */
type RecentUse = Row<typeof use>;

/**
 * Returns how often each amount was used in the last 7 and 30 days, judging by the latest `maxInvoices` invoices, in any order. `width` is
 * how wide the range of payable amounts is for one request. `amounts` is either the list of requested amounts, or the number of most
 * frequent amounts to return.
 */
export const findRecentUse = rowsOf(
  'capacity-use',
  use,
  `with recent as materialized (
     select i.requested_micro, i.payable_micro, i.created_at, a.policy = $2 as is_of_policy
     from (select requested_micro, payable_micro, created_at, address_id from invoices
           where project_id = $1 and id >= $3 order by id desc limit $4) i
     join addresses a on a.id = i.address_id),
   asked as (
     select unnest($5::int8[]) as requested_micro
     union all
     (select requested_micro from recent where $5::int8[] is null
      group by requested_micro order by count(*) desc, requested_micro limit $6))
   select asked.requested_micro,
     count(r.created_at) filter (where r.created_at >= $7) as used7_days,
     count(r.created_at) as used30_days,
     min(r.created_at) as first_use_at,
     case when (select count(*) from recent) >= $4 then (select min(created_at) from recent) else $9::timestamptz end as counted_since
   from asked
   cross join lateral (values (asked.requested_micro / $8::int8), (asked.requested_micro / $8::int8 + 1)) bucket (number)
   left join recent r on r.is_of_policy and r.payable_micro / $8::int8 = bucket.number
     and r.payable_micro >= asked.requested_micro and r.payable_micro < asked.requested_micro + $8::int8
   group by asked.requested_micro`,
  ({ projectId, policy, width, since7Days, since30Days, maxInvoices, amounts }: UseQuestion) => [
    projectId,
    policy,
    firstIdOf(since30Days),
    maxInvoices,
    'busiest' in amounts ? null : amounts,
    'busiest' in amounts ? amounts.busiest : 0,
    new Date(since7Days),
    width,
    new Date(since30Days),
  ],
);

type UseQuestion = {
  projectId: string;
  policy: Policy;
  width: bigint;
  since7Days: UnixMs;
  since30Days: UnixMs;
  maxInvoices: number;
  amounts: readonly MicroUsdt[] | { busiest: number };
};

/** Returns the positions of the ranges where an amount was reserved before a given time, including on retired addresses. */
const findUsedBefore = answerOf(
  'capacity-used-before',
  { number: 'int4' },
  `select r.number::int4 as number
   from unnest($3::int8[], $4::int8[]) with ordinality as r (from_micro, below_micro, number)
   where exists (
     select from addresses a
     cross join lateral (
       select from invoices i
       where i.address_id = a.id and i.payable_micro >= r.from_micro and i.payable_micro < r.below_micro
         and i.created_at < $5
       limit 1) before
     where a.project_id = $1 and a.policy = $2)`,
  (projectId: string, policy: Policy, ranges: readonly WordRange[], before: UnixMs) => [
    projectId,
    policy,
    ranges.map(({ fromMicro }) => fromMicro),
    ranges.map(({ belowMicro }) => belowMicro),
    new Date(before),
  ],
  (rows) => new Set(rows.map(({ number }) => number - 1)),
);

export const noteRefusedAmount = commandOf(
  'refused-amount-upsert',
  `insert into refused_amounts (project_id, requested_micro, refused_at) values ($1, $2, $3)
   on conflict (project_id, requested_micro) do update set refused_at = excluded.refused_at`,
  (projectId: string, requestedMicro: MicroUsdt, refusedAt: UnixMs) => [projectId, requestedMicro, new Date(refusedAt)],
);

/** Returns the amounts that were refused since a time, latest first. */
const findRefusedAmounts = answerOf(
  'refused-amount-select',
  { requestedMicro: micro<MicroUsdt>('int8') },
  `select requested_micro from refused_amounts
   where project_id = $1 and refused_at > $2 order by refused_at desc limit $3`,
  (projectId: string, since: UnixMs, limit: number) => [projectId, new Date(since), limit],
  (rows) => rows.map(({ requestedMicro }) => requestedMicro),
);
