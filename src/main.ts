import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from './config/config.ts';
import { DataDirError, dataDirError } from './runtime/instance-lock.ts';
import type { KeyRing } from './runtime/key-ring.ts';
import { createLogger, type Logger } from './runtime/log.ts';
import { openKeyRing, requireKeyRing } from './runtime/open-key-ring.ts';
import { whenParentDies } from './runtime/parent-process.ts';
import { createParts } from './runtime/parts.ts';
import { startService } from './service.ts';
import { startServiceDatabase } from './store/embedded/service-database.ts';

/** Everything stops within this time, or the process ends anyway: what is unfinished is safe in the database. */
const STOP_LIMIT_MS = 9000;

type Running = { stop(): Promise<void> };

/** Starts what a process runs. `fail` ends it with a failure while it runs. */
export type Start = (config: Config, log: Logger, fail: (error: unknown) => void) => Promise<Running>;

/**
 * Runs the sandbox, which is handed in, or the real service until SIGINT, SIGTERM, or the death of the npm that started it. Throws
 * if a part that nothing works without has failed while running, after everything else has stopped.
 */
export async function main(config: Config, runSandbox: Start): Promise<void> {
  const log = createLogger({ level: config.logLevel });
  const stopped = untilStopped(log);
  const running = await (config.sandbox ? runSandbox : runService)(config, log, stopped.fail);
  stopped.begin();
  const { reason, failure } = await stopped.promise;
  log.info({ reason }, 'stopping');
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

/** The real service: the database of DATABASE_URL or the embedded one, and the roles of this process. */
async function runService(config: Config, log: Logger, fail: (error: unknown) => void): Promise<Running> {
  const { databaseUrl, dataDir } = config;
  const needsOwnUser = config.networks.mainnet !== undefined;
  const parts = createParts();
  try {
    const database =
      databaseUrl === null
        ? await parts.add(startServiceDatabase({ dataDir, log, needsOwnUser, fail }))
        : { connection: databaseUrl };
    const service = await parts.add(startService({ config, ...database, keyRing: await keysOf(config, log), log }));
    log.info({ url: service.url, metricsUrl: service.metricsUrl, roles: config.roles }, 'ready');
    return parts;
  } catch (error) {
    await parts.stop().catch(() => undefined);
    throw error;
  }
}

/** The role `webhooks` cannot do without. The role `api` signs receipts if it has them. */
async function keysOf(config: Config, log: Logger): Promise<KeyRing | null> {
  const warn = (message: string) => log.warn(message);
  if (config.roles.includes('webhooks')) return requireKeyRing(config, warn);
  return config.roles.includes('api') ? openKeyRing(config, { warn }) : null;
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
