import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** What is left for amounts of a range. Addresses in use are those that are not retired and have the policy of the project. */
type AmountRange = { fromMicro: bigint; belowMicro: bigint };

const selectTaken = statement(
  'allocation-taken',
  { taken: 'int8[]' },
  `select array(
     select i.payable_micro from invoices i
     where i.address_id = a.id and i.payable_micro >= $2 and i.payable_micro < $3) as taken
   from addresses a
   where a.project_id = $1 and a.retired_at is null and a.policy = 'tail'
     and (select f.address_id from full_ranges f
          where f.address_id = a.id and f.from_micro = $2 and f.below_micro = $3) is null
   order by a.position limit 1`,
);

/** The reserved amounts of a range on the first `tail` address in use that is not known to be full there; `null` without one. */
export async function findTaken(db: Sql, projectId: string, range: AmountRange): Promise<bigint[] | null> {
  const [row] = await db.run(selectTaken, [projectId, range.fromMicro, range.belowMicro]);
  return row?.taken ?? null;
}

const markFull = statement(
  'allocation-mark-full',
  {},
  `insert into full_ranges (address_id, from_micro, below_micro)
   select a.id, $2::int8, $3::int8 from addresses a
   where a.project_id = $1 and a.retired_at is null and a.policy = 'tail'
     and (select f.address_id from full_ranges f
          where f.address_id = a.id and f.from_micro = $2 and f.below_micro = $3) is null
     and (select count(*) from invoices i
          where i.address_id = a.id and i.payable_micro >= $2 and i.payable_micro < $3) >= $4::int8
   on conflict do nothing`,
);

/** Remembers on which addresses in use all `capacity` amounts of a range are reserved: reservations are permanent, so they stay full. */
export async function markFullRanges(db: Sql, projectId: string, range: AmountRange, capacity: number): Promise<void> {
  await db.run(markFull, [projectId, range.fromMicro, range.belowMicro, capacity]);
}

const countFree = statement(
  'allocation-count-free-exact',
  { free: 'int8' },
  `select count(*) as free from (
     select from addresses a
     where a.project_id = $1 and a.retired_at is null and a.policy = 'exact'
       and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = $2) is null
     order by a.position limit $3::int8) a`,
);

/** How many `exact` addresses in use have an amount free, counted up to `limit`. */
export async function countFreeExact(db: Sql, projectId: string, amountMicro: bigint, limit: number): Promise<number> {
  const [row] = await db.run(countFree, [projectId, amountMicro, limit]);
  return Number(row?.free ?? 0n);
}

const countAddresses = statement(
  'allocation-count-addresses',
  { in_use: 'int8' },
  `select (select count(*) from addresses a
     where a.project_id = p.id and a.policy = p.policy and a.retired_at is null) as in_use
   from projects p where p.id = $1`,
);

/** How many addresses of a project are in use. */
export async function countAddressesInUse(db: Sql, projectId: string): Promise<number> {
  const [row] = await db.run(countAddresses, [projectId]);
  return Number(row?.in_use ?? 0n);
}
