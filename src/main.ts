import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from './config.ts';
import { lockForService } from './runtime/lock-for-service.ts';
import { createLogger, type Logger } from './runtime/log.ts';
import { whenParentDies } from './runtime/parent-process.ts';
import { type Service, startService } from './service.ts';
import { startEmbeddedPostgres } from './store/embedded.ts';

/** Everything stops within this time, or the process ends anyway: what is unfinished is safe in the database. */
const STOP_LIMIT_MS = 9000;

/** Runs the sandbox or the real service until SIGINT, SIGTERM, or the death of the npm that started it. */
export async function main(config: Config): Promise<void> {
  const log = createLogger({ level: config.logLevel });
  const stopped = untilToldToStop(log);
  const running = config.sandbox
    ? await (await import('./cli/sandbox/run.ts')).runSandbox(config, log, stopped.tell)
    : await runService(config, log, stopped.tell);
  stopped.begin();
  const reason = await stopped.promise;
  log.info({ reason }, 'stopping');
  await stopWithin(running, log);
}

export type Running = { stop(): Promise<void> };

/** The real service: the database of DATABASE_URL or the embedded one, and the roles of this process. */
async function runService(config: Config, log: Logger, tell: (reason: string) => void): Promise<Running> {
  if (config.databaseUrl !== null) {
    const service = await startService({ config, connection: config.databaseUrl, log });
    announce(config, service, log);
    return service;
  }
  const lock = await lockForService(config.dataDir);
  try {
    const postgres = await startEmbeddedPostgres({
      dataDir: config.dataDir,
      log,
      onExit: ({ code, signal }) => tell(`the embedded PostgreSQL ended (${signal ?? code})`),
    });
    try {
      const service = await startService({ config, connection: postgres.connection, log });
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

function announce(config: Config, service: Service, log: Logger): void {
  log.info({ url: service.url, metricsUrl: service.metricsUrl, roles: config.roles }, 'ready');
}

/**
 * The first signal asks to stop; a second one, and any before `begin`, ends the process at once: what is half started has
 * nothing to finish, and the embedded database ends by itself.
 */
function untilToldToStop(log: Logger) {
  let hasBegun = false;
  let tell: (reason: string) => void = () => undefined;
  const promise = new Promise<string>((resolve) => {
    tell = resolve;
  });
  let isTold = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (isTold || !hasBegun) process.exit(130);
      isTold = true;
      tell(signal);
    });
  }
  whenParentDies(() => tell('the npm that started this process is gone'));
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'a promise was rejected and nobody looked; stopping');
    process.exitCode = 1;
    tell('an unhandled rejection');
  });
  return {
    promise,
    tell,
    begin: () => {
      hasBegun = true;
    },
  };
}

async function stopWithin(running: Running, log: Logger): Promise<void> {
  const limit = new AbortController();
  await Promise.race([
    running.stop().finally(() => limit.abort()),
    delay(STOP_LIMIT_MS, undefined, { signal: limit.signal }).then(
      () => {
        log.warn('not everything stopped in time; ending anyway');
        process.exit(process.exitCode ?? 0);
      },
      () => undefined,
    ),
  ]);
}
