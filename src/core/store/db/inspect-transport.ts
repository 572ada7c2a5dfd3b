import pg from 'pg';

/** How node-postgres connects to the server in a URL. `host` is a name or an address, without brackets. */
type DatabaseTransport =
  | { kind: 'socket' }
  /** Encrypted, and the server's certificate and name are verified. */
  | { kind: 'verified'; host: string }
  | { kind: 'unverified' | 'plain'; host: string }
  /** `reason` completes "DATABASE_URL …" and doesn't contain any part of the URL. */
  | { kind: 'invalid'; reason: string };

/** Any other option that node-postgres sets for TLS weakens the verification. */
const STRICT = ['ca', 'cert', 'key'];

/**
 * Asks node-postgres itself how it interprets a URL and this process's PG… variables, because the text alone is misleading: `?host=`
 * overrides the host, the last of two `sslmode=` counts, `prefer` verifies as strictly as `verify-full`, and with `uselibpqcompat=true` it
 * doesn't verify at all.
 */
export function inspectTransport(connectionString: string): DatabaseTransport {
  let client: pg.Client;
  try {
    client = new pg.Client({ connectionString });
  } catch (error) {
    return { kind: 'invalid', reason: reasonOf(error) };
  }
  const { host } = client;
  const ssl: unknown = client.ssl;
  // As soon as the server accepts TLS, this value would cause an error that no code catches.
  if (typeof ssl === 'string') return { kind: 'invalid', reason: 'has an ssl option other than "true", "1" or "0"' };
  if (host.startsWith('/')) return { kind: 'socket' };
  if (ssl === true) return { kind: 'verified', host };
  if (typeof ssl !== 'object' || ssl === null) return { kind: 'plain', host };
  const isStrict = Object.keys(ssl).every((option) => STRICT.includes(option));
  return { kind: isStrict ? 'verified' : 'unverified', host };
}

/** The original message could contain a secret that someone pasted instead of a path. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^E[A-Z]+$/.test(code)) {
    return `has an sslrootcert, sslcert or sslkey file that cannot be read (${code})`;
  }
  return 'has options that node-postgres rejects';
}

/** Describes the database in a URL as node-postgres understands it, without the user and password: `db.example.com:5432/quittance`. */
export function describeDatabase(connectionString: string): string {
  const { host, port, database } = new pg.Client({ connectionString });
  return `${host}:${port}/${database ?? ''}`;
}
