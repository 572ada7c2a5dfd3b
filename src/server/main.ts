import { setTimeout as delay } from 'node:timers/promises';
import { DataDirError, dataDirError } from '../core/runtime/instance-lock.ts';
import type { KeyRing } from '../core/runtime/key-ring.ts';
import { createLogger, type Logger } from '../core/runtime/log.ts';
import { openKeyRing, requireKeyRing } from '../core/runtime/open-key-ring.ts';
import { createParts } from '../core/runtime/parts.ts';
import { whenParentDies } from '../core/runtime/processes.ts';
import { type ServiceDatabase, startServiceDatabase } from '../core/store/embedded/embedded.ts';
import type { Config } from './config/config.ts';
import { findServiceManager } from './service-manager.ts';

/** If stopping takes longer, the process exits anyway. Unfinished work is safe in the database. */
const STOP_LIMIT_MS = 9000;
/** A failed start has less to stop. */
const FAILED_START_LIMIT_MS = 4000;

type Running = { stop(): Promise<void> };
/** `healthUrl` is the URL of `GET /healthz`, or `null` if the process has no server. */
type Started = Running & { healthUrl: string | null };

/** Starts the parts of a process that use the database. */
export type Start = (config: Config, log: Logger, database: ServiceDatabase) => Promise<Started>;

/**
 * Runs the sandbox (loaded by `loadSandbox`) or the real service until SIGINT, SIGTERM, or the death of the npm that started it. If an
 * essential part fails while running, it stops everything else and then throws.
 */
export async function main(config: Config, loadSandbox: () => Promise<Start>): Promise<void> {
  const log = createLogger({ level: config.logLevel });
  const manager = findServiceManager(process.env, log);
  const stopped = untilStopped(log);
  const running = await run(config, log, stopped.fail, () => loadStart(config, loadSandbox));
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

/** A full disk can make anything fail, even a timer. */
function explain(failure: unknown, { dataDir }: Config): unknown {
  const explained = dataDirError(dataDir, failure);
  return explained instanceof DataDirError && explained.code === 'DATA_DIR_FULL' ? explained : failure;
}

/** After a failed start, the process gets this long, twice, to exit on its own. */
const EXIT_MS = 500;

/** Launches PostgreSQL, and loads the code while it starts. Loading keeps the event loop busy, so nothing is loaded before the launch. */
async function run(
  config: Config,
  log: Logger,
  fail: (error: unknown) => void,
  load: () => Promise<Start>,
): Promise<Started> {
  const parts = createParts();
  let hasLoaded = false;
  let launch = () => {};
  const launched = new Promise<void>((resolve) => {
    launch = resolve;
  });
  try {
    const starting = parts.add(startDatabase(config, log, { fail, onLaunch: launch }));
    const loading = Promise.race([launched, starting]).then(load);
    const [database, start] = await Promise.all([
      starting,
      loading.finally(() => {
        hasLoaded = true;
      }),
    ]);
    const { healthUrl } = await parts.add(start(config, log, database));
    return { healthUrl, stop: parts.stop };
  } catch (error) {
    const late = new AbortController();
    const stopped = parts
      .stop()
      .catch((failure: unknown) => log.warn({ err: failure }, 'a part of the process did not stop'));
    await Promise.race([
      stopped,
      delay(FAILED_START_LIMIT_MS, undefined, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    // A supervisor is waiting for the exit code, so exit even if something keeps the process open. If the database fails first, code that
    // is still being loaded may be the cause.
    const wasLoading = !hasLoaded;
    const exit = () => {
      if (!wasLoading)
        log.warn(
          { resources: process.getActiveResourcesInfo() },
          'the start failed and left resources open; exiting anyway',
        );
      process.exit();
    };
    // Wait twice: on a busy machine, the first timer may be due before the event loop has had a chance to end.
    setTimeout(() => setTimeout(exit, EXIT_MS).unref(), EXIT_MS).unref();
    throw error;
  }
}

/**
 * Connects to the database in DATABASE_URL, or starts the embedded one, which the sandbox always uses. `onLaunch` is called when the
 * embedded one has been launched, and `fail` if it stops unexpectedly.
 */
async function startDatabase(
  { sandbox, databaseUrl, dataDir, networks }: Config,
  log: Logger,
  calls: { fail(error: unknown): void; onLaunch(): void },
): Promise<ServiceDatabase> {
  if (databaseUrl !== null && !sandbox) return { connection: databaseUrl, stop: async () => undefined };
  return startServiceDatabase({ dataDir, log, needsOwnUser: networks.mainnet !== undefined, ...calls });
}

/** Loads the sandbox (by `loadSandbox`) or the real service, with the code of this process's roles. */
async function loadStart({ sandbox, roles }: Config, loadSandbox: () => Promise<Start>): Promise<Start> {
  const [{ loadRoles, startService }, startSandbox] = await Promise.all([
    import('./service.ts'),
    sandbox ? loadSandbox() : null,
  ]);
  await loadRoles(roles);
  if (startSandbox !== null) return startSandbox;
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

/**
 * The role `webhooks` requires the keys. All other roles use the keys if there are any: they seal the rows that they write, and the role
 * `api` also signs receipts.
 */
async function keysOf(config: Config, log: Logger): Promise<KeyRing | null> {
  const warn = (message: string) => log.warn(message);
  if (config.roles.includes('webhooks')) return requireKeyRing(config, warn);
  return openKeyRing(config, { warn });
}

/** Why the service is ending. `failure` is null if it was asked to stop. */
type End = { reason: string; failure: unknown };

/**
 * The first signal requests a stop. A second signal, or any signal before `begin`, makes the process exit immediately. A half-started
 * process has nothing to finish, and the embedded database exits on its own.
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
  whenParentDies(() => stop({ reason: 'the npm process that started this one has ended', failure: null }));
  // Whatever has failed, the important state is in the database, and the next start resumes from there.
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'unhandled error; stopping');
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
        log.warn('not everything stopped in time; exiting anyway');
        process.exit(exitCode);
      },
      () => undefined,
    ),
  ]);
}
