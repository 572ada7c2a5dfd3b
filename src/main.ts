import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from './config.ts';
import { DataDirError, dataDirError } from './runtime/instance-lock.ts';
import type { KeyRing } from './runtime/key-ring.ts';
import { lockForService } from './runtime/lock-for-service.ts';
import { createLogger, type Logger } from './runtime/log.ts';
import { openKeyRing, requireKeyRing } from './runtime/open-key-ring.ts';
import { whenParentDies } from './runtime/parent-process.ts';
import { type Service, startService } from './service.ts';
import { startEmbeddedPostgres } from './store/embedded.ts';
import { endedByItself } from './store/embedded-failure.ts';

/** Everything stops within this time, or the process ends anyway: what is unfinished is safe in the database. */
const STOP_LIMIT_MS = 9000;

/**
 * Runs the sandbox or the real service until SIGINT, SIGTERM, or the death of the npm that started it. Throws if a part that
 * nothing works without has failed while running, after everything else has stopped.
 */
export async function main(config: Config): Promise<void> {
  const log = createLogger({ level: config.logLevel });
  const stopped = untilToldToStop(log);
  const running = config.sandbox
    ? await (await import('./cli/sandbox/run.ts')).runSandbox(config, log, stopped.fail)
    : await runService(config, log, stopped.fail);
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

type Running = { stop(): Promise<void> };

/** The real service: the database of DATABASE_URL or the embedded one, and the roles of this process. */
async function runService(config: Config, log: Logger, fail: (error: unknown) => void): Promise<Running> {
  if (config.databaseUrl !== null) {
    const service = await startService({
      config,
      connection: config.databaseUrl,
      keyRing: await keysOf(config, log),
      log,
    });
    announce(config, service, log);
    return service;
  }
  const lock = await lockForService(config.dataDir);
  try {
    const postgres = await startEmbeddedPostgres({
      dataDir: config.dataDir,
      log,
      needsOwnUser: config.networks.mainnet !== undefined,
      onExit: (exit) => fail(endedByItself(config.dataDir, exit)),
    });
    try {
      const service = await startService({
        config,
        connection: postgres.connection,
        owner: postgres.owner,
        keyRing: await keysOf(config, log),
        log,
      });
      announce(config, service, log);
      return {
        stop: async () => {
          await service.stop();
          await postgres.stop();
          await lock.release();
        },
      };
    } catch (error) {
      await postgres.stop();
      throw error;
    }
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The role `webhooks` cannot do without. The role `api` signs receipts if it has them. */
async function keysOf(config: Config, log: Logger): Promise<KeyRing | null> {
  const warn = (message: string) => log.warn(message);
  if (config.roles.includes('webhooks')) return requireKeyRing(config, warn);
  return config.roles.includes('api') ? openKeyRing(config, { warn }) : null;
}

function announce(config: Config, service: Service, log: Logger): void {
  log.info({ url: service.url, metricsUrl: service.metricsUrl, roles: config.roles }, 'ready');
}

/** Why the service ends; `failure` is null if it was asked to. */
type End = { reason: string; failure: unknown };

/**
 * The first signal asks to stop; a second one, and any before `begin`, ends the process at once: what is half started has
 * nothing to finish, and the embedded database ends by itself.
 */
function untilToldToStop(log: Logger) {
  let hasBegun = false;
  let tell: (end: End) => void = () => undefined;
  const promise = new Promise<End>((resolve) => {
    tell = resolve;
  });
  const fail = (failure: unknown) => tell({ reason: 'a failure', failure });
  let isTold = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (isTold || !hasBegun) process.exit(130);
      isTold = true;
      tell({ reason: signal, failure: null });
    });
  }
  whenParentDies(() => tell({ reason: 'the npm that started this process is gone', failure: null }));
  // Whatever it was, the state that matters is in the database; the next start goes on from there.
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
