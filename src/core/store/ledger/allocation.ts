import type { Policy, WordRange } from '../../domain/policy.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf, commandOf, conditionOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_ADDRESS } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row } from '../db/statement.ts';
import { isInUse } from './addresses.ts';

/**
 * The statements below find free amounts. They search active addresses (neither retired nor frozen) with the project's policy, after the
 * hint, because nothing before the hint is free. An amount isn't free as long as an invoice has it, and for a day after a transfer of this
 * amount has arrived.
 */

// A scalar subquery is evaluated only once, and the index on positions is scanned from there. A join would scan all addresses before that
// position.
const afterHint = (policy: "'exact'" | '$4') => `a.project_id = $1 and a.policy = ${policy} and ${isInUse('a.')}
     and a.position > coalesce(
       (select h.position from allocation_hints h
        where h.project_id = $1 and h.policy = ${policy} and h.from_micro = $2 and h.below_micro = $3
          and h.epoch = (select p.allocation_epoch from projects p where p.id = $1)), 0)`;

/** An address that can be offered (`id` is a UUID). Its seal and its text show that it's ours. */
const place = { id: 'uuid', position: 'int4', address: 'address', isSound: isAsSealed(SEALED_ADDRESS) } as const;
export type Place = Pick<Row<typeof place>, 'id' | 'position'>;
const SOURCES = { address: addressColumn('a'), isSound: sealColumn(SEALED_ADDRESS, 'a.') };
const PLACE = listColumns(place, 'a.', SOURCES);

/** The statements whose addresses are offered to invoices. If one address can't be used, another one is offered instead. */
export const OFFERED_ADDRESSES = ['allocation-first-places', 'allocation-places', 'allocation-free-exact'] as const;

/** An address that may be offered. If `isSound` is false, the address isn't signed, or someone inserted it directly into the database. */
export type Candidate = Place & { isSound: boolean };
/** A page of up to `limit` addresses after a position, in order. */
export type Page = { after: number; limit: number };

/** Returns the active addresses with a policy. */
export const findFirstPlaces = rowsOf(
  OFFERED_ADDRESSES[0],
  place,
  `select ${PLACE} from addresses a
   where a.project_id = $1 and a.policy = $2 and ${isInUse('a.')} and a.position > $3::int4 order by a.position limit $4::int8`,
  (projectId: string, policy: Policy, { after, limit }: Page) => [projectId, policy, after, limit],
);

/** Returns addresses that may have free amounts, for a policy with a tail. */
export const findPlaces = rowsOf(
  OFFERED_ADDRESSES[1],
  place,
  `select ${PLACE} from addresses a where ${afterHint('$4')} and a.position > $5::int4 order by a.position limit $6::int8`,
  (projectId: string, policy: Policy, { fromMicro, belowMicro }: WordRange, { after, limit }: Page) => [
    ...[projectId, fromMicro, belowMicro],
    ...[policy, after, limit],
  ],
);

/** Counts the amounts that invoices have on an address, for each part of a range. The last part may be shorter. */
export const countReservedByPart = answerOf(
  'allocation-count-reserved',
  { reserved: 'int8[]' },
  `select array(
     select (select count(*) from invoices i
       where i.address_id = $1 and i.payable_micro >= part and i.payable_micro < least(part + $4::int8, $3))
     from generate_series($2::int8, $3::int8 - 1, $4::int8) part order by part) as reserved`,
  (addressId: string, { fromMicro, belowMicro }: WordRange, partMicro: bigint) => [
    ...[addressId, fromMicro, belowMicro],
    partMicro,
  ],
  ([row]) => row?.reserved ?? [],
);

/** Returns the amounts in one part of a range that aren't free on an address. */
export const findReservedInPart = answerOf(
  'allocation-select-reserved',
  { reserved: 'int8[]' },
  `select array(
     select i.payable_micro from invoices i
     where i.address_id = $1 and i.payable_micro >= $2 and i.payable_micro < $3
     union all select r.amount_micro from arrivals r where r.address_id = $1 and r.amount_micro >= $2 and r.amount_micro < $3) as reserved`,
  (addressId: string, part: WordRange) => [addressId, part.fromMicro, part.belowMicro],
  ([row]) => row?.reserved ?? [],
);

/** Returns active `exact` addresses where the amount is free. */
export const findFreeExact = rowsOf(
  OFFERED_ADDRESSES[2],
  place,
  `select ${PLACE} from addresses a
   where ${afterHint("'exact'")} and a.position > $4::int4
     and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = $2) is null
     and (select r.address_id from arrivals r where r.address_id = a.id and r.amount_micro = $2 limit 1) is null
   order by a.position limit $5::int8`,
  (projectId: string, { fromMicro, belowMicro }: WordRange, { after, limit }: Page) => [
    ...[projectId, fromMicro, belowMicro],
    ...[after, limit],
  ],
);

/** Whether there's an active `exact` address after the hint. */
export const hasExactBehindHint = conditionOf(
  'allocation-behind-hint',
  `exists (select from addresses a where ${afterHint("'exact'")})`,
  (projectId: string, { fromMicro, belowMicro }: WordRange) => [projectId, fromMicro, belowMicro],
);

/**
 * Stores the position up to which all `capacity` amounts in a range are reserved. Addresses and epoch are read in one snapshot, so if an
 * address is reactivated in the meantime, the hint has an outdated epoch.
 */
export const advanceHint = commandOf(
  'allocation-advance-hint',
  `insert into allocation_hints as h (project_id, policy, from_micro, below_micro, position, epoch)
   select p.id, $2, $3, $4, n.position, p.allocation_epoch
   from projects p
   cross join lateral (
     select coalesce(
       (select a.position - 1 from addresses a
        where a.project_id = p.id and a.policy = $2 and ${isInUse('a.')}
          and a.position > coalesce(
            (select k.position from allocation_hints k
             where k.project_id = p.id and k.policy = $2 and k.from_micro = $3 and k.below_micro = $4
               and k.epoch = p.allocation_epoch), 0)
          and (select count(*) from invoices i
               where i.address_id = a.id and i.payable_micro >= $3 and i.payable_micro < $4) < $5::int8
        order by a.position limit 1),
       (select max(a.position) from addresses a where a.project_id = p.id)) as position) n
   where p.id = $1 and n.position > 0
   on conflict (project_id, policy, from_micro, below_micro) do update
     set position = excluded.position, epoch = excluded.epoch
     where (h.epoch, h.position) < (excluded.epoch, excluded.position)`,
  (projectId: string, policy: Policy, { fromMicro, belowMicro }: WordRange, capacity: bigint) => [
    projectId,
    policy,
    fromMicro,
    belowMicro,
    capacity,
  ],
);

/** Counts a project's active addresses, and its addresses that Tether froze. */
export const countAddressesInUse = answerOf(
  'allocation-count-addresses',
  { inUse: count, frozen: count },
  `select count(*) filter (where ${isInUse('a.')}) as in_use, count(*) filter (where a.freeze_state is not null) as frozen
   from projects p join addresses a on a.project_id = p.id and a.policy = p.policy and a.retired_at is null
   where p.id = $1`,
  (projectId: string) => [projectId],
  ([row]) => row ?? { inUse: 0, frozen: 0 },
);
