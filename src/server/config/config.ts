import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { type AccountHex, parseAddress } from '@quittance/tron/address';
import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import { formatPinnedKeys, type PinnedKeys } from '../../core/domain/manifest/manifest-signature.ts';
import { isLocalNetwork, keyMode, NETWORKS, type Network } from '../../core/domain/network.ts';
import { type NodeSpec, showsBytes, urlsOf } from '../../core/domain/node.ts';
import { isLoopback, isLoopbackLink } from '../../core/domain/url.ts';
import { parseMasterKey } from '../../core/runtime/key-ring.ts';
import { describeDatabase, inspectTransport } from '../../core/store/db/inspect-transport.ts';
import type { SettingView } from '../../faces/operator/system/show-system.ts';
import { httpUrl, isTronGridNode, parseNode } from './node-entry.ts';
import { type ConfigProblem, type ReadSettings, readSettings } from './read-settings.ts';
import {
  NEEDED_ROLES,
  NODE_VARIABLES,
  SECRET_VARIABLES,
  type Settings,
  showValue,
  VARIABLES,
  type Variable,
} from './settings.ts';

export type NetworkConfig = Readonly<{
  /** The nodes, in order of preference. */
  nodes: readonly NodeSpec[];
  usdt: AccountHex;
  /** The number of operators that must agree. 1 means that a single node is trusted. */
  agreement: number;
}>;

/** One process's configuration. It is deeply frozen. */
export type Config = Readonly<ReturnType<typeof compose>> & {
  /** Suspicious settings that don't prevent the service from starting. */
  readonly warnings: readonly string[];
};

export type ConfigResult =
  | { kind: 'ok'; config: Config; warnings: ConfigProblem[] }
  | { kind: 'invalid'; errors: ConfigProblem[]; warnings: ConfigProblem[] };

/**
 * Reads the configuration from the environment, or returns all of its errors at once. A relative QUITTANCE_DATA_DIR is resolved against the
 * working directory. Messages contain no secrets.
 */
export function readConfig(env: NodeJS.ProcessEnv): ConfigResult {
  const read = readSettings(env);
  const [errors, warnings] = [[...read.errors], [...read.warnings]];
  addContradictions(read, adderTo(errors));
  addCertificateProblem(env, read, adderTo(errors));
  addIdleSettings(read, adderTo(warnings));
  if (errors.length > 0) return { kind: 'invalid', errors, warnings };
  return {
    kind: 'ok',
    config: deepFreeze({ ...compose(read), warnings: warnings.map(({ message }) => message) }),
    warnings,
  };
}

function compose(read: ReadSettings) {
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
    /** This is true if no network is configured. Everything then runs in this one process, including a local network. */
    sandbox,
    host: settings.QUITTANCE_HOST,
    /** 0 selects any free port. */
    port: settings.QUITTANCE_PORT,
    /** An origin without a trailing slash. If this is `null`, links contain the address that the server listens on. */
    publicUrl: publicUrl === undefined ? null : new URL(publicUrl).origin,
    /** The console's origin, in the same form. */
    consoleUrl: consoleUrl === undefined ? null : new URL(consoleUrl).origin,
    /** An absolute path. */
    dataDir,
    /** `null` selects the embedded PostgreSQL in `dataDir`. */
    databaseUrl: settings.DATABASE_URL ?? null,
    /** The connection for commands that change the schema. If `null`, they use `databaseUrl`. */
    databaseOwnerUrl: settings.DATABASE_OWNER_URL ?? null,
    databasePoolSize: settings.QUITTANCE_DATABASE_POOL,
    roles: settings.QUITTANCE_ROLES,
    networks,
    devnet: { blockMs: settings.QUITTANCE_DEVNET_BLOCK_MS, producers: settings.QUITTANCE_DEVNET_PRODUCERS },
    /** `null` means that metrics are off. */
    metrics: metricsPort === 'off' ? null : { host: settings.QUITTANCE_METRICS_HOST, port: metricsPort },
    /** The address that the console listens on. `null` means that the console is off. */
    console: consolePort === 'off' ? null : { host: settings.QUITTANCE_CONSOLE_HOST, port: consolePort },
    logLevel: settings.QUITTANCE_LOG_LEVEL,
    /** Whether the shops' requests are stored for 30 days, without bodies. */
    requestLog: settings.QUITTANCE_REQUEST_LOG === 'on',
    /** Whether each response is logged. */
    requestLines: settings.QUITTANCE_REQUEST_LINES === 'on',
    /** Whether rows are sealed and checked, and whether a row with a wrong seal is refused. */
    rowMacs: settings.QUITTANCE_ROW_MACS,
    /** IP addresses, CIDR blocks, `loopback`. */
    trustProxy: settings.QUITTANCE_TRUST_PROXY,
    /** The keys as configured. The first one encrypts all secrets in the database. `null` means that the setting is absent. */
    masterKeys: settings.QUITTANCE_MASTER_KEY ?? null,
    /** The age public keys that backups are encrypted with. If there are none, backups aren't encrypted. */
    backupRecipients: settings.QUITTANCE_BACKUP_RECIPIENT ?? [],
    /** Where scheduled backups are stored, how often they are made, and how many are kept. `null` means no backups. */
    backups: composeBackups(settings),
    /**
     * The path of the address manifest, the keys that must sign it, and what happens to unlisted addresses. `null` means that there's no
     * manifest.
     */
    addressManifest: composeManifest(settings, dataDir),
    webhooks: {
      /** Whether webhooks of projects on test networks may be sent to this machine, and over http. */
      localTargets: localTargets === 'allow',
      retentionDays: settings.QUITTANCE_DELIVERY_RETENTION_DAYS,
    },
    rateLimit: { perSecond: settings.QUITTANCE_RATE_LIMIT, burst: settings.QUITTANCE_RATE_BURST },
    /** The limit on payers' look-ups at nodes, per network and process. */
    lookupsPerMinute: settings.QUITTANCE_LOOKUPS_PER_MINUTE,
    /** All variables, for display. They contain no secrets. */
    settings: describeSettings(read, {
      ...{ QUITTANCE_DATA_DIR: dataDir, QUITTANCE_WEBHOOK_LOCAL_TARGETS: localTargets },
      ...{ QUITTANCE_METRICS_PORT: String(metricsPort), QUITTANCE_CONSOLE_PORT: String(consolePort) },
      QUITTANCE_AGREEMENT: Object.entries(networks)
        .map(([network, { agreement }]) => `${network}: ${agreement}`)
        .join(', '),
    }),
  };
}

function composeBackups(settings: Settings) {
  if (settings.QUITTANCE_BACKUP_DIR === undefined) return null;
  return {
    directory: resolve(settings.QUITTANCE_BACKUP_DIR),
    intervalMs: settings.QUITTANCE_BACKUP_INTERVAL_HOURS * 3_600_000,
    keep: settings.QUITTANCE_BACKUP_KEEP,
    recipients: settings.QUITTANCE_BACKUP_RECIPIENT ?? [],
  };
}

function composeManifest(settings: Settings, dataDir: string) {
  const { QUITTANCE_ADDRESS_MANIFEST: path, QUITTANCE_MANIFEST_KEYS: pinned, QUITTANCE_MANIFEST_MODE: mode } = settings;
  return path === undefined || pinned === undefined ? null : { path: resolve(path), pinned, mode, dataDir };
}

function composeNetworks(settings: Settings): Partial<Record<Network, NetworkConfig>> {
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
    // The TronGrid key is sent only to TronGrid, because any other provider would learn it.
    const { node } = parsed;
    return [isTronGridNode(node) ? { ...node, apiKey: node.apiKey ?? tronGridKey } : node];
  });
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return Object.freeze(value);
}

/**
 * Variables that may be shown only in part, such as the database's host and the operators of nodes, and variables whose value isn't a
 * string.
 */
const IN_PART: ReadonlyMap<Variable, (value: unknown) => string> = new Map([
  ['DATABASE_URL', (url) => describeDatabase(String(url))],
  ['DATABASE_OWNER_URL', (url) => describeDatabase(String(url))],
  ['QUITTANCE_MANIFEST_KEYS', (pinned) => formatPinnedKeys(pinned as PinnedKeys)],
  ...Object.values(NODE_VARIABLES).map((name) => [name, (urls: unknown) => describeNodes(urls)] as const),
]);

/**
 * Lists every variable with its effective value, for display. Passwords and keys are left out, and so are the paths and options of node
 * URLs. `effective` contains the values that other settings determine for variables that aren't set.
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

/** `trongrid.io (https://api.trongrid.io)`. The path may contain a provider's token, and the options a key. */
function describeNodes(entries: unknown): string {
  const nodes = (entries as readonly string[]).map((entry) => {
    const parsed = parseNode(entry);
    if (parsed.kind !== 'ok') return '?';
    const { protocol, host } = new URL(parsed.node.url);
    return `${parsed.node.operator} (${protocol}//${host})`;
  });
  return nodes.join(', ');
}

/**
 * This port is used on real networks. Prometheus's port list reserves it for exporters, and it isn't a default port of Prometheus, Grafana
 * or PostgreSQL.
 */
const DEFAULT_METRICS_PORT = 9464;

const NODE_LISTS = Object.values(NODE_VARIABLES);
const DATABASE_VARIABLES = ['DATABASE_URL', 'DATABASE_OWNER_URL'] as const;

/** Adds a problem to a list. The message follows the variable's name. */
type Add = (variable: string, message: string) => void;
type Read = Pick<ReadSettings, 'settings' | 'present'>;

function adderTo(problems: ConfigProblem[]): Add {
  return (variable, message) => void problems.push({ variable, message: `${variable} ${message}` });
}

/** Finds variables that are valid on their own but contradict each other. */
function addContradictions({ settings, present }: Read, add: Add): void {
  const isSet = (variable: Variable) => present.has(variable);
  if (isSet('QUITTANCE_DEVNET_NODES') && !isSet('QUITTANCE_DEVNET_USDT')) {
    add(
      'QUITTANCE_DEVNET_USDT',
      'is not set, but QUITTANCE_DEVNET_NODES requires it: set it to the USDT contract of that network.',
    );
  }
  if (isSet('QUITTANCE_DEVNET_USDT') && !isSet('QUITTANCE_DEVNET_NODES')) {
    add('QUITTANCE_DEVNET_USDT', 'has no effect without QUITTANCE_DEVNET_NODES: set both, or unset this one.');
  }
  addNodeProblems({ settings, present }, add);
  if (isSet('DATABASE_OWNER_URL') && !isSet('DATABASE_URL')) {
    add(
      'DATABASE_OWNER_URL',
      'has no effect without DATABASE_URL, which the service and most commands use: set DATABASE_URL too.',
    );
  }
  if (isSet('QUITTANCE_ADDRESS_MANIFEST') !== isSet('QUITTANCE_MANIFEST_KEYS')) {
    add(
      isSet('QUITTANCE_ADDRESS_MANIFEST') ? 'QUITTANCE_MANIFEST_KEYS' : 'QUITTANCE_ADDRESS_MANIFEST',
      'is not set: a manifest needs its signing keys, and the keys need a manifest. Set both, or neither.',
    );
  }
  if (isSet('QUITTANCE_MANIFEST_MODE') && !isSet('QUITTANCE_ADDRESS_MANIFEST')) {
    add('QUITTANCE_MANIFEST_MODE', 'has no effect without QUITTANCE_ADDRESS_MANIFEST: set both, or unset this one.');
  }
  if (settings.QUITTANCE_ROW_MACS === 'require' && isSet('DATABASE_URL') && !isSet('QUITTANCE_MASTER_KEY')) {
    add(
      'QUITTANCE_ROW_MACS',
      'is require, but rows are sealed with the master key, which is not set: set the same QUITTANCE_MASTER_KEY for every process.',
    );
  }
  addTransportProblems({ settings, present }, add);
  const masterKeys = settings.QUITTANCE_MASTER_KEY ?? [];
  if (new Set(masterKeys.map((text) => parseMasterKey(text)?.id)).size < masterKeys.length) {
    add('QUITTANCE_MASTER_KEY', 'contains the same key twice, in base64 and in hexadecimal: remove one of them.');
  }
  const roles = settings.QUITTANCE_ROLES;
  if (roles !== undefined && NEEDED_ROLES.some((role) => !roles.includes(role))) {
    const shown = showValue(roles.join(','));
    if (!isSet('DATABASE_URL')) {
      add(
        'QUITTANCE_ROLES',
        `is ${shown}: processes with different roles share one database. Set DATABASE_URL, or unset this variable to run all roles in this process.`,
      );
    }
    if (!NODE_LISTS.some(isSet)) {
      add(
        'QUITTANCE_ROLES',
        `is ${shown}: the sandbox runs all roles in one process. Set the same ${NODE_LISTS.join(' or ')} as in the other processes, or unset this variable.`,
      );
    }
  }
  const { QUITTANCE_PUBLIC_URL: publicUrl, QUITTANCE_PORT: port, QUITTANCE_METRICS_PORT: metricsPort } = settings;
  const url = publicUrl === undefined ? null : httpUrl(publicUrl);
  if (isSet('QUITTANCE_MAINNET_NODES') && url?.protocol === 'http:' && !isLoopbackLink(url.hostname)) {
    add('QUITTANCE_PUBLIC_URL', `is ${showValue(url.origin)}: with real money on mainnet it must start with https://.`);
  }
  const isSameHost = settings.QUITTANCE_HOST === settings.QUITTANCE_METRICS_HOST;
  const usedMetricsPort = metricsPort ?? (NODE_LISTS.some(isSet) ? DEFAULT_METRICS_PORT : 0);
  if (port !== undefined && port !== 0 && port === usedMetricsPort && isSameHost) {
    const variable = isSet('QUITTANCE_METRICS_PORT') ? 'QUITTANCE_METRICS_PORT' : 'QUITTANCE_PORT';
    add(variable, `is ${port}, but the API and the metrics can't share a port: change one of them.`);
  }
  addBackupProblems(present, add);
  addConsoleProblems({ settings, present }, add);
}

function addBackupProblems(present: Read['present'], add: Add): void {
  const isOn = present.has('QUITTANCE_BACKUP_DIR');
  for (const variable of ['QUITTANCE_BACKUP_INTERVAL_HOURS', 'QUITTANCE_BACKUP_KEEP'] as const) {
    if (present.has(variable) && !isOn)
      add(variable, 'has no effect without QUITTANCE_BACKUP_DIR: set both, or unset this one.');
  }
  if (!isOn || !present.has('DATABASE_URL') || present.has('QUITTANCE_MASTER_KEY')) return;
  add(
    'QUITTANCE_BACKUP_DIR',
    "is set, but without the master key its backups can't be authenticated: set the same QUITTANCE_MASTER_KEY for every process.",
  );
}

function addConsoleProblems({ settings, present }: Read, add: Add): void {
  const { QUITTANCE_CONSOLE_PORT: port, QUITTANCE_ROLES: roles = [] } = settings;
  if (typeof port !== 'number' && roles.length === 1 && roles[0] === 'console') {
    add('QUITTANCE_CONSOLE_PORT', 'is not set, so a process with only the console role would do nothing: set it.');
  }
  const others = [
    ['QUITTANCE_PORT', settings.QUITTANCE_PORT, settings.QUITTANCE_HOST],
    ['QUITTANCE_METRICS_PORT', settings.QUITTANCE_METRICS_PORT, settings.QUITTANCE_METRICS_HOST],
  ] as const;
  for (const [variable, other, host] of others) {
    if (typeof port === 'number' && port !== 0 && port === other && host === settings.QUITTANCE_CONSOLE_HOST) {
      add('QUITTANCE_CONSOLE_PORT', `is ${port}, the same as ${variable}: change one of them.`);
    }
  }
  if (present.has('QUITTANCE_CONSOLE_URL') && port === 'off') {
    add('QUITTANCE_CONSOLE_URL', 'has no effect while QUITTANCE_CONSOLE_PORT is off: unset it, or set the port.');
  }
}

/** By default, two operators must agree. If only one operator is configured, one node is enough. */
function agreementOf(nodes: readonly NodeSpec[], setting: number | undefined): number {
  return setting ?? Math.min(2, operatorsOf(nodes).size);
}

function operatorsOf(nodes: readonly NodeSpec[]): Set<string> {
  return new Set(nodes.map(({ operator }) => operator));
}

/** Returns the node lists that are set and well-formed. */
function nodeLists({ settings, present }: Read) {
  return NETWORKS.flatMap((network) => {
    const variable = NODE_VARIABLES[network];
    if (!present.has(variable)) return [];
    const parsed = settings[variable]?.map(parseNode) ?? [];
    const nodes = parsed.flatMap((entry) => (entry.kind === 'ok' ? [entry.node] : []));
    return nodes.length === 0 ? [] : [{ network, variable, nodes }];
  });
}

function addNodeProblems(read: Read, add: Add): void {
  const agreement = read.settings.QUITTANCE_AGREEMENT;
  for (const { variable, nodes } of nodeLists(read)) {
    if (new Set(nodes.map(({ url }) => url)).size < nodes.length) {
      add(variable, 'must be a list of different URLs, but one node is listed twice.');
    }
    const operators = operatorsOf(nodes);
    const { size } = operators;
    if (agreement === undefined || agreement <= size) continue;
    const from = `only ${size === 1 ? 'one operator' : `${size} operators`} (${[...operators].join(', ')})`;
    add(
      'QUITTANCE_AGREEMENT',
      `is ${agreement}, but ${variable} has nodes from ${from}: add nodes from other operators, name each node's operator with #operator=, or set this variable to at most ${size}.`,
    );
  }
}

/** Finds settings that let others read or change data in transit. */
function addTransportProblems(read: Read, add: Add): void {
  const allowed = read.settings.QUITTANCE_ALLOW_PLAINTEXT ?? [];
  for (const variable of DATABASE_VARIABLES) {
    const url = read.settings[variable];
    const transport = url === undefined ? null : inspectTransport(url);
    if (transport === null || transport.kind === 'socket' || transport.kind === 'verified') continue;
    if (transport.kind === 'invalid') {
      add(variable, `(value not shown): it ${transport.reason}.`);
      continue;
    }
    const { host } = transport;
    if (isTrusted(host, allowed)) continue;
    const how = transport.kind === 'plain' ? 'without TLS' : "over TLS that doesn't verify the server";
    add(
      variable,
      `connects to ${host} ${how}, so anyone on the network path can read and change everything: add "sslmode=verify-full&sslrootcert=/path/to/ca.crt" to it (sslrootcert only for your own CA), or list ${host} in QUITTANCE_ALLOW_PLAINTEXT if the network path is otherwise secure.`,
    );
  }
  for (const { network, variable, nodes } of nodeLists(read)) {
    if (isLocalNetwork(network)) continue;
    const urls = nodes.flatMap(urlsOf).map((url) => new URL(url));
    const plain = urls.filter(
      ({ protocol, hostname }) => /^(http|grpc):$/.test(protocol) && !isTrusted(hostname, allowed),
    );
    for (const host of new Set(plain.map(({ hostname }) => hostname)))
      add(
        variable,
        `connects to ${host} in plain text, so anyone on the network path can forge its answers: use https:// or grpcs://, or list ${host} in QUITTANCE_ALLOW_PLAINTEXT if the network path is otherwise secure.`,
      );
  }
}

const AT_STAKE: readonly Variable[] = [
  'DATABASE_URL',
  ...NETWORKS.filter((network) => !isLocalNetwork(network)).map((network) => NODE_VARIABLES[network]),
];

/** Finds the Node.js variable that makes every TLS connection in the process accept any certificate. */
function addCertificateProblem(env: NodeJS.ProcessEnv, { present }: Read, add: Add): void {
  const variable = 'NODE_TLS_REJECT_UNAUTHORIZED';
  if (env[variable] !== '0' || !AT_STAKE.some((each) => present.has(each))) return;
  add(
    variable,
    'is "0", so Quittance would not verify the certificate of any node, database or receiver: unset it. If you use your own CA, set NODE_EXTRA_CA_CERTS to its file.',
  );
}

/** Whether plaintext to this host stays on this machine or is explicitly allowed. */
function isTrusted(host: string, allowed: readonly string[]): boolean {
  const name = canonical(host);
  return isLoopback(name) || allowed.map(canonical).includes(name);
}

/** Normalises a host: `[FD00::05]` → `fd00::5`. */
function canonical(host: string): string {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  return isIP(bare) === 6 && !bare.includes('%') ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare;
}

/** Finds settings that have no effect, and settings that are missing but should probably be set. */
function addIdleSettings({ settings, present }: Read, warn: Add): void {
  if (present.has('QUITTANCE_BACKUP_DIR') && settings.QUITTANCE_ROLES?.includes('watcher') === false) {
    warn('QUITTANCE_BACKUP_DIR', 'has no effect here: only processes with the watcher role create backups.');
  }
  const isReal = NODE_LISTS.some((variable) => present.has(variable));
  if (isReal && !present.has('QUITTANCE_PUBLIC_URL')) {
    warn('QUITTANCE_PUBLIC_URL', 'is not set, so payment links will contain the address that this process listens on.');
  }
  if (present.has('QUITTANCE_MAINNET_NODES') && !present.has('DATABASE_URL')) {
    warn(
      'DATABASE_URL',
      'is not set, so the embedded PostgreSQL will store mainnet invoices. Its bundled libraries get no security updates. Use your own PostgreSQL server: see docs/guides/postgresql.md.',
    );
  }
  if (present.has('DATABASE_OWNER_URL')) {
    warn(
      'DATABASE_OWNER_URL',
      'is set, but the service never uses it. Remove it here: an attacker who breaks into the service could use it to act as the owner of the tables.',
    );
  }
  for (const variable of ['QUITTANCE_DEVNET_BLOCK_MS', 'QUITTANCE_DEVNET_PRODUCERS'] as const) {
    if (isReal && present.has(variable)) warn(variable, 'has no effect: the local network runs in the sandbox only.');
  }
  const lists = nodeLists({ settings, present });
  if (
    present.has('QUITTANCE_TRON_API_KEY') &&
    !lists.some(({ nodes }) => nodes.some((node) => isTronGridNode(node) && node.apiKey === null))
  ) {
    warn(
      'QUITTANCE_TRON_API_KEY',
      'has no effect: Quittance sends it only to nodes under trongrid.io. For another provider, add #key= to its node.',
    );
  }
  if (present.has('QUITTANCE_AGREEMENT') && !isReal) {
    warn('QUITTANCE_AGREEMENT', 'has no effect in the sandbox, which has one node.');
  }
  if (typeof settings.QUITTANCE_CONSOLE_PORT === 'number' && settings.QUITTANCE_ROLES?.includes('console') === false) {
    warn('QUITTANCE_CONSOLE_PORT', "has no effect, because QUITTANCE_ROLES doesn't include the console role.");
  }
  const isMainnetAlone = lists.length > 0 && lists.every(({ network }) => keyMode(network) === 'live');
  if (settings.QUITTANCE_WEBHOOK_LOCAL_TARGETS === 'allow' && isMainnetAlone) {
    warn(
      'QUITTANCE_WEBHOOK_LOCAL_TARGETS',
      'has no effect: it applies to test network projects, and only mainnet is configured.',
    );
  }
  for (const { network, variable, nodes } of lists) {
    // A private network is trusted, because one operator may run all of its nodes.
    if (isLocalNetwork(network)) continue;
    if (operatorsOf(nodes).size === 1 && !nodes.some(showsBytes)) {
      warn(
        variable,
        'has nodes from only one operator, and Quittance reads them only over HTTP. JSON hides some bytes of a transaction, so anyone can block all payments with one crafted transaction. Set its gRPC port (grpc://host:50051, or #grpc=grpc://host:50051), or add a node from another operator.',
      );
    }
    if (agreementOf(nodes, settings.QUITTANCE_AGREEMENT) > 1) continue;
    warn(
      variable,
      'makes Quittance trust a single operator for transfers that other contracts make, because no block header proves these transfers. Add a node from another operator.',
    );
  }
}
