import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { AccountHex } from '../../tron/address.ts';
import type { Sql } from '../db/database.ts';
import { type Row, statement, text } from '../db/statement.ts';

/** The accounts that may make blocks, and with whose key each signs (its witness permission). */
export type ProducerSet = {
  /** When the set was taken over, by our clock. */
  chainTime: UnixMs;
  /** `first`: there was none; `vote`: members changed; `key`: a witness permission changed; `operator`: by command. */
  reason: 'first' | 'vote' | 'key' | 'operator';
  producers: readonly { account: AccountHex; signer: AccountHex }[];
  /** Origins of the nodes that told it. */
  nodes: readonly string[];
};

const columns = {
  chainTime: 'timestamptz',
  adoptedAt: 'timestamptz',
  reason: text<ProducerSet['reason']>(),
  producers: 'text',
  nodes: 'text[]',
} as const;

const newest = statement(
  'producer-sets-newest',
  columns,
  `select chain_time, adopted_at, reason, producers::text as producers, nodes from producer_sets
   where network = $1 order by id desc limit $2`,
);

/** The newest sets, newest first. */
export async function findProducerSets(
  db: Sql,
  network: Network,
  limit: number,
): Promise<(ProducerSet & { adoptedAt: UnixMs })[]> {
  return (await db.run(newest, [network, limit])).map(toSet);
}

const CONFIRMED = `select s.chain_time, s.adopted_at, s.reason, s.producers::text as producers, s.nodes, coalesce(
     (select n.replaced_after from producer_sets n where n.network = s.network and n.id > s.id order by n.id limit 1),
     (select c.confirmed_at from producer_confirmations c where c.network = s.network), s.chain_time) as confirmed_at
   from producer_sets s`;

const before = statement(
  'producer-sets-before',
  { ...columns, confirmedAt: 'timestamptz' },
  `${CONFIRMED} where s.network = $1 and (s.chain_time < $2 or s.reason = 'operator') order by s.id desc limit 1`,
);

const first = statement(
  'producer-sets-first',
  { ...columns, confirmedAt: 'timestamptz' },
  `${CONFIRMED} where s.network = $1 order by s.id limit 1`,
);

/**
 * The set to compare a change with: the newest one that was in force before a time, or that an operator accepted, else the first
 * of all; and when it was last seen in force. `null` if there is none.
 */
export async function findBaseline(
  db: Sql,
  network: Network,
  time: UnixMs,
): Promise<(ProducerSet & { confirmedAt: UnixMs }) | null> {
  const [row] = [...(await db.run(before, [network, new Date(time)])), ...(await db.run(first, [network]))];
  return row === undefined ? null : toSet(row);
}

function toSet<Set extends Row<typeof columns>>({ producers, ...row }: Set) {
  const members = JSON.parse(producers) as ProducerSet['producers'];
  // jsonb orders the keys of objects in its own way.
  return { ...row, producers: members.map(({ account, signer }) => ({ account, signer })) };
}

const insert = statement(
  'producer-set-insert',
  {},
  `with adopted as (
     insert into producer_sets (network, chain_time, replaced_after, reason, producers, nodes)
     values ($1, $2, coalesce((select confirmed_at from producer_confirmations where network = $1), $2), $3,
       $4::text::jsonb, $5::text[]))
   insert into producer_confirmations (network, confirmed_at) values ($1, $2)
   on conflict (network) do update set confirmed_at = excluded.confirmed_at`,
);

/** Puts a set in force, on which nodes agreed at its `chainTime`; the one before was in force until it was last confirmed. */
export async function insertProducerSet(db: Sql, network: Network, set: ProducerSet): Promise<void> {
  const { chainTime, reason, producers, nodes } = set;
  await db.run(insert, [network, new Date(chainTime), reason, JSON.stringify(producers), [...nodes]]);
}

const confirm = statement(
  'producer-set-confirm',
  {},
  `insert into producer_confirmations (network, confirmed_at) values ($1, $2)
   on conflict (network) do update set confirmed_at = excluded.confirmed_at`,
);

/** Remembers that nodes agreed on the newest set at a time. */
export async function confirmProducers(db: Sql, network: Network, at: UnixMs): Promise<void> {
  await db.run(confirm, [network, new Date(at)]);
}
