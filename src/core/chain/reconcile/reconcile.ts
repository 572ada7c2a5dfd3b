import type { AccountHex } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { whileLeading } from '../../payments/watching.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Loop, startLoop } from '../../runtime/loop.ts';
import type { LoopHealth } from '../../runtime/loop-health.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { findDueAddresses } from '../../store/chain/balance-checks.ts';
import type { Database } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { formatSigned, reconcileAddress } from './reconcile-address.ts';

export type ReconcilerDeps = {
  db: Database;
  network: Network;
  pool: NodePool;
  usdt: AccountHex;
  agreement: number;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  loops?: LoopHealth;
  metrics: Metrics;
  /** Whether this process follows the network, because only one process should do these checks. */
  isLeader(): boolean;
  /** The pause between two addresses. Default: 2,000 ms. Tests use a shorter one. */
  pauseMs?: number;
  confirmAfterMs?: number;
  /** How long to wait for the ledger per address. Default: 40,000 ms. */
  patienceMs?: number;
};

/** An address costs four requests, so 5,000 addresses a day cost 20,000. The pause leaves most of the nodes' budgets to other work. */
const PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;
/** Maximum number of due addresses that a round considers to find one that isn't deferred. */
const CANDIDATES = 500;
/** If an address couldn't be checked, it's deferred for this long. */
const PUT_OFF_MS = 60_000;
/** As long as no payer is waiting, the ledger advances only every eighth block. */
const PATIENCE_MS = 40_000;
/** Two blocks: enough time for another back end to answer, and for a stale balance to become current. */
const CONFIRM_AFTER_MS = 6000;

/** Checks due addresses one after another, as long as this process is the leader. Runs until it's stopped. */
export function startReconciler(deps: ReconcilerDeps): Loop {
  const { network, pool, now, log, metrics } = deps;
  const db = whileLeading(deps.db, network, deps.isLeader);
  const { pauseMs = PAUSE_MS, confirmAfterMs = CONFIRM_AFTER_MS, patienceMs = PATIENCE_MS } = deps;
  const putOff = new Map<string, number>();
  const stopping = new AbortController();
  const loop = startLoop({
    name: `books of ${network}`,
    log,
    health: deps.loops,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      if (!deps.isLeader()) return pauseMs;
      for (const [id, untilMs] of putOff) if (untilMs <= performance.now()) putOff.delete(id);
      const due = await findDueAddresses(db, network, now(), CANDIDATES);
      const address = due.find(({ id }) => !putOff.has(id));
      if (address === undefined) return pauseMs;
      // The last node in order of preference is the least likely one to have provided the blocks.
      const node = (await pool.available()).at(-1);
      if (node === undefined) return pauseMs; // The watcher reports that the chain isn't visible.
      putOff.set(address.id, performance.now() + PUT_OFF_MS);
      const wait = { patienceMs, confirmAfterMs, signal: stopping.signal };
      const outcome = await reconcileAddress({ ...deps, ...wait, db, node }, address).catch((error: unknown) => {
        if (isStopping() || !deps.isLeader()) return null;
        throw error;
      });
      if (outcome === null) return 0;
      if (outcome.kind === 'too-early') {
        log.debug(
          { network, address: address.address, reason: outcome.reason },
          'the check of an address is postponed',
        );
        return pauseMs;
      }
      putOff.delete(address.id);
      const labels = { network, address: address.address };
      if (outcome.kind === 'good') {
        // A time series for every address ever checked would be too many, but addresses that differ are rare.
        metrics.balanceDifference.remove(labels);
        return pauseMs;
      }
      const { ledgerMicro, chainMicro, from, to } = outcome;
      metrics.balanceDifference.set(labels, Number(chainMicro - ledgerMicro) / 1_000_000);
      const amounts = { ledger: formatSigned(ledgerMicro), chain: formatSigned(chainMicro) };
      log.error({ ...labels, ...amounts, from, to }, 'the balance of an address differs from the chain');
      return pauseMs;
    },
  });
  return {
    stop: () => {
      const ended = loop.stop();
      stopping.abort();
      return ended;
    },
  };
}
