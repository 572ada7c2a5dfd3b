import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { type ChainCursor, findCursor, findHalt } from '../../store/chain/cursor.ts';
import { findChainStatus } from '../../store/chain/status.ts';
import type { Sql } from '../../store/db/database.ts';

/** Up to where the ledger of a network knows the chain, and what keeps it from going on. */
export type Stand = { network: Network; cursor: ChainCursor | null; trouble: string | null };

/** A chain that goes on has a block every 3 s; nodes and the watcher may take a moment. */
const LAG_MS = 120_000;

export async function readStand(db: Sql, network: Network, now: UnixMs): Promise<Stand> {
  const cursor = await findCursor(db, network);
  const halt = await findHalt(db, network);
  const status = await findChainStatus(db, network);
  return { network, cursor, trouble: describeTrouble() };

  function describeTrouble(): string | null {
    if (halt !== null) return `the watcher of ${network} is halted since ${toIso(halt.at)}: ${halt.reason}`;
    if (cursor === null) return `the watcher has not seen ${network} yet`;
    const { number, time } = cursor.head;
    const seen = `${network} was examined up to block ${number} of ${toIso(time)} only, and what came later is not known yet`;
    if (now - time <= LAG_MS) return null;
    const isBlind = status !== null && status.status.blind !== null;
    return isBlind ? `${seen}: ${status.status.blind}` : seen;
  }
}

/** For a field: `recorded up to block 1030 of …, examined up to block 1048 of …`. */
export function describeStand({ network, cursor }: Stand): string {
  if (cursor === null) return `${network} was never examined`;
  const { solid, head } = cursor;
  return `${network}: recorded up to block ${solid.number} of ${toIso(solid.time)}, examined up to block ${head.number} of ${toIso(head.time)}`;
}

/** For machines; the numbers are `null` while the network was never examined. */
export function ledgerOf({ network, cursor }: Stand): {
  network: Network;
  recordedBlock: number | null;
  examinedBlock: number | null;
} {
  return { network, recordedBlock: cursor?.solid.number ?? null, examinedBlock: cursor?.head.number ?? null };
}
