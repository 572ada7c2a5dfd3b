import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { configInvalid } from '../core/domain/errors.ts';
import { keyMode } from '../core/domain/network.ts';
import { unixMs } from '../core/domain/time.ts';
import { createUnwatchedLook, startHealthWatch } from '../core/payments/health-problems.ts';
import { watchManifest } from '../core/payments/manifest/watch-manifest.ts';
import { notePromotion } from '../core/payments/watch-guarantees.ts';
import { systemClock } from '../core/runtime/clock.ts';
import { type Logger, logLostConnections } from '../core/runtime/log.ts';
import { type Loop, startLoop } from '../core/runtime/loop.ts';
import { pooledRandom } from '../core/runtime/random.ts';
import { type AuditHead, findAuditHead } from '../core/store/access/audit-log.ts';
import { type Connection, type Database, openDatabase } from '../core/store/db/database.ts';
import { claimLedger, requiresSeals } from '../core/store/db/ledger-identity.ts';
import { type MigrationHooks, migrate } from '../core/store/db/migrate.ts';
import { encryptPlainSecrets } from '../core/webhooks/watch-endpoints.ts';
import { startMetricsServer } from '../faces/web/metrics-server.ts';
import type { Config } from './config/config.ts';
import {
  type Context,
  createContext,
  openDatabases,
  poolsOf,
  prepareTroubles,
  type ServiceOptions,
} from './context.ts';
import { retryUntilReady } from './retry-until-ready.ts';

export type Service = {
  /** The API's URL, or `null` without the role `api`. */
  url: string | null;
  metricsUrl: string | null;
  db: Database;
  /**
   * Starts the role `console`. The console loads every use case, so the rest of the service doesn't wait for it. Returns its URL, or `null`
   * if the console is off.
   */
  startConsole(): Promise<string | null>;
  stop(): Promise<void>;
};

/** Loads the code of these roles in advance so that nothing has to wait for it when the database is available. */
export async function loadRoles(roles: Config['roles']): Promise<void> {
  await Promise.all([
    roles.includes('api') && import('./start-api.ts'),
    roles.includes('watcher') && import('./start-watchers.ts'),
    roles.includes('webhooks') && import('./start-webhooks.ts'),
  ]);
}

/** Starts a process's roles on one database. `stop` stops them in reverse order, within seconds. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const known = prepareTroubles(options);
  const databases = openDatabases(options, known.shortage.onShortage);
  const { db } = databases;
  const started: { stop(): Promise<unknown> }[] = [];
  // Parts that query the database only from time to time may be waiting for a database that doesn't respond, so they are stopped in
  // parallel with the others.
  const beside: { stop(): Promise<unknown> }[] = [];
  let isStopped = false;
  const stop = async () => {
    isStopped = true;
    const besideEnded = Promise.all(beside.splice(0).map((part) => part.stop()));
    for (const part of started.splice(0).reverse()) await part.stop();
    await besideEnded;
    await Promise.all(poolsOf(databases).map((pool) => pool.close()));
  };
  try {
    // Check the key first. If the key belongs to another ledger, Quittance must not write anything or report any row as changed.
    await retryUntilReady(log, () => db.sealer(false));
    await prepareSchema(options, db);
    const isSealed = options.keyRing !== null && (config.rowMacs === 'ledger' || config.rowMacs === 'require');
    const ledgerId = await retryUntilReady(log, () => claimLedger(db, { isSealed }));
    await keepRequirement(config, ledgerId, log);
    await retryUntilReady(log, () => notePromotion({ db, log }));
    const context = createContext(options, databases, known);
    beside.push(await startTroubles(context));
    const manifest = await startManifest(context);
    if (manifest !== null) started.push(manifest);
    beside.push(startAuditHead(context));
    const metricsServer = await startMetrics(context);
    if (metricsServer !== null) started.push(metricsServer);
    const api = config.roles.includes('api') ? await (await import('./start-api.ts')).startApi(context) : null;
    if (api !== null) started.push(api);
    // The pools are closed before the API is stopped. Otherwise the API's look-ups would wait for a node that hangs.
    started.push({ stop: () => Promise.all(context.pools.map(({ pool }) => pool.close())) });
    if (config.roles.includes('watcher')) {
      const { startWatchers } = await import('./start-watchers.ts');
      started.push(...(await startWatchers(context)));
    }
    if (config.roles.includes('webhooks')) {
      const { startWebhooks } = await import('./start-webhooks.ts');
      started.push(await startWebhooks(context));
    }
    return {
      url: api?.url ?? null,
      metricsUrl: metricsServer?.url ?? null,
      db,
      startConsole: async () => {
        const operators = await startOperators(context, options);
        if (isStopped) await operators?.stop();
        else if (operators !== null) started.push(operators);
        return operators?.url ?? null;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startOperators(context: Context, options: ServiceOptions) {
  if (options.console == null || !options.config.roles.includes('console')) return null;
  const { startConsole } = await import('./start-console.ts');
  return startConsole(context, options, options.console);
}

/** Upgrades the schema to this release, as its owner if one is configured. */
async function prepareSchema(options: ServiceOptions, db: Database): Promise<void> {
  const { owner, log } = options;
  const applied = owner === undefined ? await migratePatiently(db, options) : await migrateAsOwner(owner, options);
  if (applied.length > 0) log.info({ migrations: applied }, 'the database schema was upgraded');
}

async function migrateAsOwner(owner: Connection, options: ServiceOptions): Promise<string[]> {
  const { log } = options;
  const onError = logLostConnections(log);
  const ownDb = openDatabase({ connection: owner, poolSize: 1, applicationName: 'quittance', onError });
  return migratePatiently(ownDb, options).finally(() => ownDb.close());
}

function migratePatiently(db: Database, { log, keyRing, clock }: ServiceOptions): Promise<string[]> {
  const now = () => unixMs((clock ?? systemClock).now());
  const hooks: MigrationHooks = {
    onBegin: (migrations) =>
      log.info({ migrations }, 'upgrading the database schema; with a large ledger, this takes minutes'),
    onBlocked: (blockers, pauseMs) =>
      log.warn(
        { blockers, pauseMs },
        'other sessions hold locks on tables that the upgrade must change; Quittance retries',
      ),
    ...(keyRing === null
      ? {}
      : {
          encryptPlainSecrets: (tx) =>
            encryptPlainSecrets(tx, { keyRing: async () => keyRing, log, now, random: pooledRandom }),
        }),
  };
  return retryUntilReady(log, () => migrate(db, hooks));
}

/**
 * Records in the data directory that this ledger requires seals. From then on, a ledger that doesn't require them is refused, because the
 * tables' owner could remove every seal and change the ledger's id. Throws `CONFIG_INVALID`.
 */
async function keepRequirement(
  { dataDir, rowMacs }: Partial<Pick<Config, 'dataDir' | 'rowMacs'>>,
  ledgerId: string,
  log: Logger,
): Promise<void> {
  if (dataDir === undefined || rowMacs !== 'ledger' || !existsSync(dataDir)) return;
  const path = join(dataDir, 'seals-required');
  if (requiresSeals(ledgerId)) {
    await writeFile(path, `${ledgerId}\n`, { mode: 0o600 }).catch((error: unknown) => {
      log.warn({ err: error }, 'could not record in the data directory that the ledger requires seals');
    });
    return;
  }
  if (!existsSync(path)) return;
  throw configInvalid`${path} records that this data directory's ledger requires seals, but the ledger ${ledgerId} in the database does not: the database may have been changed. Compare it with a backup. If you intentionally use an older ledger, set QUITTANCE_ROW_MACS=warn, or use a different QUITTANCE_DATA_DIR`;
}

/**
 * Runs in every process, whatever its roles, because each process has its own clock and database connection. The clocks are compared before
 * anything relies on them.
 */
async function startTroubles(context: Context): Promise<Loop> {
  const { clocks, shortage, db, log } = context;
  await retryUntilReady(log, () => clocks.look(db));
  return startHealthWatch({
    ...context,
    looks: [clocks.look, shortage.look, createUnwatchedLook(context), context.liveness.look],
  });
}

/** Applies the address manifest before anything else starts. Returns `null` if none is configured. Errors: see `watchManifest`. */
export async function startManifest(context: Context): Promise<Loop | null> {
  const { config, db, addressGuard: guard, networks, log, now } = context;
  const settings = config.addressManifest ?? null;
  if (settings !== null) return watchManifest({ db, guard, settings, networks, log, now });
  if (networks.some((network) => keyMode(network) === 'live')) {
    log.warn(
      'no address manifest is configured: an attacker with write access to the database can show payers a different address. See docs/guides/signed-addresses.md',
    );
  }
  return null;
}

const LOOK_MS = 60_000;
const LOG_MS = 3_600_000;
/** At a shutdown, the service doesn't wait longer than this for a database that doesn't respond. */
const LAST_LOOK_MS = 1000;

/**
 * Publishes the newest entry in the audit log: its number as a metric, and its number and hash in the log. It's logged at the start, at the
 * end, and at most once an hour in between. These records later show whether the audit log was rewritten or truncated.
 */
export function startAuditHead({ db, log, metrics }: Pick<Context, 'db' | 'log' | 'metrics'>): Loop {
  let head: AuditHead | null = null;
  let told: { head: string; atMs: number } | null = null;
  const look = async () => {
    head = await findAuditHead(db);
    metrics.auditEntries.set(head?.seq ?? 0);
  };
  const tell = () => {
    const text = head && `${head.seq}:${head.hash}`;
    if (text === null || told?.head === text) return;
    log.info({ auditHead: text }, 'the newest entry in the audit log');
    told = { head: text, atMs: performance.now() };
  };
  const loop = startLoop({
    name: 'newest entry in the audit log',
    log,
    maxPauseMs: LOOK_MS,
    run: async () => {
      await look();
      if (told === null || performance.now() - told.atMs >= LOG_MS) tell();
      return LOOK_MS;
    },
  });
  return {
    stop: async () => {
      await loop.stop();
      const last = look().catch(() => undefined);
      await Promise.race([last, delay(LAST_LOOK_MS, undefined, { ref: false })]);
      tell();
    },
  };
}

/** Serves Prometheus metrics, or returns `null` if they are off. */
async function startMetrics(context: Context) {
  const { config, metrics } = context;
  if (config.metrics === null) return null;
  const refresh = () => {
    const stats = poolsOf(context).map((pool) => pool.stats());
    for (const state of ['total', 'idle', 'waiting'] as const) {
      const count = stats.reduce((sum, pool) => sum + pool[state], 0);
      metrics.poolConnections.set({ state }, count);
    }
  };
  return startMetricsServer(config.metrics, { registry: metrics.registry, refresh, readiness: context.readiness });
}
