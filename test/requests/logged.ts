import pg from 'pg';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { type DatabaseLink, startDatabaseLink } from '../support/database-link.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { createTestProject, type Json, type TestProject } from '../support/service.ts';

/** A process with the role `api` on a database that the test can disconnect, and its log. */
export type LoggedService = {
  url: string;
  service: Service;
  database: TestDatabase;
  link: DatabaseLink;
  project: TestProject;
  logged(): Json[];
  /** Sets the clock, or with `null` lets it run. */
  setTime(ms: number | null): void;
  /** Stops only the process. */
  stopService(): Promise<void>;
  stop(): Promise<void>;
};

export async function startLogged(requestLog = true): Promise<LoggedService> {
  const database = await createTestDatabase();
  const link = await startDatabaseLink(database.connection);
  const lines: string[] = [];
  let time: number | null = null;
  const service = await startService({
    config: {
      ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 4, roles: ['api'], networks: {} },
      ...{ metrics: { host: '127.0.0.1', port: 0 }, trustProxy: [], requestLog },
      rateLimit: { perSecond: 100_000, burst: 100_000 },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    ...{ keyRing: null, connection: link.connection, clock: { now: () => time ?? Date.now() }, lagMs: () => 0 },
    log: createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } }),
  });
  let stopped: Promise<void> | undefined;
  const stopService = () => {
    stopped ??= service.stop();
    return stopped;
  };
  return {
    ...{ url: service.url ?? '', service, database, link },
    project: await createTestProject(service.db, { addressCount: 2 }),
    logged: () => lines.map((line) => JSON.parse(line)),
    setTime: (ms) => {
      time = ms;
    },
    stopService,
    stop: async () => {
      await stopService();
      await link.stop();
      await database.drop();
    },
  };
}

/** Reads the whole log in the order in which it was written. */
export async function readLog({ owner }: TestDatabase): Promise<Json[]> {
  const client = new pg.Client(owner);
  await client.connect();
  try {
    const text = `select r.value as request, b.project_id from requests b cross join lateral json_array_elements(b.requests::json) r`;
    return (await client.query(text)).rows.map(({ request, project_id }) => ({ ...request, project_id }));
  } finally {
    await client.end();
  }
}
