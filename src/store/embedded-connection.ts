import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { EmbeddedPostgresError, errorCode } from './embedded-error.ts';

/** Where a PostgreSQL listens; `host` is the directory of its Unix socket. */
export type PostgresConnection = { host: string; port: number; user: string; password: string; database: string };

/**
 * The connection to the embedded PostgreSQL that another process runs on the data directory, or null if none is running.
 * Errors: EmbeddedPostgresError when it belongs to another user.
 */
export async function readRunningPostgres(dataDir: string): Promise<PostgresConnection | null> {
  const path = connectionPath(dataDir);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `${path} cannot be read by uid ${process.getuid?.()} (${errorCode(error)}). Run this command as the user that runs Quittance.`,
      { cause: error },
    );
  }
  const connection = parseConnection(text);
  if (connection === undefined) return null;
  return (await tryToConnect(connection)) === undefined ? connection : null;
}

export function connectionPath(dataDir: string): string {
  return join(dataDir, 'postgres.json');
}

/** {"host":"/tmp/quittance-a1B2c3","port":5432,"user":"quittance","password":"…","database":"quittance"} */
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

/** A local server answers in milliseconds; this bounds the wait for one that hangs. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Connects and disconnects. Returns what went wrong, undefined if nothing did. */
export async function tryToConnect(connection: PostgresConnection): Promise<Error | undefined> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => {}); // Broken while open: the end below is all there is left to do.
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    await client.end().catch(() => {});
  }
}
