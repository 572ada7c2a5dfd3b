import { AppError, isDatabaseUnavailable } from '../../core/domain/errors.ts';
import type { Config } from '../../server/config/config.ts';

/** Adds advice for the operator to a database error. Returns any other error unchanged. `databaseUrl` comes from `variable`. */
export function explainDatabaseError(
  error: unknown,
  config: Pick<Config, 'databaseUrl'>,
  variable: 'DATABASE_URL' | 'DATABASE_OWNER_URL' = 'DATABASE_URL',
): unknown {
  if (config.databaseUrl !== null && isForbidden(error)) {
    const server = describeServer(config.databaseUrl);
    return new AppError(
      'DATABASE_UNAVAILABLE',
      `the database ${server} rejects the user in ${variable}: ${error.message}; ${variable === 'DATABASE_URL' ? NOT_GRANTED : NOT_OWNED}`,
      { cause: error },
    );
  }
  if (!isDatabaseUnavailable(error)) return error;
  if (config.databaseUrl === null) {
    return new AppError('DATABASE_UNAVAILABLE', `${error.message}; run the command again`, { cause: error });
  }
  const { cause } = error;
  const message = cause instanceof Error ? cause.message : '';
  if (message.startsWith(CLOSED)) {
    const fix = `set ${variable} to the database into which that backup was restored`;
    return new AppError('LEDGER_CLOSED', `${message}; ${fix}`, { cause: error });
  }
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const fix = (
    FIXES[message.includes(NO_TLS) ? 'NO_TLS' : code] ??
    'check that the server is running and that DATABASE_URL is correct'
  ).replace('DATABASE_URL', variable);
  const server = describeServer(config.databaseUrl);
  const reason = message === '' ? code : message;
  return new AppError('DATABASE_UNAVAILABLE', `the database ${server} does not respond: ${reason}; ${fix}`, {
    cause: error,
  });
}

const NOT_GRANTED =
  'commands that change tables (migrate, restore, restore accept, backup --final, ledger seal, master-key rotate) need DATABASE_OWNER_URL, the table owner\'s URL. For all other commands, make the user in DATABASE_URL a member of the quittance_runtime role, and run "quittance migrate" with DATABASE_OWNER_URL';
const NOT_OWNED =
  'use the URL of the database user that owns the database and its tables (to change the owner: "alter database … owner to …")';

/** PostgreSQL's codes for "permission denied" and, if the user may not even see the schema, "no schema has been selected". */
const FORBIDDEN = ['42501', '3F000'];

function isForbidden(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && FORBIDDEN.includes(String(error.code));
}

/** The database refuses new invoices with this text (migration 0006), with the code of a standby. */
const CLOSED = 'this ledger was closed by its final backup';

/** The `pg` library throws this text without a code. */
const NO_TLS = 'does not support SSL';

const NAME_AUTHORITY = "add the server's CA certificate file to DATABASE_URL (sslrootcert=/path/to/ca.crt)";

/** Fixes, by Node.js or PostgreSQL error code. */
const FIXES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing is listening there: start PostgreSQL, or correct the host and port in DATABASE_URL',
  ENOENT: 'the socket does not exist: start PostgreSQL, or correct the host in DATABASE_URL',
  ENOTFOUND: 'the host name is unknown: correct the host in DATABASE_URL',
  EAI_AGAIN: 'the DNS server does not respond: check the network, or use an IP address in DATABASE_URL',
  DEPTH_ZERO_SELF_SIGNED_CERT: NAME_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: NAME_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NAME_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NAME_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'the certificate is for a different name: correct the host in DATABASE_URL, or get a certificate for this name',
  NO_TLS: 'turn on TLS there or, if the server is on this machine, remove sslmode from DATABASE_URL',
  '28P01': 'correct the user or the password in DATABASE_URL',
  '28000':
    'the server does not accept this user from this machine, or requires TLS (sslmode=verify-full): correct DATABASE_URL, or pg_hba.conf on the server',
  '25006': 'this server is read-only: point DATABASE_URL to the primary',
  '3D000': 'create the database (createdb), or correct its name at the end of DATABASE_URL',
  '53300':
    "the server has no free connections: raise its max_connections, or lower the service's QUITTANCE_DATABASE_POOL",
};

/** Returns a text such as `quittance at db.example.com:5432`, never with the user or password. The URL was validated when it was read. */
function describeServer(databaseUrl: string): string {
  const { hostname, port, pathname, searchParams } = new URL(databaseUrl);
  const host = decodeURIComponent(hostname) || searchParams.get('host') || 'localhost';
  return `"${decodeURIComponent(pathname.slice(1))}" at ${host}:${port || '5432'}`;
}
