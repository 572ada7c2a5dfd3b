import pg from 'pg';

/** How node-postgres would reach the server of a URL. `host` is a name or an address without brackets. */
export type DatabaseTransport =
  | { kind: 'socket' }
  /** Encrypted, and both certificate and name of the server are verified. */
  | { kind: 'verified'; host: string }
  | { kind: 'unverified' | 'plain'; host: string }
  /** `reason` completes "DATABASE_URL …" and holds nothing of the URL. */
  | { kind: 'invalid'; reason: string };

/** All else that node-postgres puts there loosens the check. */
const STRICT = ['ca', 'cert', 'key'];

/**
 * Asks node-postgres itself what it makes of a URL and of the PG… variables of this process, for the text misleads:
 * `?host=` overrides the host, the last of two `sslmode=` counts, `prefer` verifies as strictly as `verify-full`, and
 * with `uselibpqcompat=true` it does not verify at all.
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
  // It would throw where nobody catches it, once the server has agreed to TLS.
  if (typeof ssl === 'string') return { kind: 'invalid', reason: 'has an option ssl that is not "true", "1" or "0"' };
  if (host.startsWith('/')) return { kind: 'socket' };
  if (ssl === true) return { kind: 'verified', host };
  if (typeof ssl !== 'object' || ssl === null) return { kind: 'plain', host };
  const isStrict = Object.keys(ssl).every((option) => STRICT.includes(option));
  return { kind: isStrict ? 'verified' : 'unverified', host };
}

/** A message of its own could show what was pasted in place of a path. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^E[A-Z]+$/.test(code)) {
    return `names a file that cannot be read (${code}) with sslrootcert, sslcert or sslkey`;
  }
  return 'has options that node-postgres refuses';
}

/** Where the database of a URL is, as node-postgres reads it, without user and password: `db.example.com:5432/quittance`. */
export function describeDatabase(connectionString: string): string {
  const { host, port, database } = new pg.Client({ connectionString });
  return `${host}:${port}/${database ?? ''}`;
}
