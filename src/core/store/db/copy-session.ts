import type { Readable, Writable } from 'node:stream';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { AppError } from '../../domain/errors.ts';
import { type Connection, runToCommit, type Sql, sqlOn, types } from './database.ts';

/** A connection with a transaction and without statement timeouts. */
export type BackupSession = Sql & {
  /** Returns the rows of `copy … to stdout`. */
  copyOut(text: string): Readable;
  /** Returns a stream for the rows of `copy … from stdin`. It finishes when PostgreSQL has accepted all of them. */
  copyIn(text: string): Writable & { rowCount: number };
};

/** The text of values must not depend on server, database or user settings. */
const SETTINGS = `set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set client_encoding = 'UTF8';
  set datestyle = 'ISO, MDY'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set bytea_output = 'hex';
  set extra_float_digits = 1; set row_security = off; set lock_timeout = '30s'`;

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Runs `work` in one transaction with the given mode. If `work` throws or the connection is lost, the transaction is rolled back and the
 * error is rethrown.
 */
export async function inBackupSession<Output>(
  connection: Connection,
  mode: 'isolation level repeatable read read only' | 'isolation level read committed',
  work: (session: BackupSession) => Promise<Output>,
): Promise<Output> {
  const client = new pg.Client({
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'quittance backup',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types,
  });
  // The current or the next statement reports that the connection was lost.
  client.on('error', () => undefined);
  const sql = sqlOn(client);
  try {
    await client.connect().catch(rethrow);
    await sql.script(SETTINGS);
    await sql.script(`begin ${mode}`);
    return await runToCommit(client, (tx) =>
      work({
        ...tx,
        copyOut: (text) => client.query(copyTo(text)),
        copyIn: (text) => client.query(copyFrom(text)),
      }),
    );
  } finally {
    // The server rolls back everything that wasn't committed.
    await client.end().catch(() => undefined);
  }
}

function rethrow(cause: Error): never {
  throw new AppError('DATABASE_UNAVAILABLE', `the database does not respond: ${cause.message}`, {
    retryable: true,
    cause,
  });
}
