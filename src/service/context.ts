import { hostname } from 'node:os';
import { createReadiness, type Readiness } from '../api/health.ts';
import type { SandboxControls } from '../api/sandbox.ts';
import { createNodePool, type NodePool } from '../chain/nodes/node-pool.ts';
import { SLOT_MS } from '../chain/verify/read-block.ts';
import type { Config, NetworkConfig } from '../config/config.ts';
import type { DeadlineClock } from '../domain/clocks.ts';
import type { Network } from '../domain/network.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import type { ConfiguredProcess } from '../operator/doctor/check.ts';
import type { OperationDeps } from '../operator/operation.ts';
import { type ClockWatch, createClockWatch } from '../payments/clocks.ts';
import {
  createHealthProblems,
  createLiveness,
  createShortageWatch,
  type HealthProblems,
  type Liveness,
  type ShortageWatch,
} from '../payments/health-problems.ts';
import { type AddressGuard, createAddressGuard } from '../payments/manifest/address-guard.ts';
import { createSealNotifier } from '../payments/row-alarm.ts';
import { type Clock, systemClock } from '../runtime/clock.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { logLostConnections } from '../runtime/log-lost-connections.ts';
import { createLoopHealth, type LoopHealth } from '../runtime/loop-health.ts';
import { createMetrics, type Metrics } from '../runtime/metrics.ts';
import { pooledRandom } from '../runtime/random.ts';
import { createRequestShare, type RequestShare } from '../runtime/request-share.ts';
import { createSteadyClock } from '../runtime/steady-clock.ts';
import { createTeller } from '../store/chain/tell-alarms.ts';
import { type DamagedAddress, describeDamaged } from '../store/db/address-column.ts';
import { CONNECT_TIMEOUT_MS, type Connection, type Database, openDatabase, type Seals } from '../store/db/database.ts';
import { createSeals } from '../store/db/seals.ts';
import { createAdmission } from '../store/db/server-admission.ts';
import { accountToAddress } from '../tron/address.ts';

/** The options that start one process of the service. */
export type ServiceOptions = {
  config: Pick<
    Config,
    | 'host'
    | 'port'
    | 'publicUrl'
    | 'databasePoolSize'
    | 'roles'
    | 'networks'
    | 'metrics'
    | 'trustProxy'
    | 'rateLimit'
    | 'webhooks'
  > &
    Partial<
      Pick<
        Config,
        | 'consoleUrl'
        | 'lookupsPerMinute'
        | 'requestLog'
        | 'requestLines'
        | 'rowMacs'
        | 'addressManifest'
        | 'dataDir'
        | 'backups'
      >
    >;
  connection: Connection;
  /** Brings the schema up to this release. Without it `connection` does, if it may; the service itself needs no such right. */
  owner?: Connection;
  /** Opens what is sealed in the database. With `null` receipts are not signed, and the role `webhooks` does not start. */
  keyRing: KeyRing | null;
  /** Where the role `console` listens, and what its use cases know of the configuration; absent or `null`: it does not.
   * `url` is the origin that operators see, `null` where it listens.
   * `sandboxToken`: whoever has it is the owner. */
  console?:
    | (NonNullable<Config['console']> & {
        url: string | null;
        config: OperationDeps['config'] & ConfiguredProcess & Pick<Config, 'settings'>;
        sandboxToken?: string;
      })
    | null;
  /** What only a sandbox can do; else its routes are not there. */
  sandbox?: SandboxControls;
  log: Logger;
  clock?: Clock;
  /** Whether the clock is held against those of the database and the chain; by default that of the system is, and a given one is not. */
  comparesClocks?: boolean;
  /** The block time of the networks, for a local one that is faster than the real 3,000 ms. */
  blockMs?: number;
  /** How long new events wait for the event loop, in milliseconds; measured by default. For a service that shares its process. */
  lagMs?(): number;
};

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

/**
 * Pools of connections: `requestDb` for the requests of callers, `db` for everything else. Both may be the same one. What they read of
 * addresses, `addressGuard` has looked at.
 */
type Databases = { db: Database; requestDb: Database; addressGuard: AddressGuard; seals: Seals | undefined };

/** Three of ten connections: as a rule the watcher and the webhooks have that many statements under way at a time. */
const RESERVED_SHARE = 0.3;
const LEAST_DIVIDED = 4;

/**
 * Where requests share the process with the watcher or the webhooks, those have connections of their own, so that they never stand in a
 * line behind requests. Pools that are too small for that are shared.
 */
export function openDatabases(options: ServiceOptions, onShortage: (what: string) => void): Databases {
  const { config, connection, keyRing, log, clock = systemClock } = options;
  const admission = createAdmission(CONNECT_TIMEOUT_MS);
  let db: Database;
  const toldBy = { db: () => db, log, now: () => unixMs(clock.now()) };
  const tell = createTeller(toldBy);
  const addressGuard = createAddressGuard(config.addressManifest ?? null, ({ network, subject }, why) =>
    tell('address-not-vouched', [network as Network], subject, why),
  );
  const { refuse, refuseRule, passesOver } = addressGuard;
  const onDamaged = (damaged: DamagedAddress) =>
    tell('address-damaged', [damaged.network as Network], accountToAddress(damaged.account), describeDamaged(damaged));
  const addressChecks = { onDamaged, refuse, refuseRule, passesOver };
  const { rowMacs = 'off', networks } = config;
  const onProblem = createSealNotifier({ ...toldBy, networks: Object.keys(networks) as Network[] });
  const seals = rowMacs === 'off' ? undefined : createSeals({ mode: rowMacs, onProblem }, async () => keyRing);
  const onError = logLostConnections(log);
  const open = (poolSize: number) =>
    openDatabase({
      connection,
      admission,
      poolSize,
      applicationName: 'quittance',
      onError,
      addressChecks,
      onShortage,
      ...(seals === undefined ? {} : { seals }),
    });
  const { roles, databasePoolSize } = config;
  if (!roles.includes('api') || roles.length === 1 || databasePoolSize < LEAST_DIVIDED) {
    db = open(databasePoolSize);
    return { db, requestDb: db, addressGuard, seals };
  }
  const reserved = Math.max(2, Math.floor(databasePoolSize * RESERVED_SHARE));
  db = open(reserved);
  return { db, requestDb: open(databasePoolSize - reserved), addressGuard, seals };
}

/** Each pool once. */
export function poolsOf({ db, requestDb }: Pick<Databases, 'db' | 'requestDb'>): Database[] {
  return [...new Set([db, requestDb])];
}

/** `troubles`: what this process knows to be wrong now. */
type Known = { troubles: HealthProblems; shortage: ShortageWatch; clocks: ClockWatch };

/** What hears of troubles before anything is started that may meet them. */
export function prepareTroubles({ config, log, clock, comparesClocks = clock === undefined }: ServiceOptions): Known {
  const troubles = createHealthProblems({ log });
  const own = clock ?? systemClock;
  const given = { now: () => unixMs(own.now()), problem: () => null };
  const networks = Object.keys(config.networks) as Network[];
  const clocks = comparesClocks
    ? createClockWatch({ clock: own, troubles, networks, host: hostname() })
    : { clock: own, databaseClock: own, deadlineClock: given, certainNow: given.now, look: async () => undefined };
  return { troubles, shortage: createShortageWatch({ troubles, now: own.now }), clocks };
}
