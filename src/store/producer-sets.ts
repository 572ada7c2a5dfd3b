import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AccountHex } from '../tron/address.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** Who may make blocks, and with whose key each signs (its witness permission). */
export type ProducerSet = {
  /** When the set was taken over: by our clock, or the time of the newest verified block if that is later. */
  chainTime: UnixMs;
  /** `first`: there was none; `vote`: members changed; `key`: a witness permission changed; `operator`: by command. */
  reason: 'first' | 'vote' | 'key' | 'operator';
  producers: readonly { account: AccountHex; signer: AccountHex }[];
  /** Origins of the nodes that told it. */
  nodes: readonly string[];
};

const columns = {
  chain_time: 'timestamptz',
  adopted_at: 'timestamptz',
  reason: 'text',
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

const before = statement(
  'producer-sets-before',
  columns,
  `select chain_time, adopted_at, reason, producers::text as producers, nodes from producer_sets
   where network = $1 and (chain_time < $2 or reason = 'operator') order by id desc limit 1`,
);

/** The newest set that was in force before a time, or that an operator accepted; `null` if there is none. */
export async function findProducerSetBefore(db: Sql, network: Network, time: UnixMs): Promise<ProducerSet | null> {
  const [row] = await db.run(before, [network, new Date(time)]);
  return row === undefined ? null : toSet(row);
}

const first = statement(
  'producer-sets-first',
  columns,
  `select chain_time, adopted_at, reason, producers::text as producers, nodes from producer_sets
   where network = $1 order by id limit 1`,
);

/** The set that was taken over first, or `null`. */
export async function findFirstProducerSet(db: Sql, network: Network): Promise<ProducerSet | null> {
  const [row] = await db.run(first, [network]);
  return row === undefined ? null : toSet(row);
}

function toSet(row: {
  chain_time: UnixMs;
  adopted_at: UnixMs;
  reason: string;
  producers: string;
  nodes: string[];
}): ProducerSet & { adoptedAt: UnixMs } {
  return {
    chainTime: row.chain_time,
    adoptedAt: row.adopted_at,
    reason: row.reason as ProducerSet['reason'],
    // jsonb orders the keys of objects in its own way.
    producers: (JSON.parse(row.producers) as ProducerSet['producers']).map(({ account, signer }) => ({
      account,
      signer,
    })),
    nodes: row.nodes,
  };
}

const insert = statement(
  'producer-set-insert',
  {},
  `insert into producer_sets (network, chain_time, reason, producers, nodes)
   values ($1, $2, $3, $4::text::jsonb, $5::text[])`,
);

export async function insertProducerSet(db: Sql, network: Network, set: ProducerSet): Promise<void> {
  const { chainTime, reason, producers, nodes } = set;
  await db.run(insert, [network, new Date(chainTime), reason, JSON.stringify(producers), [...nodes]]);
}
