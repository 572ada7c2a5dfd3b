import { USDT } from '@quittance/devnet/evm/keys';
import { startWatcher } from '../../../src/core/chain/follow/watcher.ts';
import { createNodePool } from '../../../src/core/chain/nodes/node-pool.ts';
import { startReconciler } from '../../../src/core/chain/reconcile.ts';
import { createKnownTerms } from '../../../src/core/chain/verify/fee-terms.ts';
import { unixMs } from '../../../src/core/domain/time.ts';
import { startEmitting } from '../../../src/core/payments/emit-unmatched-events.ts';
import { createHeldBack } from '../../../src/core/payments/expire-invoices.ts';
import { startCapacityWatch } from '../../../src/core/payments/measure-capacity.ts';
import { startSettling } from '../../../src/core/payments/settle-set-aside.ts';
import type { KeyRing } from '../../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../../src/core/runtime/log.ts';
import { createMetrics } from '../../../src/core/runtime/metrics.ts';
import type { Database } from '../../../src/core/store/db/database.ts';
import { startDispatcher } from '../../../src/core/webhooks/dispatcher.ts';
import { startRetention } from '../../../src/core/webhooks/retention.ts';
import type { Random } from '../engine/random.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import type { Role, Shape } from './plan.ts';
import type { Receivers } from './receivers.ts';
import type { SimulatedNodes } from './simulated-nodes.ts';

export const NETWORK = 'devnet';

/** A process of the service with its dependencies. */
export type Running = { process: SimulatedProcess; roles: readonly Role[]; db: Database; isLeader(): boolean };

type RolesOptions = {
  process: SimulatedProcess;
  roles: readonly Role[];
  db: Database;
  shape: Shape;
  nodes: SimulatedNodes;
  receivers: Receivers;
  keyRing: KeyRing;
  random: Random;
  takeLine(line: string): void;
};

/** Dispatchers are notified of new events immediately. This limits how late a retry is noticed, and the cost of an idle hour. */
const POLL_MS = 15_000;
/** The same ratio as the service's constants to the main network's slots of 3,000 ms, because slower worlds are cheaper. */
const LEASE_SLOTS = 8 / 3;
const MAX_LEASE_MS = 80_000;
const RECONCILING = { pauseMs: 60_000, patienceMs: 1000 };

/** Starts the roles of a process as `service.ts` wires them, except for the HTTP server. */
export function startRoles(options: RolesOptions): Running {
  const { process, roles, db, shape, nodes, receivers, keyRing, random } = options;
  const clock = { now: process.nowMs };
  const now = () => unixMs(process.nowMs());
  const log = createLogger({ level: 'info', destination: { write: options.takeLine } });
  const metrics = createMetrics();
  let isLeader = () => false;
  process.run(() => {
    if (roles.includes('watcher')) {
      const pool = createNodePool({
        ...{ network: NETWORK, nodes: nodes.specs, now, log, metrics, blockMs: shape.slotMs, random: random.next },
        createClient: nodes.clientsOf(process),
      });
      const { agreement } = shape;
      const shared = {
        db,
        network: NETWORK,
        pool,
        usdt: USDT,
        agreement,
        now,
        log,
        metrics,
        random: random.bytes,
      } as const;
      const held = createHeldBack();
      const watcher = startWatcher({
        ...shared,
        held,
        slotMs: null,
        fees: createKnownTerms(process.nowMs),
        blockMs: shape.slotMs,
        publicUrl: 'http://pay.test',
        holder: process.name,
        leaseMs: Math.min(MAX_LEASE_MS, LEASE_SLOTS * shape.slotMs),
      });
      isLeader = watcher.isLeader;
      startEmitting({ ...shared, isLeader });
      startSettling({ ...shared, isLeader, held, publicUrl: 'http://pay.test' });
      startReconciler({ ...shared, isLeader, ...RECONCILING });
      startCapacityWatch({ ...shared, isLeader });
    }
    if (roles.includes('webhooks')) {
      const sender = receivers.senderOf(process);
      startDispatcher({
        db,
        clock,
        log,
        metrics,
        random: random.next,
        keyRing,
        localTargets: true,
        pollMs: POLL_MS,
        sender,
      });
      startRetention({ db, clock, log, days: 90 });
    }
  });
  return { process, roles, db, isLeader: () => process.isAlive && isLeader() };
}
