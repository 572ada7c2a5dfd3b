import type { Network } from '../../domain/network.ts';
import { nodeOrigin } from '../../domain/node.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { parseUrl } from '../../domain/url.ts';
import { findOpenAlarms } from '../../store/chain/alarms.ts';
import { findCursor, findHalt } from '../../store/chain/cursor.ts';
import { isLeaseHeld, watcherLease } from '../../store/chain/leases.ts';
import { findChainStatus, STATUS_SILENT_MS } from '../../store/chain/status.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import type { ChainStatusView } from './views.ts';
import { blocksBehind, whyBehind } from './why-behind.ts';

/** When the watcher last wrote, and whether one runs: who stops gives the lease back at once, who is killed leaves it for seconds and writes no more. */
/** `ageMs`: since it last wrote its position. `isRunning`: it holds the network and writes, if it has anything to write yet. */
export type WatcherState = { ageMs: number | null; isRunning: boolean };

/** Where the service stands with a network, how its nodes are, and what an operator must know. */
export async function showStatus(
  { db, now }: { db: Sql; now(): UnixMs },
  _actor: Actor,
  { network }: { network: Network },
): Promise<{ view: ChainStatusView; state: WatcherState }> {
  const cursor = await findCursor(db, network);
  const found = await findChainStatus(db, network);
  const halt = await findHalt(db, network);
  const alarms = await findOpenAlarms(db, network);
  const isLed = await isLeaseHeld(db, watcherLease(network));
  const ageMs = found === null ? null : now() - found.updatedAt;
  const status = found?.status ?? null;
  const view = {
    network,
    behind: { blocks: status && blocksBehind(status), why: whyBehind({ status, ageMs, isLed, halt, alarms }) },
    recorded: cursor && { ...cursor.solid, time: toIso(cursor.solid.time) },
    examined: cursor && { ...cursor.head, time: toIso(cursor.head.time) },
    halt: halt && { at: toIso(halt.at), reason: halt.reason },
    updatedAt: found && toIso(found.updatedAt),
    // The path of a node's URL may be a provider's secret.
    watcher: status && {
      ...status,
      nodes: status.nodes.map((node) => ({ ...node, url: parseUrl(node.url) === null ? '' : nodeOrigin(node.url) })),
    },
    alarms: alarms.map(({ id: _, ...alarm }) => {
      return { ...alarm, raisedAt: toIso(alarm.raisedAt), seenAt: toIso(alarm.seenAt) };
    }),
  };
  return { view, state: { ageMs, isRunning: isLed && (ageMs === null || ageMs <= STATUS_SILENT_MS) } };
}
