import { resolve } from 'node:path';
import { formatPinnedKeys, type PinnedKeys } from '../domain/manifest/manifest-signature.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import type { NodeSpec } from '../domain/node.ts';
import type { SettingView } from '../operator/system/views.ts';
import { describeDatabase } from '../store/db/inspect-transport.ts';
import { type AccountHex, parseAddress } from '../tron/address.ts';
import { USDT_CONTRACTS } from '../tron/usdt.ts';
import { isTronGridNode, parseNode } from './node-entry.ts';
import { type ConfigProblem, type ReadSettings, readSettings } from './read-settings.ts';
import { agreementOf, contradictions, DEFAULT_METRICS_PORT, idleSettings } from './rules.ts';
import { NODE_VARIABLES, SECRET_VARIABLES, type Settings, VARIABLES, type Variable } from './settings.ts';
import { certificateProblems } from './transport.ts';

type Role = Settings['QUITTANCE_ROLES'][number];

export type NetworkConfig = Readonly<{
  /** In order of preference. */
  nodes: readonly NodeSpec[];
  usdt: AccountHex;
  /** Operators that must agree; 1 = believe one node. */
  agreement: number;
}>;

/** The configuration of one process. It is deeply frozen. */
export type Config = Readonly<{
  /** No network is configured: everything, a local network included, runs in this one process. */
  sandbox: boolean;
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** An origin without a trailing slash, or `null`: then links carry the address that the server listens on. */
  publicUrl: string | null;
  /** The origin of the console, likewise. */
  consoleUrl: string | null;
  /** An absolute path. */
  dataDir: string;
  /** `null` stands for the embedded PostgreSQL in `dataDir`. */
  databaseUrl: string | null;
  /** For commands that change the schema; `null`: they use `databaseUrl`. */
  databaseOwnerUrl: string | null;
  databasePoolSize: number;
  roles: readonly Role[];
  networks: Readonly<Partial<Record<Network, NetworkConfig>>>;
  devnet: Readonly<{ blockMs: number; producers: number }>;
  /** `null`: metrics are off. */
  metrics: Readonly<{ host: string; port: number }> | null;
  /** Where the console listens. `null`: it is off. */
  console: Readonly<{ host: string; port: number }> | null;
  logLevel: Settings['QUITTANCE_LOG_LEVEL'];
  /** Whether requests of shops are kept for 30 days, without bodies. */
  requestLog: boolean;
  /** Whether each answer has a line in the log of the process. */
  requestLines: boolean;
  /** Whether rows are sealed and examined, and whether one that is not as it was sealed is refused. */
  rowMacs: Settings['QUITTANCE_ROW_MACS'];
  /** IP addresses, CIDR blocks, `loopback`. */
  trustProxy: readonly string[];
  /** As written. The first seals everything that must not stand in the database as plain text. `null`: not set. */
  masterKeys: readonly string[] | null;
  /** Public keys of age that backups are encrypted to; none: they are not. */
  backupRecipients: readonly string[];
  /** Where backups are made, how often, and how many are kept; `null`: none are. */
  backups: Readonly<{ directory: string; intervalMs: number; keep: number; recipients: readonly string[] }> | null;
  /** Where the signed list of addresses is, who signs it, and what is done about others; `null`: there is none. */
  addressManifest: Readonly<{ path: string; pinned: PinnedKeys; mode: 'warn' | 'enforce'; dataDir: string }> | null;
  webhooks: Readonly<{
    /** Whether webhooks of projects on test networks may go to this machine itself, and by http. */
    localTargets: boolean;
    retentionDays: number;
  }>;
  rateLimit: Readonly<{ perSecond: number; burst: number }>;
  /** Payers' questions to nodes, for each network and process. */
  lookupsPerMinute: number;
  /** Every variable, for people: it holds no secret. */
  settings: readonly SettingView[];
  /** What is odd about them, though it starts. */
  warnings: readonly string[];
}>;

export type ConfigResult =
  | { kind: 'ok'; config: Config; warnings: ConfigProblem[] }
  | { kind: 'invalid'; errors: ConfigProblem[]; warnings: ConfigProblem[] };

/**
 * Turns the environment into the configuration, or says everything that is wrong with it at once.
 * A relative QUITTANCE_DATA_DIR counts from the working directory. No message holds a secret.
 */
export function readConfig(env: NodeJS.ProcessEnv): ConfigResult {
  const read = readSettings(env);
  const errors = [...read.errors, ...contradictions(read), ...certificateProblems(env, read)];
  const warnings = [...read.warnings, ...idleSettings(read)];
  if (errors.length > 0) return { kind: 'invalid', errors, warnings };
  return {
    kind: 'ok',
    config: deepFreeze({ ...compose(read), warnings: warnings.map(({ message }) => message) }),
    warnings,
  };
}

function compose(read: ReadSettings): Omit<Config, 'warnings'> {
  const settings = read.settings as Settings;
  const networks = composeNetworks(settings);
  const sandbox = Object.keys(networks).length === 0;
  const metricsPort = settings.QUITTANCE_METRICS_PORT ?? (sandbox ? 0 : DEFAULT_METRICS_PORT);
  const consolePort = settings.QUITTANCE_CONSOLE_PORT ?? (sandbox ? 0 : 'off');
  const localTargets = settings.QUITTANCE_WEBHOOK_LOCAL_TARGETS ?? (sandbox ? 'allow' : 'deny');
  const dataDir = resolve(settings.QUITTANCE_DATA_DIR);
  const publicUrl = settings.QUITTANCE_PUBLIC_URL;
  const consoleUrl = settings.QUITTANCE_CONSOLE_URL;
  return {
    sandbox,
    host: settings.QUITTANCE_HOST,
    port: settings.QUITTANCE_PORT,
    publicUrl: publicUrl === undefined ? null : new URL(publicUrl).origin,
    consoleUrl: consoleUrl === undefined ? null : new URL(consoleUrl).origin,
    dataDir,
    databaseUrl: settings.DATABASE_URL ?? null,
    databaseOwnerUrl: settings.DATABASE_OWNER_URL ?? null,
    databasePoolSize: settings.QUITTANCE_DATABASE_POOL,
    roles: settings.QUITTANCE_ROLES,
    networks,
    devnet: { blockMs: settings.QUITTANCE_DEVNET_BLOCK_MS, producers: settings.QUITTANCE_DEVNET_PRODUCERS },
    metrics: metricsPort === 'off' ? null : { host: settings.QUITTANCE_METRICS_HOST, port: metricsPort },
    console: consolePort === 'off' ? null : { host: settings.QUITTANCE_CONSOLE_HOST, port: consolePort },
    logLevel: settings.QUITTANCE_LOG_LEVEL,
    requestLog: settings.QUITTANCE_REQUEST_LOG === 'on',
    requestLines: settings.QUITTANCE_REQUEST_LINES === 'on',
    rowMacs: settings.QUITTANCE_ROW_MACS,
    trustProxy: settings.QUITTANCE_TRUST_PROXY,
    masterKeys: settings.QUITTANCE_MASTER_KEY ?? null,
    backupRecipients: settings.QUITTANCE_BACKUP_RECIPIENT ?? [],
    backups: composeBackups(settings),
    addressManifest: composeManifest(settings, dataDir),
    webhooks: {
      localTargets: localTargets === 'allow',
      retentionDays: settings.QUITTANCE_DELIVERY_RETENTION_DAYS,
    },
    rateLimit: { perSecond: settings.QUITTANCE_RATE_LIMIT, burst: settings.QUITTANCE_RATE_BURST },
    lookupsPerMinute: settings.QUITTANCE_LOOKUPS_PER_MINUTE,
    settings: describeSettings(read, {
      ...{ QUITTANCE_DATA_DIR: dataDir, QUITTANCE_WEBHOOK_LOCAL_TARGETS: localTargets },
      ...{ QUITTANCE_METRICS_PORT: String(metricsPort), QUITTANCE_CONSOLE_PORT: String(consolePort) },
      QUITTANCE_AGREEMENT: Object.entries(networks)
        .map(([network, { agreement }]) => `${network}: ${agreement}`)
        .join(', '),
    }),
  };
}

function composeBackups(settings: Settings): Config['backups'] {
  if (settings.QUITTANCE_BACKUP_DIR === undefined) return null;
  return {
    directory: resolve(settings.QUITTANCE_BACKUP_DIR),
    intervalMs: settings.QUITTANCE_BACKUP_INTERVAL_HOURS * 3_600_000,
    keep: settings.QUITTANCE_BACKUP_KEEP,
    recipients: settings.QUITTANCE_BACKUP_RECIPIENT ?? [],
  };
}

function composeManifest(settings: Settings, dataDir: string): Config['addressManifest'] {
  const { QUITTANCE_ADDRESS_MANIFEST: path, QUITTANCE_MANIFEST_KEYS: pinned, QUITTANCE_MANIFEST_MODE: mode } = settings;
  return path === undefined || pinned === undefined ? null : { path: resolve(path), pinned, mode, dataDir };
}

function composeNetworks(settings: Settings): Config['networks'] {
  const networks: Partial<Record<Network, NetworkConfig>> = {};
  const devnetUsdt = parseAddress(settings.QUITTANCE_DEVNET_USDT ?? '');
  const contracts: Record<Network, AccountHex | null> = {
    mainnet: USDT_CONTRACTS.mainnet.account,
    nile: USDT_CONTRACTS.nile.account,
    devnet: devnetUsdt.kind === 'ok' ? devnetUsdt.account : null,
  };
  for (const network of NETWORKS) {
    const [entries, usdt] = [settings[NODE_VARIABLES[network]], contracts[network]];
    if (entries === undefined || usdt === null) continue;
    const nodes = composeNodes(entries, settings.QUITTANCE_TRON_API_KEY ?? null);
    networks[network] = { nodes, usdt, agreement: agreementOf(nodes, settings.QUITTANCE_AGREEMENT) };
  }
  return networks;
}

function composeNodes(entries: readonly string[], tronGridKey: string | null): NodeSpec[] {
  return entries.flatMap((entry) => {
    const parsed = parseNode(entry);
    if (parsed.kind !== 'ok') return [];
    // A key that went to another provider would be known to that provider.
    const { node } = parsed;
    return [isTronGridNode(node) ? { ...node, apiKey: node.apiKey ?? tronGridKey } : node];
  });
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return Object.freeze(value);
}

/** Of these a part is no secret, where the database is, and whose nodes are asked; or the value is no text. */
const IN_PART: ReadonlyMap<Variable, (value: unknown) => string> = new Map([
  ['DATABASE_URL', (url) => describeDatabase(String(url))],
  ['DATABASE_OWNER_URL', (url) => describeDatabase(String(url))],
  ['QUITTANCE_MANIFEST_KEYS', (pinned) => formatPinnedKeys(pinned as PinnedKeys)],
  ...Object.values(NODE_VARIABLES).map((name) => [name, (urls: unknown) => describeNodes(urls)] as const),
]);

/**
 * Every variable with what holds now, for people: no password, no key, and of a node's URL neither path nor options. `effective`: what is
 * decided by other settings, where a variable is not set.
 */
function describeSettings(
  { settings, present }: Pick<ReadSettings, 'settings' | 'present'>,
  effective: Partial<Record<Variable, string>>,
): SettingView[] {
  return VARIABLES.map((name) => {
    const describe = IN_PART.get(name);
    const isSecret = describe === undefined && SECRET_VARIABLES.includes(name);
    const value = settings[name];
    const shown = effective[name] ?? (value === undefined ? '' : (describe ?? plainly)(value));
    return { name, value: isSecret || shown === '' ? null : shown, isSet: present.has(name), isSecret };
  });
}

function plainly(value: unknown): string {
  return [value].flat().join(', ');
}

/** `trongrid.io (https://api.trongrid.io)`: a provider's token may stand in the path, a key in the options. */
function describeNodes(entries: unknown): string {
  const nodes = (entries as readonly string[]).map((entry) => {
    const parsed = parseNode(entry);
    if (parsed.kind !== 'ok') return '?';
    const { protocol, host } = new URL(parsed.node.url);
    return `${parsed.node.operator} (${protocol}//${host})`;
  });
  return nodes.join(', ');
}
