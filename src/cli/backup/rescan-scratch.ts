import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { createLogger } from '../../runtime/log.ts';
import { startService } from '../../service.ts';
import { findCursor } from '../../store/chain-cursor.ts';
import { findLedgerRange, findOurAddresses, type LedgerTransfer } from '../../store/chain-ledger.ts';
import { findChainStatus } from '../../store/chain-status.ts';
import type { Connection, Database } from '../../store/database.ts';
import { parseAddress } from '../../tron/address.ts';
import { findNetworkConfig } from '../select-network.ts';
import type { Terminal } from '../terminal.ts';

/** What reading the chain since a backup showed. */
export type Rescanned =
  | { kind: 'not-read'; network: string; reason: string }
  | {
      kind: 'read';
      network: string;
      /** The first and last block that were compared. */
      from: number;
      to: number;
      /** `null`: there is no running ledger to compare with. */
      compared: null | {
        /** Transfers that both have. */
        confirmed: number;
        /** Of the running ledger, to or from addresses that were added since the backup. */
        ofNewAddresses: number;
        differences: {
          kind: 'not-on-chain' | 'missing-in-ledger';
          txId: string;
          logIndex: number;
          blockNumber: number;
        }[];
      };
    };

const POLL_MS = 100;
const NOTE_MS = 5000;
/** Nodes that limit us are well again by then; one more refusal than that is no reading. */
const STALL_MS = 60_000;
const MAX_DIFFERENCES = 100;
/** The ledger is asked for the transfers of so many blocks at once. */
const COMPARED_BLOCKS = 1000;

/**
 * Lets the watcher of the service read the chain on from where the backup stands, in the scratch database, and compares what it
 * records with what the running ledger has of the same blocks. Nothing is sent to anybody.
 */
export async function rescanScratch(
  { config, scratch, running, terminal }: ScratchDeps,
  network: Network,
): Promise<Rescanned> {
  const { db } = scratch;
  const before = await findCursor(db, network);
  if (before === null) return { kind: 'not-read', network, reason: 'the backup has no block of it' };
  const isConfigured = config.sandbox ? network === 'devnet' : config.networks[network] !== undefined;
  if (!isConfigured) return { kind: 'not-read', network, reason: 'no node of it is configured here' };
  const found = await findNetworkConfig(config, network).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return error.message;
    throw error;
  });
  if (typeof found === 'string') return { kind: 'not-read', network, reason: found };
  const service = await startService({
    config: {
      ...config,
      roles: ['watcher'],
      metrics: null,
      networks: { [network]: found },
      publicUrl: found.publicUrl,
    },
    connection: scratch.connection,
    keyRing: null,
    log: createLogger({ level: 'silent' }),
    ...(network === 'devnet' ? { blockMs: config.devnet.blockMs } : {}),
  });
  try {
    const end = running === null ? null : (await findCursor(running, network))?.solid.number;
    const reached = await untilRead(db, network, end ?? null, terminal);
    if (reached.kind === 'stalled') return { kind: 'not-read', network, reason: reached.reason };
    const range = { from: before.solid.number + 1, to: end ?? reached.block };
    const compared = running === null ? null : await compareRange(db, running, network, range);
    return { kind: 'read', network, ...range, compared };
  } finally {
    await service.stop();
  }
}

export type ScratchDeps = {
  config: Config;
  scratch: { db: Database; connection: Connection };
  running: Database | null;
  terminal: Terminal;
};

/** Without `end` up to what the nodes call irreversible. */
async function untilRead(
  db: Database,
  network: Network,
  end: number | null,
  terminal: Terminal,
): Promise<{ kind: 'read'; block: number } | { kind: 'stalled'; reason: string }> {
  let newest = -1;
  let [movedMs, notedMs] = [performance.now(), performance.now()];
  for (;;) {
    const block = (await findCursor(db, network))?.solid.number ?? 0;
    const status = (await findChainStatus(db, network))?.status;
    const target = end ?? status?.nodeSolidNumber ?? Number.POSITIVE_INFINITY;
    if (block >= target) return { kind: 'read', block };
    const nowMs = performance.now();
    if (block > newest) [newest, movedMs] = [block, nowMs];
    if (nowMs - movedMs > STALL_MS) {
      return { kind: 'stalled', reason: status?.blind ?? `nothing was read after block ${block} for a minute` };
    }
    if (nowMs - notedMs > NOTE_MS) {
      notedMs = nowMs;
      terminal.note(`${network}: read up to block ${block} of ${target === Number.POSITIVE_INFINITY ? '?' : target}`);
    }
    await delay(POLL_MS);
  }
}

async function compareRange(
  scratch: Database,
  running: Database,
  network: Network,
  { from, to }: { from: number; to: number },
): Promise<NonNullable<Extract<Rescanned, { kind: 'read' }>['compared']>> {
  const result: NonNullable<Extract<Rescanned, { kind: 'read' }>['compared']> = {
    confirmed: 0,
    ofNewAddresses: 0,
    differences: [],
  };
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
