import Type, { type Static, type TSchema } from 'typebox';
import { parseMasterKey } from '../runtime/key-ring.ts';
import { parseAddress } from '../tron/address.ts';
import { parseCidr } from './cidr.ts';
import { parseNode } from './node-entry.ts';
import { databaseUrlProblem, listenHostProblem, plaintextHostProblem, publicUrlProblem } from './url-problems.ts';

/**
 * Every environment variable that Quittance reads. `description` completes "must be …"; the kind of the schema says how
 * the text is read: integers in decimal, arrays split at commas. docs/configuration.md lists the same names.
 */
export const Settings = Type.Object({
  QUITTANCE_PORT: integer(0, 65_535, 8080, '0 takes any free port'),
  QUITTANCE_HOST: checked(Type.String({ default: '127.0.0.1' }), listenHostProblem),
  QUITTANCE_PUBLIC_URL: Type.Optional(checked(Type.String(), publicUrlProblem)),
  QUITTANCE_DATA_DIR: checked(Type.String({ default: '.quittance' }), dataDirProblem),
  DATABASE_URL: Type.Optional(checked(Type.String(), databaseUrlProblem)),
  DATABASE_OWNER_URL: Type.Optional(checked(Type.String(), databaseUrlProblem)),
  QUITTANCE_DATABASE_POOL: integer(2, 100, 10, 'connections of this process'),
  QUITTANCE_ROLES: Type.Array(
    Type.Enum(['api', 'watcher', 'webhooks'], { description: 'one of api, watcher, webhooks' }),
    { default: ['api', 'watcher', 'webhooks'], uniqueItems: true, description: 'a list with each role at most once' },
  ),
  QUITTANCE_MAINNET_NODES: Type.Optional(nodeList()),
  QUITTANCE_NILE_NODES: Type.Optional(nodeList()),
  QUITTANCE_DEVNET_NODES: Type.Optional(nodeList()),
  QUITTANCE_DEVNET_USDT: Type.Optional(checked(Type.String(), contractProblem)),
  QUITTANCE_TRON_API_KEY: Type.Optional(
    Type.String({ pattern: '^[!-~]{1,200}$', description: '1 to 200 visible ASCII characters, as TronGrid issued it' }),
  ),
  QUITTANCE_AGREEMENT: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 9, description: 'a whole number from 1 to 9 (operators that must agree)' }),
  ),
  QUITTANCE_ALLOW_PLAINTEXT: Type.Array(checked(Type.String(), plaintextHostProblem), { default: [] }),
  QUITTANCE_DEVNET_BLOCK_MS: integer(100, 60_000, 1000, 'milliseconds between two blocks'),
  QUITTANCE_DEVNET_PRODUCERS: integer(1, 27, 5, 'block producers'),
  QUITTANCE_METRICS_PORT: Type.Optional(
    Type.Union([Type.Literal('off'), Type.Integer({ minimum: 0, maximum: 65_535 })], {
      description: 'a whole number from 0 to 65535 (0 takes any free port), or "off"',
    }),
  ),
  QUITTANCE_METRICS_HOST: checked(Type.String({ default: '127.0.0.1' }), listenHostProblem),
  QUITTANCE_LOG_LEVEL: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    default: 'info',
    description: 'one of trace, debug, info, warn, error, fatal, silent',
  }),
  QUITTANCE_TRUST_PROXY: Type.Array(checked(Type.String(), proxyProblem), { default: [] }),
  QUITTANCE_MASTER_KEY: Type.Optional(
    Type.Array(checked(Type.String(), masterKeyProblem), {
      minItems: 1,
      maxItems: 4,
      uniqueItems: true,
      description: 'a comma-separated list of 1 to 4 different keys, of which the first seals and all open',
    }),
  ),
  QUITTANCE_BACKUP_RECIPIENT: Type.Optional(
    Type.Array(checked(Type.String(), recipientProblem), {
      minItems: 1,
      maxItems: 20,
      uniqueItems: true,
      description: 'a comma-separated list of 1 to 20 different public keys of age',
    }),
  ),
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: Type.Optional(
    Type.Enum(['allow', 'deny'], {
      description: 'one of allow, deny (http and loopback, for projects of test networks)',
    }),
  ),
  QUITTANCE_DELIVERY_RETENTION_DAYS: integer(1, 3650, 90, 'days that finished deliveries and their attempts are kept'),
  QUITTANCE_RATE_LIMIT: integer(1, 100_000, 100, 'requests a second for each key'),
  QUITTANCE_RATE_BURST: integer(1, 1_000_000, 200, 'requests at once for each key'),
});

export type Settings = Static<typeof Settings>;
export type Variable = keyof Settings;

export const VARIABLES = Object.keys(Settings.properties) as Variable[];

/** Variables whose text never appears in a message. */
export const SECRET_VARIABLES: readonly Variable[] = [
  'DATABASE_URL',
  'DATABASE_OWNER_URL',
  'QUITTANCE_TRON_API_KEY',
  'QUITTANCE_MASTER_KEY',
  // Somebody may give the secret key by mistake.
  'QUITTANCE_BACKUP_RECIPIENT',
];

/** The URL of a node may hold a key, too. */
const IN_FILES: readonly Variable[] = [
  ...SECRET_VARIABLES,
  ...(['QUITTANCE_MAINNET_NODES', 'QUITTANCE_NILE_NODES', 'QUITTANCE_DEVNET_NODES'] as const),
];

/** What may stand in a file instead: `DATABASE_URL_FILE` holds the path of one with what `DATABASE_URL` takes. */
export const FILE_VARIABLES: ReadonlyMap<string, Variable> = new Map(
  IN_FILES.map((variable) => [`${variable}_FILE`, variable]),
);

function integer(minimum: number, maximum: number, fallback: number, what: string) {
  const description = `a whole number from ${minimum} to ${maximum} (${what})`;
  return Type.Integer({ minimum, maximum, default: fallback, description });
}

/** `problemOf` says what is wrong with a text and how to mend it, or `null`. */
function checked<Schema extends TSchema>(schema: Schema, problemOf: (text: string) => string | null) {
  return Type.Refine(
    schema,
    (value) => problemOf(String(value)) === null,
    (value) => problemOf(String(value)) ?? '',
  );
}

/** More than a handful of nodes adds load and no safety; 20 bounds the work of each poll. */
function nodeList() {
  return Type.Array(checked(Type.String(), nodeProblem), {
    minItems: 1,
    maxItems: 20,
    uniqueItems: true,
    description: 'a comma-separated list of 1 to 20 different URLs',
  });
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
  return `has an entry of ${text.length} characters that is not 32 bytes in base64 or hexadecimal; make one with: openssl rand -base64 32`;
}

/** `age1…`; whether the key is one shows when a backup is made. Those that are safe from quantum computers have 1,959 characters. */
function recipientProblem(text: string): string | null {
  if (text.startsWith('AGE-SECRET-KEY-')) {
    return 'is a secret key: it must not be on this machine; give the public key, which begins with age1';
  }
  return /^age1[0-9a-z]{50,3000}$/.test(text)
    ? null
    : 'has an entry that is no public key of age (age1…); make a pair with: quittance backup keygen';
}

function proxyProblem(text: string): string | null {
  if (text === 'loopback') return null;
  if (text === '') return 'an entry is empty: remove the extra comma';
  const parsed = parseCidr(text);
  return parsed.kind === 'ok'
    ? null
    : `${parsed.reason}; name your reverse proxy, or "loopback" if it runs on this machine`;
}

/** A `~` that reaches us was quoted or stands in a file: the shell did not expand it, and a directory named "~" surprises. */
function dataDirProblem(text: string): string | null {
  return text.startsWith('~') ? 'starts with "~", which only a shell expands: write the full path' : null;
}
