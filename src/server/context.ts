import { hostname } from 'node:os';
import { accountToAddress } from '@quittance/tron/address';
import { createNodePool } from '../core/chain/nodes/node-pool.ts';
import { SLOT_MS } from '../core/chain/verify/read-block.ts';
import type { Network } from '../core/domain/network.ts';
import { unixMs } from '../core/domain/time.ts';
import { type ClockWatch, createClockWatch } from '../core/payments/clocks.ts';
import {
  createHealthProblems,
  createLiveness,
  createShortageWatch,
  type HealthProblems,
  type ShortageWatch,
} from '../core/payments/health-problems.ts';
import { type AddressGuard, createAddressGuard } from '../core/payments/manifest/address-guard.ts';
import { createSealNotifier } from '../core/payments/row-alarm.ts';
import { type Clock, createSteadyClock, systemClock } from '../core/runtime/clock.ts';
import { createRequestShare } from '../core/runtime/concurrency.ts';
import type { KeyRing } from '../core/runtime/key-ring.ts';
import { type Logger, logLostConnections } from '../core/runtime/log.ts';
import { createLoopHealth } from '../core/runtime/loop.ts';
import { createMetrics } from '../core/runtime/metrics.ts';
import { pooledRandom } from '../core/runtime/random.ts';
import { createTeller } from '../core/store/chain/alarms.ts';
import { type DamagedAddress, describeDamaged } from '../core/store/db/address-column.ts';
import {
  type Admission,
  CONNECT_TIMEOUT_MS,
  type Connection,
  createAdmission,
  type Database,
  openDatabase,
  type Seals,
} from '../core/store/db/database.ts';
import { createSeals } from '../core/store/db/seals.ts';
import type { SandboxControls } from '../faces/api/sandbox.ts';
import type { ConfiguredProcess } from '../faces/operator/doctor/check.ts';
import type { OperationDeps } from '../faces/operator/operation.ts';
import type { Config, NetworkConfig } from './config/config.ts';
import { createReadiness } from './health.ts';

type NeededSetting =
  | ('host' | 'port' | 'publicUrl' | 'databasePoolSize' | 'roles')
  | ('networks' | 'metrics' | 'trustProxy' | 'rateLimit' | 'webhooks');

export type ServiceOptions = {
  config: Partial<Config> & Pick<Config, NeededSetting>;
  connection: Connection;
  /**
   * The connection used to upgrade the schema. Default: `connection`, if its user may upgrade the schema. The service itself doesn't need
   * this right.
   */
  owner?: Connection;
  /** Decrypts secrets in the database. If `null`, receipts aren't signed and the role `webhooks` doesn't start. */
  keyRing: KeyRing | null;
  /**
   * Where the role `console` listens, and the configuration for its use cases. If it's absent or `null`, the console is off. `url` is the
   * origin that operators see, or `null` for the address that the console listens on. `sandboxToken` signs its holder in as the owner.
   */
  console?:
    | (NonNullable<Config['console']> & {
        url: string | null;
        config: OperationDeps['config'] & ConfiguredProcess & Pick<Config, 'settings'>;
        sandboxToken?: string;
      })
    | null;
  /** The sandbox controls. Without them, their routes don't exist. */
  sandbox?: SandboxControls;
  log: Logger;
  clock?: Clock;
  /** Whether to compare the clock with the database's and the chain's. By default, only the system clock is compared. */
  comparesClocks?: boolean;
  /** The block time of the networks, needed if a local one is faster than the real 3,000 ms. */
  blockMs?: number;
  /**
   * How long events wait for the event loop, in milliseconds. By default, the service measures this itself. A service that shares its
   * process passes the process's value.
   */
  lagMs?(): number;
};

export type Context = ReturnType<typeof createContext>;

/** Creates the parts that a process's roles share. Each role uses the ones that it needs. */
export function createContext(options: ServiceOptions, databases: Databases, known: Known) {
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
    ...{ config, connection, sandbox, keyRing, log, clock, metrics, blockMs, now },
    /** The clock that decides when deliveries become due. */
    databaseClock,
    /** The clock for creating and expiring invoices. */
    deadlineClock,
    steadyNow: () => unixMs(steadyClock()),
    /** Returns the earliest time of all clocks known to this process, for deletions and other irreversible steps. */
    certainNow,
    /** This process's loops that are failing. */
    loops,
    liveness: createLiveness({ troubles: known.troubles, loops }),
    /** The watcher and the webhooks report here if they are late, and requests then get a smaller share. */
    requestShare: createRequestShare(),
    ...(lagMs && { lagMs }),
    random: pooledRandom,
    networks: names,
    /** Whether invoices can be created, with details for operators. */
    readiness: createReadiness({
      db: databases.requestDb,
      networks: names,
      now,
      troubles: known.troubles,
      deadlineClock,
    }),
    /** All requests to a network's nodes go through one pool, because it tracks the nodes' budgets and pauses. */
    pools: networks.map(([network, settings]) => {
      const pool = createNodePool({ log, now, metrics, blockMs, network, nodes: settings.nodes });
      return { ...settings, network, pool };
    }),
    /** Returns the URL that payers use. Without the setting, it's the address that the API listens on. */
    publicUrl: () => config.publicUrl ?? url,
    /** Call this with the API's URL as soon as the API is listening. */
    onListening: (actual: string) => {
      url = actual;
    },
  };
}

/**
 * Connection pools: `requestDb` is for callers' requests, and `db` is for everything else. Both may be the same pool. `addressGuard` has
 * checked every address that they return. `admission` decides which servers all pools of this process may use.
 */
type Databases = {
  db: Database;
  requestDb: Database;
  admission: Admission;
  addressGuard: AddressGuard;
  seals: Seals | undefined;
};

/** The watcher and the webhooks get three of ten connections, because they usually run that many statements at a time. */
const RESERVED_SHARE = 0.3;
const LEAST_DIVIDED = 4;

/**
 * Opens the pools. If requests share the process with the watcher or the webhooks, these two get separate connections, so that they never
 * have to queue behind requests. A pool that is too small to be divided is shared.
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
  const { refuse, refuseNew, refuseRule, passesOver } = addressGuard;
  const onDamaged = (damaged: DamagedAddress) =>
    tell('address-damaged', [damaged.network as Network], accountToAddress(damaged.account), describeDamaged(damaged));
  const addressChecks = { onDamaged, refuse, refuseNew, refuseRule, passesOver };
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
      ...(seals && { seals }),
    });
  const { roles, databasePoolSize } = config;
  if (!roles.includes('api') || roles.length === 1 || databasePoolSize < LEAST_DIVIDED) {
    db = open(databasePoolSize);
    return { db, requestDb: db, admission, addressGuard, seals };
  }
  const reserved = Math.max(2, Math.floor(databasePoolSize * RESERVED_SHARE));
  db = open(reserved);
  return { db, requestDb: open(databasePoolSize - reserved), admission, addressGuard, seals };
}

/** Returns each pool once. */
export function poolsOf({ db, requestDb }: Pick<Databases, 'db' | 'requestDb'>): Database[] {
  return [...new Set([db, requestDb])];
}

/** `troubles` holds the process's current troubles. */
type Known = { troubles: HealthProblems; shortage: ShortageWatch; clocks: ClockWatch };

/** Creates the parts that track troubles, before anything that may have troubles starts. */
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
