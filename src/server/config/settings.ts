import { isIP } from 'node:net';
import { parseAddress } from '@quittance/tron/address';
import { type PinnedKeys, parsePinnedKeys } from '../../core/domain/manifest/manifest-signature.ts';
import type { Network } from '../../core/domain/network.ts';
import { isLoopbackLink, parseUrl } from '../../core/domain/url.ts';
import { parseMasterKey } from '../../core/runtime/key-ring.ts';
import { parseCidr } from '../../faces/operator/input/readers.ts';
import { httpUrl, parseNode } from './node-entry.ts';

/** An error in a variable's value, worded as "… must be …", or an error in one entry of a list. */
export type SettingProblem = { text: string; isAboutEntry: boolean };

/** How a variable is read, and its default value. */
export type Setting<Value> = {
  isList: boolean;
  fallback: Value;
  bounds?: { minimum: number; maximum: number };
  choices?: readonly string[];
  read(text: string): { value: Value } | { problems: SettingProblem[] };
};

/** Each of these roles has to run somewhere. */
export const NEEDED_ROLES = ['api', 'watcher', 'webhooks'] as const;
const ROLES = [...NEEDED_ROLES, 'console'] as const;
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Every environment variable that Quittance reads. docs/reference/configuration.md is generated from this list. */
export const SETTINGS = {
  QUITTANCE_PORT: integer(0, 65_535, 8080, '0 uses any free port'),
  QUITTANCE_HOST: text('127.0.0.1', listenHostProblem),
  QUITTANCE_PUBLIC_URL: text(undefined, publicUrlProblem),
  QUITTANCE_DATA_DIR: text('.quittance', dataDirProblem),
  DATABASE_URL: text(undefined, databaseUrlProblem),
  DATABASE_OWNER_URL: text(undefined, databaseUrlProblem),
  QUITTANCE_DATABASE_POOL: integer(2, 100, 10, 'database connections for this process'),
  QUITTANCE_ROLES: list<(typeof ROLES)[number], readonly (typeof ROLES)[number][]>([...ROLES], roleProblem, {
    is: 'a list with each role at most once',
    max: ROLES.length,
  }),
  QUITTANCE_MAINNET_NODES: nodeList(),
  QUITTANCE_NILE_NODES: nodeList(),
  QUITTANCE_DEVNET_NODES: nodeList(),
  QUITTANCE_DEVNET_USDT: text(undefined, contractProblem),
  QUITTANCE_TRON_API_KEY: text(undefined, (key) =>
    /^[!-~]{1,200}$/.test(key) ? null : 'must be 1 to 200 visible ASCII characters, as TronGrid issued it',
  ),
  QUITTANCE_AGREEMENT: integer(1, 9, undefined, 'number of operators that must agree'),
  QUITTANCE_ALLOW_PLAINTEXT: list<string, string[]>([], plaintextHostProblem),
  QUITTANCE_DEVNET_BLOCK_MS: integer(100, 60_000, 1000, 'milliseconds between two blocks'),
  QUITTANCE_DEVNET_PRODUCERS: integer(1, 27, 5, 'block producers'),
  QUITTANCE_CONSOLE_PORT: portOrOff(),
  QUITTANCE_CONSOLE_HOST: text('127.0.0.1', listenHostProblem),
  QUITTANCE_CONSOLE_URL: text(undefined, consoleUrlProblem),
  QUITTANCE_METRICS_PORT: portOrOff(),
  QUITTANCE_METRICS_HOST: text('127.0.0.1', listenHostProblem),
  QUITTANCE_LOG_LEVEL: oneOf(LEVELS, 'info'),
  QUITTANCE_REQUEST_LOG: oneOf(['on', 'off'] as const, 'on'),
  QUITTANCE_REQUEST_LINES: oneOf(['on', 'off'] as const, 'off'),
  QUITTANCE_ROW_MACS: oneOf(['ledger', 'off', 'warn', 'require'] as const, 'ledger'),
  QUITTANCE_TRUST_PROXY: list<string, string[]>([], proxyProblem),
  QUITTANCE_MASTER_KEY: list<string, string[] | undefined>(undefined, masterKeyProblem, {
    is: 'a comma-separated list of 1 to 4 different keys; the first encrypts, and every key can decrypt',
    max: 4,
  }),
  QUITTANCE_BACKUP_RECIPIENT: list<string, string[] | undefined>(undefined, recipientProblem, {
    is: 'a comma-separated list of 1 to 20 different age public keys',
    max: 20,
  }),
  QUITTANCE_BACKUP_DIR: text(undefined, dataDirProblem),
  QUITTANCE_BACKUP_INTERVAL_HOURS: integer(1, 168, 24, 'hours between two backups'),
  QUITTANCE_BACKUP_KEEP: integer(2, 1000, 14, 'number of verified backups to keep'),
  QUITTANCE_ADDRESS_MANIFEST: text(undefined, dataDirProblem),
  QUITTANCE_MANIFEST_KEYS: single<PinnedKeys | undefined>(undefined, (keys) => {
    const parsed = parsePinnedKeys(keys);
    return parsed.kind === 'ok' ? { value: parsed.pinned } : parsed.reason;
  }),
  QUITTANCE_MANIFEST_MODE: oneOf(['warn', 'enforce'] as const, 'warn'),
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: oneOf(
    ['allow', 'deny'] as const,
    undefined,
    ' (http and loopback, for test network projects)',
  ),
  QUITTANCE_DELIVERY_RETENTION_DAYS: integer(1, 3650, 90, 'days to keep finished deliveries and their attempts'),
  QUITTANCE_RATE_LIMIT: integer(1, 100_000, 100, 'requests per second for each key'),
  QUITTANCE_RATE_BURST: integer(1, 1_000_000, 200, 'burst of requests allowed for each key'),
  QUITTANCE_LOOKUPS_PER_MINUTE: integer(1, 6000, 6, 'number of transactions that payers may look up at nodes'),
};

export type Settings = {
  [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name] extends Setting<infer Value> ? Value : never;
};
export type Variable = keyof Settings;

export const VARIABLES = Object.keys(SETTINGS) as Variable[];

/** Variables whose value never appears in a message. */
export const SECRET_VARIABLES: readonly Variable[] = [
  'DATABASE_URL',
  'DATABASE_OWNER_URL',
  'QUITTANCE_TRON_API_KEY',
  'QUITTANCE_MASTER_KEY',
  // The operator may enter the secret key here by mistake.
  'QUITTANCE_BACKUP_RECIPIENT',
];

/** The variable that contains each network's nodes. */
export const NODE_VARIABLES: Readonly<Record<Network, Extract<Variable, `QUITTANCE_${string}_NODES`>>> = {
  mainnet: 'QUITTANCE_MAINNET_NODES',
  nile: 'QUITTANCE_NILE_NODES',
  devnet: 'QUITTANCE_DEVNET_NODES',
};

/** A node's URL may also contain a key. */
const IN_FILES: readonly Variable[] = [...SECRET_VARIABLES, ...Object.values(NODE_VARIABLES)];

/** Variables that can be read from a file: `DATABASE_URL_FILE` is the path to a file with the value for `DATABASE_URL`. */
export const FILE_VARIABLES: ReadonlyMap<string, Variable> = new Map(
  IN_FILES.map((variable) => [`${variable}_FILE`, variable]),
);

function integer<Fallback extends number | undefined>(
  minimum: number,
  maximum: number,
  fallback: Fallback,
  what: string,
): Setting<number | Fallback> {
  const setting = single<number | Fallback>(fallback, (text) => {
    const value = wholeNumber(text, minimum, maximum);
    return value === null ? `must be a whole number from ${minimum} to ${maximum} (${what})` : { value };
  });
  return { ...setting, bounds: { minimum, maximum } };
}

function wholeNumber(text: string, minimum: number, maximum: number): number | null {
  const value = Number(text);
  return /^-?\d{1,15}$/.test(text) && value >= minimum && value <= maximum ? value : null;
}

function portOrOff(): Setting<number | 'off' | undefined> {
  return single(undefined, (text) => {
    const value = text === 'off' ? text : wholeNumber(text, 0, 65_535);
    return value === null ? 'must be a whole number from 0 to 65535 (0 uses any free port), or "off"' : { value };
  });
}

function oneOf<const Value extends string, Fallback extends Value | undefined>(
  values: readonly Value[],
  fallback: Fallback,
  what = '',
): Setting<Value | Fallback> {
  const setting = single<Value | Fallback>(fallback, (text) => {
    const value = values.find((each) => each === text);
    return value === undefined ? `must be one of ${values.join(', ')}${what}` : { value };
  });
  return { ...setting, choices: values };
}

/** `problemOf` returns the problem and its fix, or `null`. */
function text<Fallback extends string | undefined>(fallback: Fallback, problemOf: (text: string) => string | null) {
  return single<string | Fallback>(fallback, (value) => problemOf(value) ?? { value });
}

function single<Value>(fallback: Value, read: (text: string) => { value: Value } | string): Setting<Value> {
  return {
    isList: false,
    fallback,
    read: (text) => {
      const found = read(text);
      return typeof found === 'string' ? { problems: [{ text: found, isAboutEntry: false }] } : found;
    },
  };
}

/** Reports the problems with the entries. If there are none, reports if there are too many entries or duplicates. */
function list<Entry extends string, Value extends readonly Entry[] | undefined>(
  fallback: Value,
  problemOf: (entry: string) => string | null,
  different?: { is: string; max: number },
): Setting<Value> {
  return {
    isList: true,
    fallback,
    read: (text) => {
      const entries = text.split(',').map((entry) => entry.trim());
      const problems = entries.map(problemOf).filter((problem) => problem !== null);
      if (problems.length > 0) return { problems: problems.map((problem) => ({ text: problem, isAboutEntry: true })) };
      if (different && (entries.length > different.max || new Set(entries).size < entries.length))
        return { problems: [{ text: `must be ${different.is}`, isAboutEntry: false }] };
      // Each entry was validated.
      return { value: entries as readonly string[] as Value };
    },
  };
}

function roleProblem(entry: string): string | null {
  return ROLES.some((role) => role === entry) ? null : `${showValue(entry)} must be one of ${ROLES.join(', ')}`;
}

/** More than a handful of nodes add load, but no safety. With at most 20 nodes, the work for each poll is bounded. */
function nodeList(): Setting<string[] | undefined> {
  return list(undefined, nodeProblem, { is: 'a comma-separated list of 1 to 20 different URLs', max: 20 });
}

function nodeProblem(text: string): string | null {
  const parsed = parseNode(text);
  return parsed.kind === 'ok' ? null : parsed.reason;
}

function contractProblem(text: string): string | null {
  const parsed = parseAddress(text);
  return parsed.kind === 'ok' ? null : `is not a contract address: ${parsed.reason}`;
}

function masterKeyProblem(text: string): string | null {
  if (parseMasterKey(text) !== null) return null;
  return `has an entry of ${text.length} characters that is not 32 bytes in base64 or hexadecimal; create one with: openssl rand -base64 32`;
}

/** `age1…`. Whether the key is valid becomes clear only when a backup is made. Post-quantum keys have 1,959 characters. */
function recipientProblem(text: string): string | null {
  if (text.startsWith('AGE-SECRET-KEY-')) {
    return 'is a secret key, which must not be on this machine: use the public key, which begins with age1';
  }
  return /^age1[0-9a-z]{50,3000}$/.test(text)
    ? null
    : "has an entry that isn't an age public key (age1…); create a key pair with: quittance backup keygen";
}

function proxyProblem(text: string): string | null {
  if (text === 'loopback') return null;
  if (text === '') return 'an entry is empty: remove the extra comma';
  const parsed = parseCidr(text);
  return parsed.kind === 'ok'
    ? null
    : `${parsed.reason}; use the address of your reverse proxy, or "loopback" if the proxy runs on this machine`;
}

/** If the text still contains a `~`, it was quoted or is in a file, so no shell expanded it. A directory named "~" would be a surprise. */
function dataDirProblem(text: string): string | null {
  return text.startsWith('~') ? 'starts with "~", which only a shell expands: use the full path' : null;
}

/** Shows a value in an error message: quoted, shortened, and without the parts of URLs before `@` and after `?` and `#`. */
export function showValue(text: string): string {
  const masked = maskCredentials(text).replace(/[?#].*$/, (rest) => (text.includes('://') ? `${rest[0]}…` : rest));
  return JSON.stringify(masked.length > 80 ? `${masked.slice(0, 80)}…` : masked);
}

function maskCredentials(text: string): string {
  // An "@" after "?" or "#" may end a password or be part of a key, so neither side is shown.
  if (/^[a-z+]+:\/\/[^?#]*[?#].*@/i.test(text)) return text.replace(/:\/\/.*$/, '://…');
  return text.replace(/^([a-z+]+:\/\/)?.*@/i, '$1…@');
}

/** The origin that payers see, such as `https://pay.example.com`. */
function publicUrlProblem(text: string): string | null {
  const url = httpUrl(text);
  if (url === null) return 'is not an http:// or https:// URL; use a URL such as https://pay.example.com';
  if (hasCredentials(url)) return 'contains a user name or password: remove it';
  if (url.pathname !== '/' || /[?#]/.test(text)) return `must contain nothing after the host: write ${url.origin}`;
  return null;
}

/** The console's origin. Browsers keep its cookie and offer passkeys only over https or on localhost. */
function consoleUrlProblem(text: string): string | null {
  const problem = publicUrlProblem(text);
  if (problem !== null) return problem.replace('https://pay.', 'https://console.');
  const url = new URL(text);
  if (url.protocol === 'https:' || isLoopbackLink(url.hostname)) return null;
  return `must be https://, because http:// is allowed only for this machine itself: write https://${url.host}`;
}

/** Never show the value: a malformed URL may contain its password anywhere. */
function databaseUrlProblem(text: string): string | null {
  const form = 'write postgres://user:password@host:5432/database';
  const scheme = /^([a-z][a-z0-9+.-]{0,20}):\/\//i.exec(text)?.[1];
  if (scheme === undefined) return `does not start with postgres://; ${form}`;
  if (!/^postgres(ql)?$/.test(scheme)) return `starts with ${scheme}://, but only PostgreSQL is supported; ${form}`;
  const url = parseUrl(text);
  if (url === null || text.includes('#')) {
    return `is not a well-formed URL: percent-encode special characters in the password ("/" is %2F, "#" is %23, "@" is %40); ${form}`;
  }
  if (url.pathname.replace(/^\//, '') === '') return `contains no database name: add it at the end; ${form}`;
  return null;
}

/** A server can listen on an IP address or a host name, without a scheme, brackets or port. */
function listenHostProblem(text: string): string | null {
  if (isIP(text) !== 0) return null;
  if (/^\[.*\]$/.test(text)) return `is in brackets: write ${text.slice(1, -1)}`;
  if (/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(text)) return null;
  return 'is not an IP address or host name: use a value such as 127.0.0.1, or 0.0.0.0 for all interfaces, without a scheme or port';
}

/** A single host, as in a URL but without brackets. */
function plaintextHostProblem(text: string): string | null {
  if (isIP(text) !== 0 || /^[a-z0-9_]([a-z0-9._-]{0,251}[a-z0-9_])?$/i.test(text)) return null;
  return 'an entry is not a host name or IP address: use a value such as 10.0.0.5 or db.internal, without a scheme, port or network prefix';
}

function hasCredentials(url: URL): boolean {
  return url.username !== '' || url.password !== '';
}
