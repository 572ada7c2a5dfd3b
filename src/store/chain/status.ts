import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowOf } from '../db/rows-of.ts';
import { json, listColumns } from '../db/statement.ts';

/** The watcher of a network says this about itself and its nodes. Other processes and the operator read it. */
export type ChainStatus = {
  /** Why nothing is seen of the chain, or `null`. */
  blind: string | null;
  headNumber: number;
  /** Our own verified headers prove blocks up to this height to be irreversible. */
  ownSolidNumber: number;
  /** The asked node says that blocks up to this height are irreversible. */
  nodeSolidNumber: number;
  processedNumber: number;
  /** Its figures are `null` as long as they are not known. */
  catchUp: { blocksPerSecond: number | null; secondsLeft: number | null } | null;
  /** The first irreversible block that waits until enough operators agree on its logs; absent in what older releases wrote. */
  openBlock?: number | null;
  nodes: readonly NodeStatus[];
  /** What energy costs; `null` before nodes said so, absent in what older releases wrote. */
  energyPrice?: EnergyPriceSeen | null;
  /** Requests to all nodes for one block at the head, over the latest blocks; `null` while too few were followed. */
  requestsPerBlock: number | null;
};

/** In sun per unit, as nodes said at that time. */
export type EnergyPriceSeen = { sun: number; at: UnixMs };

type NodeStatus = {
  url: string;
  operator: string;
  state: string;
  reason: string | null;
  /** From when the status was written. */
  pausedForMs: number;
  /** Failures in a row; absent in a status that an older release wrote. */
  failures?: number;
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The limit; `null` without one, absent in a status that an older release wrote. */
  requestsPerDay?: number | null;
  answerMs: number | null;
};

/** A watcher writes its status every few seconds; one that is older than this was written by one that runs no more, or hangs. */
export const STATUS_SILENT_MS = 30_000;

export const saveChainStatus = commandOf(
  'chain-status-upsert',
  `insert into chain_status (network, updated_at, status) values ($1, $2, $3::text::jsonb)
   on conflict (network) do update set updated_at = excluded.updated_at, status = excluded.status`,
  (network: Network, at: UnixMs, status: ChainStatus) => [network, new Date(at), JSON.stringify(status)],
);

const columns = { updatedAt: 'timestamptz', status: json<ChainStatus>() } as const;

/** The latest status, or `null` if no watcher ever ran. */
export const findChainStatus = rowOf(
  'chain-status-select',
  columns,
  `select ${listColumns(columns)} from chain_status where network = $1`,
  (network: Network) => [network],
);

/** A former process, or this one before a restart, held this against a node. */
export type RememberedPause = { url: string; failures: number; pausedForMs: number; reason: string | null };

/** A row of failures that is older than this says nothing of how a node is now. */
const REMEMBERED_MS = 10 * 60_000;

/**
 * The rest of the pauses of nodes, by `url`, as the last watcher wrote them. A node that failed in a row is among them though its
 * pause is over. A pause that a node asked for itself may be long; the process that takes it over bounds it as if it were new. A pause
 * that began while nothing was followed yet is missing.
 */
export async function findRememberedPauses(db: Sql, network: Network, now: UnixMs): Promise<RememberedPause[]> {
  const found = await findChainStatus(db, network);
  if (found === null) return [];
  // A clock that was set back makes no pause longer.
  const ageMs = Math.max(0, now - found.updatedAt);
  return readNodes(found.status)
    .map(({ url, failures = 0, pausedForMs, reason }) => ({
      ...{ url, reason },
      failures: ageMs > REMEMBERED_MS ? 0 : failures,
      pausedForMs: Math.max(0, pausedForMs - ageMs),
    }))
    .filter(({ failures, pausedForMs }) => failures > 0 || pausedForMs > 0);
}

/** Its nodes that say all that is needed. The row has no seal, and what somebody wrote there must not hold up who follows the network. */
function readNodes(
  status: { nodes?: unknown } | null,
): Pick<NodeStatus, 'url' | 'failures' | 'pausedForMs' | 'reason'>[] {
  const nodes: unknown[] = Array.isArray(status?.nodes) ? status.nodes : [];
  return nodes.filter((node): node is NodeStatus => {
    const { url, failures = 0, pausedForMs, reason }: Record<string, unknown> = { ...(node as object) };
    const isText = typeof url === 'string' && (reason === null || typeof reason === 'string');
    return isText && Number.isFinite(failures) && Number.isFinite(pausedForMs);
  });
}
