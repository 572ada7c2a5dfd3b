import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowOf } from '../db/rows-of.ts';
import { json, listColumns } from '../db/statement.ts';

/** A watcher's report about itself and its nodes, for other processes and the operator. */
export type ChainStatus = {
  /** Why the chain isn't visible, or `null`. */
  blind: string | null;
  headNumber: number;
  /** Headers that this process verified prove that blocks up to this height are irreversible. */
  ownSolidNumber: number;
  /** The queried node says that blocks up to this height are irreversible. */
  nodeSolidNumber: number;
  processedNumber: number;
  /** The figures are `null` while they are unknown. */
  catchUp: { blocksPerSecond: number | null; secondsLeft: number | null } | null;
  /** The first irreversible block that waits until enough operators agree on its logs. Older releases don't write it. */
  openBlock?: number | null;
  nodes: readonly NodeStatus[];
  /** The energy price, or `null` before nodes reported it. Older releases don't write it. */
  energyPrice?: EnergyPriceSeen | null;
  /** Requests to all nodes per block at the head, over the latest blocks. `null` while too few blocks were followed. */
  requestsPerBlock: number | null;
};

/** In sun per unit, as nodes reported it at that time. */
export type EnergyPriceSeen = { sun: number; at: UnixMs };

type NodeStatus = {
  url: string;
  operator: string;
  state: string;
  reason: string | null;
  /** Counted from when the status was written. */
  pausedForMs: number;
  /** Failures in a row. Older releases don't write it. */
  failures?: number;
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The limit, or `null` without one. Older releases don't write it. */
  requestsPerDay?: number | null;
  answerMs: number | null;
};

/** A watcher writes its status every few seconds. If the status is older than this, the watcher has stopped or hangs. */
export const STATUS_SILENT_MS = 30_000;

export const saveChainStatus = commandOf(
  'chain-status-upsert',
  `insert into chain_status (network, updated_at, status) values ($1, $2, $3::text::jsonb)
   on conflict (network) do update set updated_at = excluded.updated_at, status = excluded.status`,
  (network: Network, at: UnixMs, status: ChainStatus) => [network, new Date(at), JSON.stringify(status)],
);

const columns = { updatedAt: 'timestamptz', status: json<ChainStatus>() } as const;

/** Returns the latest status, or `null` if no watcher ever ran. */
export const findChainStatus = rowOf(
  'chain-status-select',
  columns,
  `select ${listColumns(columns)} from chain_status where network = $1`,
  (network: Network) => [network],
);

/** A node's pause as recorded by another process, or by this one before a restart. */
export type RememberedPause = { url: string; failures: number; pausedForMs: number; reason: string | null };

/** A series of failures that is older than this says nothing about a node's current state. */
const REMEMBERED_MS = 10 * 60_000;

/**
 * Returns the remaining pauses of nodes, by `url`, from the last watcher's status. A node with failures in a row is included even if its
 * pause is over. A pause that a node requested may be long; the process that adopts it limits it like a new one. Pauses that began before
 * anything was followed are missing.
 */
export async function findRememberedPauses(db: Sql, network: Network, now: UnixMs): Promise<RememberedPause[]> {
  const found = await findChainStatus(db, network);
  if (found === null) return [];
  // A clock that was set back must not lengthen a pause.
  const ageMs = Math.max(0, now - found.updatedAt);
  return readNodes(found.status)
    .map(({ url, failures = 0, pausedForMs, reason }) => ({
      ...{ url, reason },
      failures: ageMs > REMEMBERED_MS ? 0 : failures,
      pausedForMs: Math.max(0, pausedForMs - ageMs),
    }))
    .filter(({ failures, pausedForMs }) => failures > 0 || pausedForMs > 0);
}

/** Returns the complete node entries of a status. The row has no seal, so invalid content must not stop the watcher. */
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
