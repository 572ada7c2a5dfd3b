import { createReadiness, type Readiness } from '../api/health.ts';
import { createNodePool, type NodePool } from '../chain/nodes/node-pool.ts';
import { SLOT_MS } from '../chain/verify/read-block.ts';
import type { NetworkConfig } from '../config/config.ts';
import type { DeadlineClock } from '../domain/clocks.ts';
import type { Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { createLiveness, type Liveness } from '../payments/troubles/watch-liveness.ts';
import type { Clock } from '../runtime/clock.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { createLoopHealth, type LoopHealth } from '../runtime/loop-health.ts';
import { createMetrics, type Metrics } from '../runtime/metrics.ts';
import { pooledRandom } from '../runtime/random.ts';
import { createRequestShare, type RequestShare } from '../runtime/request-share.ts';
import { createSteadyClock } from '../runtime/steady-clock.ts';
import type { Databases } from './open-databases.ts';
import type { Known } from './prepare-troubles.ts';
import type { ServiceOptions } from './service-options.ts';

/** The parts that the roles of one process share. They are made once, and each role takes the ones that it needs. */
export type Context = Databases &
  Known & {
    config: ServiceOptions['config'];
    connection: ServiceOptions['connection'];
    sandbox: ServiceOptions['sandbox'];
    keyRing: KeyRing | null;
    log: Logger;
    clock: Clock;
    /** By which deliveries are due. */
    databaseClock: Clock;
    /** By which invoices are made and expire. */
    deadlineClock: DeadlineClock;
    metrics: Metrics;
    /** Which loops of this process fail. */
    loops: LoopHealth;
    liveness: Liveness;
    /** Watcher and webhooks say here when they come late, and requests make room. */
    requestShare: RequestShare;
    blockMs: number;
    lagMs?(): number;
    now(): UnixMs;
    /** See `createSteadyClock`. */
    steadyNow(): UnixMs;
    /** No later than any clock shows that this process knows: for what deletes, and what ends for good. */
    certainNow(): UnixMs;
    random(bytes: number): Uint8Array;
    networks: Network[];
    /** All requests to the nodes of a network go through one pool, because it holds their budgets and pauses. */
    pools: NetworkPool[];
    /** Whether invoices can be created, and what operators should know of it. */
    readiness(): Promise<Readiness>;
    /** Where payers reach us. Without the setting it is where the API listens. */
    publicUrl(): string;
    /** Says where the API listens, once it does. */
    onListening(url: string): void;
  };

type NetworkPool = NetworkConfig & { network: Network; pool: NodePool };

export function createContext(options: ServiceOptions, databases: Databases, known: Known): Context {
  const { config, connection, sandbox, keyRing, log, blockMs = SLOT_MS, lagMs } = options;
  const { clock, databaseClock, deadlineClock, certainNow } = known.clocks;
  const now = () => unixMs(clock.now());
  const steadyClock = createSteadyClock(clock.now);
  const metrics = createMetrics();
  const loops = createLoopHealth();
  const networks = Object.entries(config.networks) as [Network, NetworkConfig][];
  let url = `http://${config.host}:${config.port}`;
  const names = networks.map(([network]) => network);
  return {
    ...databases,
    ...known,
    ...{
      config,
      connection,
      sandbox,
      keyRing,
      log,
      clock,
      databaseClock,
      deadlineClock,
      metrics,
      blockMs,
      now,
      steadyNow: () => unixMs(steadyClock()),
      certainNow,
      loops,
      liveness: createLiveness({ troubles: known.troubles, loops }),
      requestShare: createRequestShare(),
    },
    ...(lagMs === undefined ? {} : { lagMs }),
    random: pooledRandom,
    networks: names,
    readiness: createReadiness({ db: databases.requestDb, networks: names, now, troubles: known.troubles }),
    pools: networks.map(([network, settings]) => {
      const pool = createNodePool({ log, now, metrics, blockMs, network, nodes: settings.nodes });
      return { ...settings, network, pool };
    }),
    publicUrl: () => config.publicUrl ?? url,
    onListening: (actual) => {
      url = actual;
    },
  };
}
