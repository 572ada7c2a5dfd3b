import type { Network } from '../../domain/network.ts';
import { printableText } from '../../domain/text.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowOf } from '../db/rows-of.ts';
import { json, listColumns } from '../db/statement.ts';

/** A watcher's report about itself and its nodes, for other processes and the operator. */
export type ChainStatus = {
  /** Why the chain isn't visible, or `null`. */
  blind: string | null;
  headNumber: number;
  /** Height up to which blocks are irreversible, as proven by headers that this process verified. */
  ownSolidNumber: number;
  /** Height up to which blocks are irreversible, according to the queried node. */
  nodeSolidNumber: number;
  processedNumber: number;
  /** The numbers are `null` as long as they are unknown. */
  catchUp: { blocksPerSecond: number | null; secondsLeft: number | null } | null;
  /** The first irreversible block whose logs too few operators agree on so far. Older releases don't write this field. */
  openBlock?: number | null;
  nodes: readonly NodeStatus[];
  /** The energy price, or `null` if nodes haven't reported it yet. Older releases don't write this field. */
  energyPrice?: EnergyPriceSeen | null;
  /**
   * The number of requests to all nodes per block at the head, averaged over the latest blocks. It's `null` if too few blocks have been
   * followed.
   */
  requestsPerBlock: number | null;
};

/** `sun` is the price in sun per unit, as nodes reported it at that time. */
export type EnergyPriceSeen = { sun: number; at: UnixMs };

type NodeStatus = {
  url: string;
  operator: string;
  state: string;
  reason: string | null;
  /** The remaining time of the pause when the status was written. */
  pausedForMs: number;
  /** Number of consecutive failures. Older releases don't write this field. */
  failures?: number;
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The limit, or `null` if there's none. Older releases don't write this field. */
  requestsPerDay?: number | null;
  answerMs: number | null;
};

/** A watcher writes its status every few seconds. If the status is older than this, the watcher has stopped or is hanging. */
export const STATUS_SILENT_MS = 30_000;

/** The status quotes nodes and other software. */
const printableMember = (_name: string, value: unknown) => (typeof value === 'string' ? printableText(value) : value);

export const saveChainStatus = commandOf(
  'chain-status-upsert',
  `insert into chain_status (network, updated_at, status) values ($1, $2, $3::text::jsonb)
   on conflict (network) do update set updated_at = excluded.updated_at, status = excluded.status`,
  (network: Network, at: UnixMs, status: ChainStatus) => [
    network,
    new Date(at),
    JSON.stringify(status, printableMember),
  ],
);

/**
 * Replaces what a watcher knows before a node has answered it, so that the status isn't taken for that of a hanging watcher. Does nothing if
 * no watcher has ever followed the network.
 */
export const saveNodesStatus = commandOf(
  'chain-status-nodes',
  'update chain_status set updated_at = $2, status = status || $3::text::jsonb where network = $1',
  (network: Network, at: UnixMs, status: Pick<ChainStatus, 'blind' | 'nodes' | 'catchUp'>) => [
    network,
    new Date(at),
    JSON.stringify(status, printableMember),
  ],
);

const columns = { updatedAt: 'timestamptz', status: json<ChainStatus>() } as const;

/** Returns a network's latest status, or `null` if no watcher has ever run. */
export const findChainStatus = rowOf(
  'chain-status-select',
  columns,
  `select ${listColumns(columns)} from chain_status where network = $1`,
  (network: Network) => [network],
);

/** A node's pause, as recorded by another process or by this one before a restart. */
export type RememberedPause = { url: string; failures: number; pausedForMs: number; reason: string | null };

/** An older series of failures says nothing about a node's current state. */
const REMEMBERED_MS = 10 * 60_000;

/**
 * Returns the remaining pauses of nodes, by `url`, from the last watcher's status. A node with consecutive failures is included even if its
 * pause is over. If a node requested a long pause, the process that adopts the pause limits it like a new one. If a watcher stopped before
 * it wrote its first status, its pauses are lost.
 */
export async function findRememberedPauses(db: Sql, network: Network, now: UnixMs): Promise<RememberedPause[]> {
  const found = await findChainStatus(db, network);
  if (found === null) return [];
  // If the clock was set back, pauses must not get longer.
  const ageMs = Math.max(0, now - found.updatedAt);
  return readNodes(found.status)
    .map(({ url, failures = 0, pausedForMs, reason }) => ({
      ...{ url, reason },
      failures: ageMs > REMEMBERED_MS ? 0 : failures,
      pausedForMs: Math.max(0, pausedForMs - ageMs),
    }))
    .filter(({ failures, pausedForMs }) => failures > 0 || pausedForMs > 0);
}

/** Returns a status's complete node entries. The row has no seal, so its contents may be invalid, which must not stop the watcher. */
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
