import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { SUPERUSER } from '../../src/core/store/embedded/cluster.ts';
import { connectionPath, type PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { eventually } from '../support/service.ts';
import type { Failpoint } from './failpoint.ts';
import { killPostgres } from './kill-postgres.ts';
import { type ServiceProcess, startServiceProcess } from './service-process.ts';

/** One run of the whole service on a data directory, from its start to its death. */
export type Life = {
  service: ServiceProcess;
  /** The database started with it; `null` if it died before that. */
  database: { client: pg.Client; connection: PostgresConnection } | null;
  /** Ends it at the latest this long after its start, optionally with its PostgreSQL, and waits for the end. */
  dieWithin(ms: number, options?: { killsPostgres?: boolean }): Promise<Death>;
};

export type Death = 'killed' | 'failpoint' | 'by itself';

/** Includes slow disks and replaying the write-ahead log. */
const START_LIMIT_MS = 60_000;

/** Starts the service and waits until its database answers or it has ended. `formerSocket` is where the previous one listened. */
export async function startLife(options: {
  dataDir: string;
  folder: string;
  env: Record<string, string>;
  failpoint: Failpoint | null;
  formerSocket: string | null;
}): Promise<Life> {
  const { dataDir, folder, env, failpoint, formerSocket } = options;
  const startedMs = performance.now();
  const service = await startServiceProcess({
    folder,
    failpoint: failpoint ?? undefined,
    env: { ...env, QUITTANCE_DATA_DIR: dataDir },
  });
  const database = await eventually(
    async () => (service.hasEnded() ? 'ended' : await connect(dataDir, formerSocket)),
    (seen) => seen !== null,
    START_LIMIT_MS,
  );
  return {
    service,
    database: typeof database === 'string' ? null : database,
    dieWithin: async (ms, { killsPostgres = false }: { killsPostgres?: boolean } = {}) => {
      const leftMs = Math.max(0, startedMs + ms - performance.now());
      const alarm = new AbortController();
      await Promise.race([service.ended, delay(leftMs, undefined, { signal: alarm.signal }).catch(() => undefined)]);
      alarm.abort();
      const wasAlive = !service.hasEnded();
      if (killsPostgres) await killPostgres(dataDir);
      await service.kill();
      if (typeof database !== 'string') await database?.client.end().catch(() => undefined);
      return service.firedMs() !== null ? 'failpoint' : wasAlive ? 'killed' : 'by itself';
    },
  };
}

/** Connects to this life's database, and not to the one in a file that a killed life left behind. */
async function connect(dataDir: string, formerSocket: string | null): Promise<Life['database']> {
  const text = await readFile(connectionPath(dataDir), 'utf8').catch(() => null);
  const connection = text === null ? null : (JSON.parse(text) as PostgresConnection);
  if (connection === null || connection.host === formerSocket) return null;
  const password = (await readFile(join(dataDir, 'postgres.password'), 'utf8')).trim();
  const client = new pg.Client({ ...connection, user: SUPERUSER, password });
  // It dies with the service, and its next user will notice.
  client.on('error', () => undefined);
  const isThere = await client.connect().then(
    () => true,
    () => false,
  );
  return isThere ? { client, connection } : null;
}
