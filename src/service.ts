import { randomInt, randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { createAmountRefusals } from './api/amount-refusals.ts';
import type { ApiDeps } from './api/api-deps.ts';
import { registerEvents } from './api/events.ts';
import { FAILURE_LIMIT } from './api/guard.ts';
import { registerHealth } from './api/health.ts';
import { registerInvoices } from './api/invoices.ts';
import { registerOpenApi } from './api/openapi.ts';
import { createUnpaidRefusals } from './api/unpaid-refusals.ts';
import { createKnownTerms } from './chain/fee-terms.ts';
import { createNodePool, type NodePool } from './chain/node-pool.ts';
import { SLOT_MS } from './chain/read-block.ts';
import { startReconciler } from './chain/reconcile.ts';
import { createTransactionReader } from './chain/transaction-reader.ts';
import { startWatcher } from './chain/watcher.ts';
import { registerAsk } from './checkout/ask.ts';
import { registerLive } from './checkout/live-routes.ts';
import { registerLogos } from './checkout/logos.ts';
import { createLookupLimits, registerLookup } from './checkout/lookup.ts';
import { createLookupBudget } from './checkout/lookup-budget.ts';
import { limitPages } from './checkout/page-limits.ts';
import { registerReceipts } from './checkout/receipt-routes.ts';
import { createReceiptSigner, type ReceiptSigner } from './checkout/receipt-signer.ts';
import { registerCheckout } from './checkout/register.ts';
import { serveRobots } from './checkout/robots.ts';
import { tryReceiptKey } from './checkout/seal-receipt-key.ts';
import type { Config, NetworkConfig } from './config.ts';
import { AppError } from './domain/errors.ts';
import type { Network } from './domain/network.ts';
import { type UnixMs, unixMs } from './domain/time.ts';
import { createRelief } from './payments/relief.ts';
import { createDamageTeller } from './payments/tell-damaged-address.ts';
import { createUnpaidGate } from './payments/unpaid-gate.ts';
import { startCapacityWatch } from './payments/watch-capacity.ts';
import { startGuaranteeWatch } from './payments/watch-guarantees.ts';
import { startOrderFloodWatch } from './payments/watch-order-floods.ts';
import { type Clock, systemClock } from './runtime/clock.ts';
import type { KeyRing } from './runtime/key-ring.ts';
import type { Logger } from './runtime/log.ts';
import { startLoop } from './runtime/loop.ts';
import { createMetrics, type Metrics } from './runtime/metrics.ts';
import { pooledRandom } from './runtime/random.ts';
import { createAdmission } from './store/admit-server.ts';
import { findNewestApiKeys, findValidApiKey, touchApiKeys } from './store/api-keys.ts';
import { claimLedger } from './store/claim-ledger.ts';
import { CONNECT_TIMEOUT_MS, type Connection, type Database, openDatabase } from './store/database.ts';
import { migrate } from './store/migrate.ts';
import { accountToAddress } from './tron/address.ts';
import { createAuthenticator, MAX_REMEMBERED } from './web/authenticate.ts';
import { startMetricsServer } from './web/metrics-server.ts';
import { createServer } from './web/server.ts';
import { createTokenBuckets } from './web/token-bucket.ts';
import { startDispatcher } from './webhooks/dispatcher.ts';
import { refuseMissingKeys } from './webhooks/refuse-missing-keys.ts';
import { startRetention } from './webhooks/retention.ts';
import { sealPlainSecrets } from './webhooks/seal-plain-secrets.ts';
import { startSecretWatch } from './webhooks/watch-secrets.ts';

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
  >;
  connection: Connection;
  /** Brings the schema up to this release. Without it `connection` does, if it may; the service itself needs no such right. */
  owner?: Connection;
  /** Opens what is sealed in the database. With `null` receipts are not signed, and the role `webhooks` does not start. */
  keyRing: KeyRing | null;
  log: Logger;
  clock?: Clock;
  /** The block time of the networks, for a local one that is faster than the real 3,000 ms. */
  blockMs?: number;
  /** How long what comes waits for the event loop, in milliseconds; measured by default. For who shares its process with others. */
  lagMs?(): number;
};

export type Service = {
  /** Where the API listens; `null` without the role `api`. */
  url: string | null;
  metricsUrl: string | null;
  db: Database;
  stop(): Promise<void>;
};

/** How long a start waits for a database that starts at the same time. */
const DATABASE_WAIT_MS = 10_000;
const DATABASE_RETRY_MS = 1000;
const MAX_BUCKETS = 10_000;
/** So long a new key can be a stranger's, which is refused where others of its network use up what wrong keys may ask. */
const TOUCH_KEYS_MS = 30_000;
/** More than an outage of the database lasts, in which no key is made. */
const NEW_KEY_S = 600;
/** Of ten connections three, which is as many statements as watcher and webhooks have under way at a time as a rule. */
const RESERVED_SHARE = 0.3;
const LEAST_DIVIDED = 4;

/** Wires and starts the roles of one process over one database. `stop` ends them in the opposite order, within seconds. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const metrics = createMetrics();
  const { db, requestDb } = openPools(options);
  const started: { stop(): Promise<unknown> }[] = [];
  const stop = async () => {
    for (const part of started.splice(0).reverse()) await part.stop();
    await Promise.all([...new Set([db, requestDb])].map((pool) => pool.close()));
  };
  try {
    const applied = await prepareSchema(options, db);
    if (applied.length > 0) log.info({ migrations: applied }, 'the database schema was brought up to date');
    await claimLedger(db, log);
    const context = createContext(options, db, metrics);
    const metricsServer = await startMetrics(context, [...new Set([db, requestDb])]);
    if (metricsServer !== null) started.push(metricsServer);
    const api = config.roles.includes('api') ? await startApi({ ...context, db: requestDb }, options.keyRing) : null;
    if (api !== null) {
      context.url = api.url;
      started.push(api);
    }
    // Closed before the API is stopped, whose look-ups would else wait for a node that hangs.
    started.push({ stop: () => Promise.all(context.pools.map(({ pool }) => pool.close())) });
    if (config.roles.includes('watcher')) started.push(...startWatchers(context));
    if (config.roles.includes('webhooks')) started.push(await startWebhooks(context, options.keyRing));
    return { url: api?.url ?? null, metricsUrl: metricsServer?.url ?? null, db, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Where requests share the process with the watcher or the webhooks, those have connections of their own, so that they never stand in a
 * line behind requests. Pools that are too small for that are shared.
 */
function openPools({ config, connection, log, clock = systemClock }: ServiceOptions): {
  db: Database;
  requestDb: Database;
} {
  const admission = createAdmission(CONNECT_TIMEOUT_MS);
  let db: Database;
  const onDamagedAddress = createDamageTeller({ db: () => db, log, now: () => unixMs(clock.now()) });
  const open = (poolSize: number) =>
    openDatabase({
      connection,
      admission,
      poolSize,
      applicationName: 'quittance',
      onError: (error) => log.warn({ err: error }, 'a database connection was lost'),
      onDamagedAddress,
    });
  const { roles, databasePoolSize } = config;
  if (!roles.includes('api') || roles.length === 1 || databasePoolSize < LEAST_DIVIDED) {
    db = open(databasePoolSize);
    return { db, requestDb: db };
  }
  const reserved = Math.max(2, Math.floor(databasePoolSize * RESERVED_SHARE));
  db = open(reserved);
  return { db, requestDb: open(databasePoolSize - reserved) };
}

type Context = ReturnType<typeof createContext>;

function createContext(options: ServiceOptions, db: Database, metrics: Metrics) {
  const { config, log, clock = systemClock, blockMs, lagMs } = options;
  const context = {
    config,
    log,
    clock,
    db,
    metrics,
    blockMs: blockMs ?? SLOT_MS,
    ...(lagMs === undefined ? {} : { lagMs }),
    url: null as string | null,
    now: () => unixMs(clock.now()),
    random: pooledRandom,
    /** The nodes of a network are asked through one pool, whatever for: budgets and pauses are theirs. */
    pools: createPools({ config, log, now: () => unixMs(clock.now()), metrics, blockMs: blockMs ?? SLOT_MS }),
    /** Where payers reach us. Without the setting it is where the API listens. */
    publicUrl: () => config.publicUrl ?? context.url ?? `http://${config.host}:${config.port}`,
  };
  return context;
}

type NetworkPool = NetworkConfig & { network: Network; pool: NodePool };

function createPools({
  config,
  ...shared
}: Pick<ServiceOptions, 'config' | 'log'> & { now(): UnixMs; metrics: Metrics; blockMs: number }): NetworkPool[] {
  const networks = Object.entries(config.networks) as [Network, NetworkConfig][];
  return networks.map(([network, settings]) => {
    return { ...settings, network, pool: createNodePool({ ...shared, network, nodes: settings.nodes }) };
  });
}

async function prepareSchema(options: ServiceOptions, db: Database): Promise<string[]> {
  const { owner, log } = options;
  if (owner === undefined) return migratePatiently(db, options);
  const onError = (error: Error) => log.warn({ err: error }, 'a database connection was lost');
  const ownDb = openDatabase({ connection: owner, poolSize: 1, applicationName: 'quittance', onError });
  return migratePatiently(ownDb, options).finally(() => ownDb.close());
}

async function migratePatiently(db: Database, { log, keyRing, clock }: ServiceOptions): Promise<string[]> {
  const now = () => unixMs((clock ?? systemClock).now());
  const deadline = performance.now() + DATABASE_WAIT_MS;
  for (;;) {
    try {
      return await migrate(db, {
        onBegin: (migrations) =>
          log.info({ migrations }, 'bringing the database schema up to date; with a large ledger this takes minutes'),
        ...(keyRing === null
          ? {}
          : {
              sealPlainSecrets: (tx) =>
                sealPlainSecrets(tx, { keyRing: async () => keyRing, log, now, random: pooledRandom }),
            }),
      });
    } catch (error) {
      const isAway = error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE';
      if (!isAway || performance.now() > deadline) throw error;
      log.warn({ reason: error.message }, 'the database does not answer yet');
      await delay(DATABASE_RETRY_MS);
    }
  }
}

async function startApi(context: Context, keyRing: KeyRing | null): Promise<{ url: string; stop(): Promise<void> }> {
  const { config, db, metrics, log, now, random, publicUrl } = context;
  const failureBuckets = createTokenBuckets(FAILURE_LIMIT.perSecond, FAILURE_LIMIT.burst, MAX_BUCKETS);
  const authenticator = createAuthenticator({
    findValidKey: (id, at) => findValidApiKey(db, id, at),
    failureBuckets,
    now,
  });
  const learnKeys = async (oldestSeconds: number) =>
    authenticator.learn(await findNewestApiKeys(db, now(), { oldestSeconds, limit: MAX_REMEMBERED }));
  await learnKeys(Number.POSITIVE_INFINITY);
  const { recognize } = authenticator;
  const app = createServer({
    ...{ ...context, recognize },
    ...{ trustProxy: config.trustProxy, isShared: config.roles.length > 1 },
  });
  const { perSecond, burst } = config.rateLimit;
  await registerOpenApi(app, { publicUrl, now });
  const deps: ApiDeps = {
    db,
    publicUrl,
    authenticator,
    keyBuckets: createTokenBuckets(perSecond, burst, MAX_BUCKETS),
    rateLimit: config.rateLimit,
    now,
    random,
    randomBelow: (n) => randomInt(n),
    gate: createUnpaidGate({ db, now }),
    relief: createRelief({ db, now, random, log }),
    onAmountRefused: createAmountRefusals({ db, log, metrics, now }),
    onUnpaidRefused: createUnpaidRefusals({ db, log, metrics, now }),
    log,
  };
  registerInvoices(app, deps);
  registerEvents(app, deps);
  registerHealth(app, { db, networks: Object.keys(config.networks) as Network[], now });
  const signer = createReceiptSigner({ db, keyRing, log, now, random });
  await signer.prepare();
  registerPages(app, context, signer);
  const url = await listen(app, config);
  const touching = startLoop({
    name: 'new keys, and last-used times',
    log,
    maxPauseMs: TOUCH_KEYS_MS,
    run: async () => {
      await learnKeys(NEW_KEY_S);
      const used = authenticator.takeUsed();
      if (used.length > 0) await touchApiKeys(db, used, now());
      return TOUCH_KEYS_MS;
    },
  });
  return {
    url,
    stop: async () => {
      await app.close();
      await touching.stop();
    },
  };
}

/** What payers open. */
function registerPages(app: FastifyInstance, context: Context, signer: ReceiptSigner): void {
  const { db, now, config, publicUrl } = context;
  const networks = Object.entries(config.networks) as [Network, NetworkConfig][];
  const usdt = Object.fromEntries(networks.map(([network, { usdt }]) => [network, accountToAddress(usdt)]));
  const lookUp = { readTransaction: createReaders(context), limits: createLookupLimits(now) };
  const deps = { db, now, site: { publicUrl, usdt } };
  limitPages(app, deps);
  serveRobots(app);
  registerCheckout(app, deps);
  registerLive(app, { ...deps, log: context.log, metrics: context.metrics });
  registerLogos(app, { db });
  registerLookup(app, { ...deps, ...lookUp });
  registerAsk(app, { ...deps, ...lookUp });
  registerReceipts(app, { ...deps, signer });
}

/** What payers ask about transactions, by network, goes to nodes within a budget of its own. */
function createReaders({ pools, db, now, log }: Context) {
  const budget = createLookupBudget(now);
  const readers = pools.map(({ network, pool, usdt }) => {
    const spend = (link: string) => budget.take(network, link);
    return [network, createTransactionReader({ db, network, pool, usdt, now, log, spend })] as const;
  });
  return Object.fromEntries(readers);
}

async function listen(app: FastifyInstance, { host, port }: { host: string; port: number }): Promise<string> {
  await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') {
      throw new AppError(
        'PORT_IN_USE',
        `port ${port} on ${host} is in use: stop the other program, or set QUITTANCE_PORT to another port (0 takes any free one)`,
        { cause: error },
      );
    }
    if (error.code === 'EACCES' || error.code === 'EADDRNOTAVAIL') {
      throw new AppError(
        'CONFIG_INVALID',
        `cannot listen on ${host}:${port} (${error.code}): set QUITTANCE_HOST and QUITTANCE_PORT to an address and port of this machine that this user may use`,
        { cause: error },
      );
    }
    throw error;
  });
  const { address, port: actual } = app.server.address() as AddressInfo;
  // A link needs an address that can be opened; the wildcard addresses cannot.
  const shown = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${actual}`;
}

async function startMetrics({ config, metrics }: Context, pools: Database[]) {
  if (config.metrics === null) return null;
  return startMetricsServer(config.metrics, metrics.registry, () => {
    const stats = pools.map((pool) => pool.stats());
    for (const state of ['total', 'idle', 'waiting'] as const) {
      const count = stats.reduce((sum, pool) => sum + pool[state], 0);
      metrics.poolConnections.set({ state }, count);
    }
  });
}

async function startWebhooks({ config, db, clock, log, metrics, now }: Context, keyRing: KeyRing | null) {
  if (keyRing === null) throw new Error('the role webhooks needs a key ring');
  await refuseMissingKeys({ db, keyRing }, now());
  const { localTargets, retentionDays } = config.webhooks;
  const dispatcher = startDispatcher({ db, clock, log, metrics, random: Math.random, keyRing, localTargets });
  const retention = startRetention({ db, clock, log, days: retentionDays });
  const secretWatch = startSecretWatch({
    ...{ db, keyRing, log, networks: Object.keys(config.networks) as Network[] },
    tryReceiptKey: () => tryReceiptKey(db, keyRing),
  });
  return {
    stop: async () => {
      await Promise.all([dispatcher.stop(), retention.stop(), secretWatch.stop()]);
    },
  };
}

/** One watcher for each network, and beside it the comparisons: of the books with the chain, of the schema with the release. */
function startWatchers(context: Context): { stop(): Promise<void> }[] {
  return context.pools.map(({ network, pool, usdt, agreement }) => {
    const watcher = startWatcher({
      ...context,
      network,
      pool,
      usdt,
      agreement,
      fees: createKnownTerms(),
      slotMs: network === 'devnet' ? null : SLOT_MS,
      publicUrl: context.publicUrl(),
      holder: randomUUID(),
    });
    const reconciler = startReconciler({ ...context, network, pool, usdt, isLeader: watcher.isLeader });
    const capacity = startCapacityWatch({ ...context, network, isLeader: watcher.isLeader });
    const floods = startOrderFloodWatch({ ...context, network, isLeader: watcher.isLeader });
    const guarantees = startGuaranteeWatch({ ...context, network, isLeader: watcher.isLeader });
    const parts = [watcher, reconciler, capacity, floods, guarantees];
    // Together, for the watcher ends the requests to nodes that hang.
    return { stop: async () => void (await Promise.all(parts.map((part) => part.stop()))) };
  });
}
