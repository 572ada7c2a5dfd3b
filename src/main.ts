import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from './config/config.ts';
import { DataDirError, dataDirError } from './runtime/instance-lock.ts';
import type { KeyRing } from './runtime/key-ring.ts';
import { createLogger, type Logger } from './runtime/log.ts';
import { openKeyRing, requireKeyRing } from './runtime/open-key-ring.ts';
import { whenParentDies } from './runtime/parent-process.ts';
import { createParts } from './runtime/parts.ts';
import { findServiceManager } from './runtime/service-manager.ts';
import { type ServiceDatabase, startServiceDatabase } from './store/embedded/service-database.ts';

/** Everything stops within this time, or the process ends anyway: what is unfinished is safe in the database. */
const STOP_LIMIT_MS = 9000;
/** A start that failed has less to stop. */
const FAILED_START_LIMIT_MS = 4000;

type Running = { stop(): Promise<void> };
/** `healthUrl` is where the process answers `GET /healthz`; `null` where it listens nowhere. */
type Started = Running & { healthUrl: string | null };

/** Starts what a process runs over its database. */
export type Start = (config: Config, log: Logger, database: ServiceDatabase) => Promise<Started>;

/**
 * Runs the sandbox, which `loadSandbox` brings, or the real service until SIGINT, SIGTERM, or the death of the npm that started it. Throws
 * if a part that nothing works without has failed while running, after everything else has stopped.
 */
export async function main(config: Config, loadSandbox: () => Promise<Start>): Promise<void> {
  const log = createLogger({ level: config.logLevel });
  const manager = findServiceManager(process.env, log);
  const stopped = untilStopped(log);
  const running = await run(config, log, stopped.fail, config.sandbox ? loadSandbox : loadService);
  stopped.begin();
  manager.ready(running.healthUrl);
  const { reason, failure } = await stopped.promise;
  log.info({ reason }, 'stopping');
  manager.stopping();
  const stopFailure = await stopWithin(running, log, failure === null ? 0 : 1).then(
    () => null,
    (error: unknown) => error,
  );
  const first = failure ?? stopFailure;
  if (first !== null) throw explain(first, config);
}

/** A full disk may strike anywhere, in a timer too. */
function explain(failure: unknown, { dataDir }: Config): unknown {
  const explained = dataDirError(dataDir, failure);
  return explained instanceof DataDirError && explained.code === 'DATA_DIR_FULL' ? explained : failure;
}

/** How long a failed start may take to end by itself, twice. */
const EXIT_MS = 500;

/** PostgreSQL starts while this process loads what works on it: each takes some hundred milliseconds. */
async function run(
  config: Config,
  log: Logger,
  fail: (error: unknown) => void,
  load: () => Promise<Start>,
): Promise<Started> {
  const parts = createParts();
  try {
    const [database, start] = await Promise.all([parts.add(startDatabase(config, log, fail)), load()]);
    const { healthUrl } = await parts.add(start(config, log, database));
    return { healthUrl, stop: parts.stop };
  } catch (error) {
    const late = new AbortController();
    const stopped = parts.stop().catch((failure: unknown) => log.warn({ err: failure }, 'a part did not stop'));
    await Promise.race([
      stopped,
      delay(FAILED_START_LIMIT_MS, undefined, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    // A supervisor waits for the exit code, whatever still holds the process open.
    const exit = () => {
      log.warn({ resources: process.getActiveResourcesInfo() }, 'a failed start left something open; ending anyway');
      process.exit();
    };
    // Twice: on a busy machine the first may be due before the loop could end by itself, which it does in between.
    setTimeout(() => setTimeout(exit, EXIT_MS).unref(), EXIT_MS).unref();
    throw error;
  }
}

/** The database of DATABASE_URL, or the embedded one, which the sandbox always has. `fail` hears if that ends by itself. */
async function startDatabase(
  { sandbox, databaseUrl, dataDir, networks }: Config,
  log: Logger,
  fail: (error: unknown) => void,
): Promise<ServiceDatabase> {
  if (databaseUrl !== null && !sandbox) return { connection: databaseUrl, stop: async () => undefined };
  return startServiceDatabase({ dataDir, log, needsOwnUser: networks.mainnet !== undefined, fail });
}

/** The real service: the roles of this process. */
async function loadService(): Promise<Start> {
  const { startService } = await import('./service.ts');
  return async (config, log, database) => {
    const service = await startService({
      ...{ config, ...database, keyRing: await keysOf(config, log), log },
      console: config.console && { ...config.console, url: config.consoleUrl, config },
    });
    const consoleUrl = await service.startConsole().catch(async (error: unknown) => {
      await service.stop();
      throw error;
    });
    log.info({ url: service.url, consoleUrl, metricsUrl: service.metricsUrl, roles: config.roles }, 'ready');
    return { healthUrl: service.url ?? service.metricsUrl, stop: service.stop };
  };
}

/** The role `webhooks` cannot do without. Every other one seals with them what it writes, if it has them; the role `api` signs receipts. */
async function keysOf(config: Config, log: Logger): Promise<KeyRing | null> {
  const warn = (message: string) => log.warn(message);
  if (config.roles.includes('webhooks')) return requireKeyRing(config, warn);
  return openKeyRing(config, { warn });
}

/** Why the service ends; `failure` is null if it was asked to. */
type End = { reason: string; failure: unknown };

/**
 * The first signal asks to stop; a second one, and any before `begin`, ends the process at once: what is half started has
 * nothing to finish, and the embedded database ends by itself.
 */
function untilStopped(log: Logger) {
  let hasBegun = false;
  let stop: (end: End) => void = () => undefined;
  const promise = new Promise<End>((resolve) => {
    stop = resolve;
  });
  const fail = (failure: unknown) => stop({ reason: 'a failure', failure });
  let isSignalled = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (isSignalled || !hasBegun) process.exit(130);
      isSignalled = true;
      stop({ reason: signal, failure: null });
    });
  }
  whenParentDies(() => stop({ reason: 'the npm that started this process is gone', failure: null }));
  // No matter what failed, the state that matters is in the database; the next start goes on from there.
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'an error that nobody handled; stopping');
    if (!hasBegun) process.exit(1);
    fail(error);
  });
  return {
    promise,
    fail,
    begin: () => {
      hasBegun = true;
    },
  };
}

async function stopWithin(running: Running, log: Logger, exitCode: number): Promise<void> {
  const limit = new AbortController();
  await Promise.race([
    running.stop().finally(() => limit.abort()),
    delay(STOP_LIMIT_MS, undefined, { signal: limit.signal }).then(
      () => {
        log.warn('not everything stopped in time; ending anyway');
        process.exit(exitCode);
      },
      () => undefined,
    ),
  ]);
}
