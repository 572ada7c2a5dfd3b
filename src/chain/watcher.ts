import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { expireInvoices } from '../payments/expire-invoices.ts';
import type { Watching } from '../payments/watching.ts';
import type { Logger } from '../runtime/log.ts';
import { startLoop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { type ChainCursor, findCursor, findEarliestInvoiceTime, insertCursor } from '../store/chain-cursor.ts';
import type { Database } from '../store/database.ts';
import { acquireLease, type Lease, releaseLease, renewLease } from '../store/leases.ts';
import type { AccountHex } from '../tron/address.ts';
import { GENESIS_BLOCK_IDS } from '../tron/genesis.ts';
import { followHead } from './follow-head.ts';
import { followSolid } from './follow-solid.ts';
import type { NodeClient } from './node-client.ts';
import { readHeaderAt, readNewest } from './read-block.ts';
import { findStartingBlock } from './starting-block.ts';

export type WatcherDeps = {
  db: Database;
  network: Network;
  node: NodeClient;
  usdt: AccountHex;
  publicUrl: string;
  /** Names this process in the lease. */
  holder: string;
  /** The network's rhythm: 3,000 ms on real networks. */
  blockMs: number;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
};

/** A crashed watcher's successor starts after this long at most. */
const LEASE_MS = 8000;
const RENEW_MS = 2000;
/** After a refused answer the pause doubles up to this, so that a node which limits us is left alone. */
const MAX_PAUSE_MS = 5000;
/** Where the next block is due but not there yet, ask again after this part of a block time. */
const RETRY_SHARE = 4;
/** A newest examined block that is older than this many block times means that the node, or the network, has stopped. */
const STALE_BLOCKS = 20;
/**
 * One refused answer is everyday life with a public node, and a fork while blocks are read contradicts once. A node that is
 * down, or on another chain, fails again and again.
 */
const BLIND_AFTER_FAILURES = 3;

/** Follows one network with one node while this process holds its lease. Never ends by itself. */
export function startWatcher(deps: WatcherDeps): { stop(): Promise<void> } {
  const log = deps.log.child({ network: deps.network });
  const state: { lease: Lease | null; isGenesisChecked: boolean; isBlind: boolean; failures: number } = {
    lease: null,
    isGenesisChecked: false,
    isBlind: false,
    failures: 0,
  };
  const setBlind = (isBlind: boolean, reason?: string) => {
    deps.metrics.chainBlind.set({ network: deps.network }, isBlind ? 1 : 0);
    if (isBlind && !state.isBlind) {
      log.error(
        { node: deps.node.url, reason },
        'blind: no node shows the chain; invoices are created, nothing is confirmed or expired',
      );
    }
    if (!isBlind && state.isBlind) log.info({ node: deps.node.url }, 'the chain is visible again');
    state.isBlind = isBlind;
  };
  const renewal = startLoop({
    name: `lease of ${deps.network}`,
    log,
    maxPauseMs: RENEW_MS,
    run: async () => {
      if (state.lease === null)
        state.lease = await acquireLease(deps.db, `watcher:${deps.network}`, deps.holder, LEASE_MS);
      else if (!(await renewLease(deps.db, state.lease, LEASE_MS))) state.lease = null;
      return RENEW_MS / (state.lease === null ? 2 : 1);
    },
  });
  const following = startLoop({
    name: `watcher of ${deps.network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      const { lease } = state;
      if (lease === null) return Math.min(deps.blockMs, 200);
      try {
        if (!state.isGenesisChecked) await checkGenesis(deps);
        state.isGenesisChecked = true;
        const { pauseMs, examinedAgeMs } = await step(deps, lease, isStopping);
        state.failures = 0;
        const isStale = examinedAgeMs > STALE_BLOCKS * deps.blockMs;
        setBlind(isStale, `the newest block that it shows us to examine is ${Math.round(examinedAgeMs / 1000)} s old`);
        return pauseMs;
      } catch (error) {
        const code = error instanceof AppError ? error.code : 'INTERNAL';
        // Stopping destroys the request under way, which says nothing about the node.
        if (code === 'NODE_REFUSED' && isStopping()) return 0;
        deps.metrics.watcherFailures.inc({ network: deps.network, code });
        if (code === 'LEASE_LOST') state.lease = null;
        const isAboutNode = code.startsWith('NODE_') || code === 'CHAIN_CONTRADICTION';
        state.failures = isAboutNode ? state.failures + 1 : 0;
        if (state.failures >= BLIND_AFTER_FAILURES && error instanceof Error) setBlind(true, error.message);
        throw error;
      }
    },
  });
  return {
    stop: async () => {
      const ended = following.stop();
      // Ends the request under way, so that stopping does not wait for a node that hangs.
      await deps.node.close();
      await ended;
      await renewal.stop();
      if (state.lease !== null) await releaseLease(deps.db, state.lease).catch(() => undefined);
    },
  };
}

/** One look at the node: the solid chain first, then the head, then the deadlines. Returns the pause until the next. */
async function step(deps: WatcherDeps, lease: Lease, isStopping: () => boolean) {
  const { db, network, node, metrics } = deps;
  const watching: Watching = { ...deps, lease };
  const head = await readNewest(node, 'wallet');
  const solid = await readNewest(node, 'walletsolidity');
  const readAt = deps.now();
  const cursor = await findOrStartCursor(deps);
  metrics.chainHeadNumber.set({ network }, head.number);
  metrics.chainSolidNumber.set({ network }, solid.number);
  metrics.chainProcessedNumber.set({ network }, cursor.solid.number);
  metrics.chainLagBlocks.set({ network }, Math.max(0, solid.number - cursor.solid.number));

  await followSolid({ ...deps, watching, isStopping }, cursor.solid.number, solid.number);
  while (!isStopping() && (await followHead({ ...deps, watching }, head.number)));
  while (!isStopping() && (await expireInvoices(watching)).isMoreLeft);

  const after = await findCursor(db, network);
  const isBehind = after !== null && after.solid.number < solid.number;
  // The examined block and not the node's: a node whose chain is shorter than what we examined shows us nothing, however
  // fresh it is. Measured from when it was asked, for catching up can take long.
  const examinedAgeMs = readAt - (after ?? cursor).head.time;
  return { pauseMs: isBehind ? 0 : nextPauseMs(deps, head.time), examinedAgeMs };
}

/** Until the next block is due by the network's rhythm; a short retry if it is due already. */
function nextPauseMs({ blockMs, now }: WatcherDeps, headTime: UnixMs): number {
  const untilDueMs = headTime + blockMs - now();
  return Math.min(blockMs, Math.max(untilDueMs, Math.ceil(blockMs / RETRY_SHARE)));
}

async function findOrStartCursor({ db, network, node, log }: WatcherDeps): Promise<ChainCursor> {
  const cursor = await findCursor(db, network);
  if (cursor !== null) return cursor;
  const start = await findStartingBlock(node, await findEarliestInvoiceTime(db, network));
  await insertCursor(db, network, start);
  log.info({ network, block: start.number }, 'following the network from its solid block');
  const inserted = await findCursor(db, network);
  if (inserted === null) throw new Error(`the cursor of ${network} was not stored`);
  return inserted;
}

/** Refuses a node of another network, which would show none of our payments or, worse, worthless ones. */
async function checkGenesis({ network, node }: WatcherDeps): Promise<void> {
  if (network === 'devnet') return;
  const genesis = await readHeaderAt(node, 'wallet', 0);
  if (genesis.id === GENESIS_BLOCK_IDS[network]) return;
  throw new AppError(
    'NODE_WRONG_NETWORK',
    `${node.url} is a node of another network than ${network}: its genesis block is ${genesis.id}, expected ${GENESIS_BLOCK_IDS[network]}; correct QUITTANCE_${network.toUpperCase()}_NODES`,
  );
}
