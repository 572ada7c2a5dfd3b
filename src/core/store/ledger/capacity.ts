import type { WordRange } from '../../domain/code-word.ts';
import { firstIdOf } from '../../domain/ids.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { micro, type Row, statement, text } from '../db/statement.ts';
import { isInUse } from './addresses.ts';

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
export type RecentUse = Row<typeof use>;

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

// With lateral subqueries, PostgreSQL counts in the index (address_id, payable_micro), one short range each.
const selectReserved = statement(
  'capacity-reserved',
  { number: 'int4', addresses: 'int8', reserved: 'int8' },
  `select r.number::int4 as number, count(*) as addresses, sum(taken.count)::int8 as reserved
   from unnest($3::int8[], $4::int8[]) with ordinality as r (from_micro, below_micro, number)
   cross join addresses a
   cross join lateral (
     select (select count(*) from invoices i
         where i.address_id = a.id and i.payable_micro >= r.from_micro and i.payable_micro < r.below_micro)
       + (select count(distinct s.amount_micro) from arrivals s
         where s.address_id = a.id and s.amount_micro >= r.from_micro and s.amount_micro < r.below_micro
           and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = s.amount_micro) is null) as count) taken
   where a.project_id = $1 and a.policy = $2 and ${isInUse('a.')}
   group by r.number`,
);

/** For each range, in order, returns how many active addresses with the policy can use it, and how much of it is reserved. */
export async function countReserved(
  db: Sql,
  projectId: string,
  policy: Policy,
  ranges: readonly WordRange[],
): Promise<{ addresses: bigint; reserved: bigint }[]> {
  const counts = ranges.map(() => ({ addresses: 0n, reserved: 0n }));
  for (const { number, addresses, reserved } of await db.run(selectReserved, [projectId, policy, ...bounds(ranges)])) {
    counts[number - 1] = { addresses, reserved };
  }
  return counts;
}

/** Returns the positions of the ranges where an amount was reserved before a given time, including on retired addresses. */
export const findUsedBefore = answerOf(
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
    ...bounds(ranges),
    new Date(before),
  ],
  (rows) => new Set(rows.map(({ number }) => number - 1)),
);

function bounds(ranges: readonly WordRange[]): [bigint[], bigint[]] {
  return [ranges.map(({ fromMicro }) => fromMicro), ranges.map(({ belowMicro }) => belowMicro)];
}

/** Returns how much of a range is reserved on each active address with the policy, by position, for at most 10,000 addresses. */
export const listReserved = rowsOf(
  'capacity-addresses',
  { address: 'address', position: 'int4', reserved: 'int8' },
  `select ${addressColumn('a')} as address, a.position, taken.count as reserved
   from addresses a
   cross join lateral (
     select count(*) from invoices i
     where i.address_id = a.id and i.payable_micro >= $3 and i.payable_micro < $4) taken
   where a.project_id = $1 and a.policy = $2 and ${isInUse('a.')}
   order by a.position limit 10000`,
  (projectId: string, policy: Policy, { fromMicro, belowMicro }: WordRange) => [
    projectId,
    policy,
    fromMicro,
    belowMicro,
  ],
);

export const noteRefusedAmount = commandOf(
  'refused-amount-upsert',
  `insert into refused_amounts (project_id, requested_micro, refused_at) values ($1, $2, $3)
   on conflict (project_id, requested_micro) do update set refused_at = excluded.refused_at`,
  (projectId: string, requestedMicro: MicroUsdt, refusedAt: UnixMs) => [projectId, requestedMicro, new Date(refusedAt)],
);

/** Returns the amounts that were refused since a time, latest first. */
export const findRefusedAmounts = answerOf(
  'refused-amount-select',
  { requestedMicro: micro<MicroUsdt>('int8') },
  `select requested_micro from refused_amounts
   where project_id = $1 and refused_at > $2 order by refused_at desc limit $3`,
  (projectId: string, since: UnixMs, limit: number) => [projectId, new Date(since), limit],
  (rows) => rows.map(({ requestedMicro }) => requestedMicro),
);
