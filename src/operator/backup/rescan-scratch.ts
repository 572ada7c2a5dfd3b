import { setTimeout as delay } from 'node:timers/promises';
import type { Network } from '../../domain/network.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import { findChainStatus } from '../../store/chain/status.ts';
import type { Connection, Database } from '../../store/db/database.ts';
import { parseAddress } from '../../tron/address.ts';
import { findLedgerRange, findOurAddresses, type LedgerTransfer, type Range } from '../subjects/chain-blocks.ts';
import type { ComparedBlocks, Rescanned } from './views.ts';

const POLL_MS = 100;
const NOTE_MS = 5000;
/** Nodes that limit our requests answer again within this time; if they do not, the chain counts as not read. */
const STALL_MS = 60_000;
const MAX_DIFFERENCES = 100;
/** The ledger is asked for the transfers of so many blocks at once. */
const COMPARED_BLOCKS = 1000;

/** The functions that read the chain and hear of the progress. */
export type FollowDeps = {
  /** Starts the watcher of a network over a database, or says why it cannot. It sends nothing to anybody. */
  follow(network: Network, connection: Connection): Promise<string | { stop(): Promise<unknown> }>;
  /** Hears now and then the last block that was read, and the end; `null`: not known yet. */
  onRead(network: Network, block: number, end: number | null): void;
};

/**
 * Lets the watcher of the service read the chain on from where the backup stands, in the scratch database, and compares what it
 * records with what the running ledger has of the same blocks.
 */
export async function rescanScratch(
  { follow, onRead }: FollowDeps,
  { scratch, running, network }: Rescan,
): Promise<Rescanned> {
  const { db, connection } = scratch;
  const notRead = (reason: string) => ({ kind: 'not-read', network, reason }) as const;
  const before = await findCursor(db, network);
  if (before === null) return notRead('the backup has no block of it');
  const watcher = await follow(network, connection);
  if (typeof watcher === 'string') return notRead(watcher);
  try {
    const end = (running && (await findCursor(running, network)))?.solid.number ?? null;
    const reached = await untilRead(db, network, end, onRead);
    if (typeof reached === 'string') return notRead(reached);
    const range = { from: before.solid.number + 1, to: end ?? reached };
    const compared = running === null ? null : await compareRange(db, running, network, range);
    return { kind: 'read', network, ...range, compared };
  } finally {
    await watcher.stop();
  }
}

export type Rescan = { scratch: { db: Database; connection: Connection }; running: Database | null; network: Network };

/** Without `end` up to what the nodes call irreversible. Returns the last block, or why it got no further. */
async function untilRead(
  db: Database,
  network: Network,
  end: number | null,
  onRead: FollowDeps['onRead'],
): Promise<number | string> {
  let newest = -1;
  let [movedMs, notedMs] = [performance.now(), performance.now()];
  for (;;) {
    const block = (await findCursor(db, network))?.solid.number ?? 0;
    const status = (await findChainStatus(db, network))?.status;
    const target = end ?? status?.nodeSolidNumber ?? null;
    if (target !== null && block >= target) return block;
    const nowMs = performance.now();
    if (block > newest) [newest, movedMs] = [block, nowMs];
    if (nowMs - movedMs > STALL_MS) return status?.blind ?? `nothing was read after block ${block} for a minute`;
    if (nowMs - notedMs > NOTE_MS) {
      notedMs = nowMs;
      onRead(network, block, target);
    }
    await delay(POLL_MS);
  }
}

async function compareRange(
  scratch: Database,
  running: Database,
  network: Network,
  { from, to }: Range,
): Promise<ComparedBlocks> {
  const result: ComparedBlocks = { confirmed: 0, ofNewAddresses: 0, differences: [] };
  const differ = (kind: 'not-on-chain' | 'missing-in-ledger', { txId, logIndex, blockNumber }: LedgerTransfer) => {
    if (result.differences.length < MAX_DIFFERENCES) result.differences.push({ kind, txId, logIndex, blockNumber });
  };
  for (let first = from; first <= to; first += COMPARED_BLOCKS) {
    const last = Math.min(to, first + COMPARED_BLOCKS - 1);
    const read = new Map((await findLedgerRange(scratch, network, first, last)).map((each) => [keyOf(each), each]));
    const recorded = await findLedgerRange(running, network, first, last);
    const known = await findKnown(scratch, network, recorded);
    for (const transfer of recorded) {
      if (read.delete(keyOf(transfer))) result.confirmed += 1;
      else if (known.has(transfer.address)) differ('not-on-chain', transfer);
      else result.ofNewAddresses += 1;
    }
    for (const transfer of read.values()) differ('missing-in-ledger', transfer);
  }
  return result;
}

function keyOf({ side, txId, logIndex, blockId, amountMicro }: LedgerTransfer): string {
  return [side, txId, logIndex, blockId, amountMicro].join(' ');
}

/** Those of the addresses that the backup has. */
async function findKnown(db: Database, network: Network, transfers: readonly LedgerTransfer[]): Promise<Set<string>> {
  const accounts = transfers.flatMap(({ address }) => {
    const parsed = parseAddress(address);
    return parsed.kind === 'ok' ? [parsed.account] : [];
  });
  const found = await findOurAddresses(db, network, [...new Set(accounts)]);
  return new Set([...found.values()].map(({ address }) => address));
}
