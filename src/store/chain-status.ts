import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** What the watcher of a network says about itself and its nodes. Other processes and the operator read it. */
export type ChainStatus = {
  /** Why nothing is seen of the chain, or `null`. */
  blind: string | null;
  headNumber: number;
  /** What our own verified headers prove to be irreversible. */
  ownSolidNumber: number;
  /** What the asked node says is irreversible. */
  nodeSolidNumber: number;
  processedNumber: number;
  /** Its figures are `null` as long as they are not known. */
  catchUp: { blocksPerSecond: number | null; secondsLeft: number | null } | null;
  /** The first irreversible block that waits until enough operators agree on its logs; absent in what older releases wrote. */
  openBlock?: number | null;
  nodes: readonly NodeStatus[];
  /** Requests to all nodes for one block at the head, over the latest blocks; `null` while too few were followed. */
  requestsPerBlock: number | null;
};

type NodeStatus = {
  url: string;
  operator: string;
  state: string;
  reason: string | null;
  pausedForMs: number;
  requests: number;
  refusals: number;
  requestsToday: number;
  answerMs: number | null;
};

/** A watcher writes its status every few seconds; one that is older than this was written by one that runs no more, or hangs. */
export const STATUS_SILENT_MS = 30_000;

const upsert = statement(
  'chain-status-upsert',
  {},
  `insert into chain_status (network, updated_at, status) values ($1, $2, $3::text::jsonb)
   on conflict (network) do update set updated_at = excluded.updated_at, status = excluded.status`,
);

export async function saveChainStatus(db: Sql, network: Network, at: UnixMs, status: ChainStatus): Promise<void> {
  await db.run(upsert, [network, new Date(at), JSON.stringify(status)]);
}

const select = statement(
  'chain-status-select',
  { updated_at: 'timestamptz', status: 'text' },
  'select updated_at, status::text as status from chain_status where network = $1',
);

/** The latest status, or `null` if no watcher ever ran. */
export async function findChainStatus(
  db: Sql,
  network: Network,
): Promise<{ updatedAt: UnixMs; status: ChainStatus } | null> {
  const [row] = await db.run(select, [network]);
  return row === undefined ? null : { updatedAt: row.updated_at, status: JSON.parse(row.status) as ChainStatus };
}
