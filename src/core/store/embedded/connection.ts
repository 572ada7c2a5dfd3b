import { join } from 'node:path';
import pg from 'pg';
import { EmbeddedPostgresError, errorCode, readIfExists } from './error.ts';

/** A PostgreSQL server's address. `host` is its Unix socket's directory. */
export type PostgresConnection = { host: string; port: number; user: string; password: string; database: string };

/**
 * Returns the connection to the embedded PostgreSQL that another process runs on the data directory, or null if none is running. Errors:
 * EmbeddedPostgresError if it belongs to another user.
 */
export async function readRunningPostgres(dataDir: string): Promise<PostgresConnection | null> {
  const path = connectionPath(dataDir);
  const text = await readIfExists(path).catch((cause) => {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `${path} cannot be read by uid ${process.getuid?.()} (${errorCode(cause)}). Run this command as the user that runs Quittance.`,
      { cause },
    );
  });
  const connection = text === undefined ? undefined : parseConnection(text);
  if (connection === undefined || (await tryToConnect(connection)) !== undefined) return null;
  return connection;
}

export function connectionPath(dataDir: string): string {
  return join(dataDir, 'postgres.json');
}

/** Parses text such as {"host":"/tmp/quittance-a1B2c3","port":5432,"user":"quittance","password":"…","database":"quittance"}. */
function parseConnection(text: string): PostgresConnection | undefined {
  try {
    const { host, port, user, password, database } = JSON.parse(text);
    if (![host, user, password, database].every((value) => typeof value === 'string') || !Number.isSafeInteger(port))
      return undefined;
    return { host, port, user, password, database };
  } catch {
    return undefined;
  }
}

/** A local server responds within milliseconds. This limits how long a hanging connection is waited for. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Runs `work` on a new connection. */
export async function withClient<Result>(
  connection: PostgresConnection,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => {}); // If a statement is running, it reports the lost connection.
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Connects and disconnects. Returns the error, or undefined if there was none. */
export function tryToConnect(connection: PostgresConnection): Promise<Error | undefined> {
  return withClient(connection, async () => undefined).catch((error) =>
    error instanceof Error ? error : new Error(String(error)),
  );
}
