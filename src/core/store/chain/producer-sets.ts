import type { AccountHex } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_PRODUCERS } from '../db/sealed-tables.ts';
import { json, listColumns, type Row, sealed, text } from '../db/statement.ts';

const columns = {
  /** `adoptedAt` is the time when this process adopted the set, by its own clock. */
  chainTime: 'timestamptz',
  adoptedAt: 'timestamptz',
  /** `first`: no set existed before. `vote`: members changed. `key`: a witness permission changed. `operator`: a command set it. */
  reason: text<'first' | 'vote' | 'key' | 'operator'>(),
  producers: json<readonly { account: AccountHex; signer: AccountHex }[]>(),
  /** The origins of the nodes that reported the set. */
  nodes: 'text[]',
  seal: sealed(SEALED_PRODUCERS),
} as const;

/** The accounts that may produce blocks, each with its signing key's account (its witness permission). */
export type ProducerSet = Omit<Row<typeof columns>, 'adoptedAt' | 'seal'>;

/** Returns the newest sets, newest first. */
export const findProducerSets = rowsOf(
  'producer-sets-newest',
  columns,
  `select ${listColumns(columns)} from producer_sets where network = $1 order by id desc limit $2`,
  (network: Network, limit: number) => [network, limit],
);

const confirmed = { ...columns, confirmedAt: 'timestamptz' } as const;

/**
 * Returns the set that a change must be compared with, and when that set was last confirmed. This is the newest set that was in force
 * before a given time or that an operator accepted. If there's no such set, it's the very first one. Returns `null` if no set exists.
 */
export const findBaseline = rowOf(
  'producer-sets-baseline',
  confirmed,
  `select ${listColumns(confirmed, 's.', {
    confirmedAt: `coalesce(
     (select n.replaced_after from producer_sets n where n.network = s.network and n.id > s.id order by n.id limit 1),
     (select c.confirmed_at from producer_confirmations c where c.network = s.network), s.chain_time)`,
  })}
   from producer_sets s cross join lateral (values (s.chain_time < $2 or s.reason = 'operator')) _ (is_before)
   where s.network = $1 order by is_before desc, case when is_before then -s.id else s.id end limit 1`,
  (network: Network, time: UnixMs) => [network, new Date(time)],
);

/** Puts into force a set that nodes agreed on at its `chainTime`. The previous set was in force until it was last confirmed. */
export const insertProducerSet = commandOf(
  'producer-set-insert',
  `with adopted as (
     insert into producer_sets (network, chain_time, replaced_after, reason, producers, nodes, mac)
     values ($1, $2, coalesce((select confirmed_at from producer_confirmations where network = $1), $2), $3,
       $4::text::jsonb, $5::text[], $6))
   insert into producer_confirmations (network, confirmed_at) values ($1, $2)
   on conflict (network) do update set confirmed_at = excluded.confirmed_at`,
  (network: Network, { chainTime, reason, producers, nodes }: ProducerSet) => [
    network,
    new Date(chainTime),
    reason,
    JSON.stringify(producers),
    nodes,
    sealOf(SEALED_PRODUCERS, { network, chainTime, producers }),
  ],
);

/** Records that at a given time nodes agreed on the newest set. */
export const confirmProducers = commandOf(
  'producer-set-confirm',
  `insert into producer_confirmations (network, confirmed_at) values ($1, $2)
   on conflict (network) do update set confirmed_at = excluded.confirmed_at`,
  (network: Network, at: UnixMs) => [network, new Date(at)],
);
