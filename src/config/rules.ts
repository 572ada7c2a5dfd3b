import { isLoopbackLink } from '../domain/loopback.ts';
import { isLocalNetwork, keyMode, NETWORKS } from '../domain/network.ts';
import { type NodeSpec, showsBytes } from '../domain/node.ts';
import { parseMasterKey } from '../runtime/key-ring.ts';
import { isTronGridNode, parseNode } from './node-entry.ts';
import type { ConfigProblem, ReadSettings } from './read-settings.ts';
import { NEEDED_ROLES, NODE_VARIABLES, type Variable } from './settings.ts';
import { databaseTransportProblems, nodeTransportProblems } from './transport.ts';
import { httpUrl, showValue } from './url-problems.ts';

/** On real networks: Prometheus's port list gives it to exporters, and it is no default of Prometheus, Grafana and PostgreSQL. */
export const DEFAULT_METRICS_PORT = 9464;

const NODE_LISTS = Object.values(NODE_VARIABLES);
/** Variables that hold the URL of a database. */
const DATABASE_VARIABLES = ['DATABASE_URL', 'DATABASE_OWNER_URL'] as const;

/** Variables that are right each for itself and wrong together. */
export function contradictions({ settings, present }: ReadSettings): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const add = (variable: Variable, message: string) => problems.push({ variable, message: `${variable} ${message}` });
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
  for (const { variable, message } of nodeProblems({ settings, present })) add(variable, message);
  if (isSet('DATABASE_OWNER_URL') && !isSet('DATABASE_URL')) {
    add(
      'DATABASE_OWNER_URL',
      'has no effect without DATABASE_URL, which the service and most commands use: set that too.',
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
  for (const { variable, message } of transportProblems({ settings, present })) add(variable, message);
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
  problems.push(...backupProblems(present), ...consoleProblems({ settings, present }));
  return problems;
}

function backupProblems(present: ReadSettings['present']): ConfigProblem[] {
  const isOn = present.has('QUITTANCE_BACKUP_DIR');
  const idle = (['QUITTANCE_BACKUP_INTERVAL_HOURS', 'QUITTANCE_BACKUP_KEEP'] as const)
    .filter((variable) => present.has(variable) && !isOn)
    .map((variable) => {
      const message = `${variable} has no effect without QUITTANCE_BACKUP_DIR: set both, or unset this one.`;
      return { variable, message };
    });
  if (!isOn || !present.has('DATABASE_URL') || present.has('QUITTANCE_MASTER_KEY')) return idle;
  const message =
    "QUITTANCE_BACKUP_DIR is set, but without the master key its backups can't be authenticated: set the same QUITTANCE_MASTER_KEY for every process.";
  return [...idle, { variable: 'QUITTANCE_BACKUP_DIR', message }];
}

function idleBackups({ settings, present }: Pick<ReadSettings, 'settings' | 'present'>): ConfigProblem[] {
  const isMade = settings.QUITTANCE_ROLES?.includes('watcher') !== false;
  if (!present.has('QUITTANCE_BACKUP_DIR') || isMade) return [];
  const message = 'QUITTANCE_BACKUP_DIR has no effect here: only processes with the role watcher make backups.';
  return [{ variable: 'QUITTANCE_BACKUP_DIR', message }];
}

function consoleProblems({ settings, present }: Pick<ReadSettings, 'settings' | 'present'>): ConfigProblem[] {
  const { QUITTANCE_CONSOLE_PORT: port, QUITTANCE_ROLES: roles = [] } = settings;
  const problems: ConfigProblem[] = [];
  const add = (variable: Variable, message: string) => problems.push({ variable, message: `${variable} ${message}` });
  if (typeof port !== 'number' && roles.length === 1 && roles[0] === 'console') {
    add('QUITTANCE_CONSOLE_PORT', 'is not set, so a process with only the role console would do nothing: set it.');
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
  return problems;
}

/** Believing one node is right where one operator is configured; two operators must agree unless told otherwise. */
export function agreementOf(nodes: readonly NodeSpec[], setting: number | undefined): number {
  return setting ?? Math.min(2, operatorsOf(nodes).size);
}

function operatorsOf(nodes: readonly NodeSpec[]): Set<string> {
  return new Set(nodes.map(({ operator }) => operator));
}

type NodeSettings = Pick<ReadSettings, 'settings' | 'present'>;

/** The lists of nodes that are set and well-formed. */
function nodeLists({ settings, present }: NodeSettings) {
  return NETWORKS.flatMap((network) => {
    const variable = NODE_VARIABLES[network];
    if (!present.has(variable)) return [];
    const parsed = settings[variable]?.map(parseNode) ?? [];
    const nodes = parsed.flatMap((entry) => (entry.kind === 'ok' ? [entry.node] : []));
    return nodes.length === 0 ? [] : [{ network, variable, nodes }];
  });
}

function nodeProblems(read: NodeSettings): { variable: Variable; message: string }[] {
  const agreement = read.settings.QUITTANCE_AGREEMENT;
  return nodeLists(read).flatMap(({ variable, nodes }) => {
    const problems: { variable: Variable; message: string }[] = [];
    if (new Set(nodes.map(({ url }) => url)).size < nodes.length) {
      problems.push({ variable, message: 'must be a list of different URLs, but one node is listed twice.' });
    }
    const { size } = operatorsOf(nodes);
    if (agreement !== undefined && agreement > size) {
      const names = [...operatorsOf(nodes)].join(', ');
      problems.push({
        variable: 'QUITTANCE_AGREEMENT',
        message: `is ${agreement}, and ${variable} has nodes of ${size === 1 ? 'one operator' : `${size} operators`} (${names}): add nodes of other operators, name each node's operator with #operator=, or set this variable to at most ${size}.`,
      });
    }
    return problems;
  });
}

/** Settings that let others read or change data on its way. */
function transportProblems(read: NodeSettings): { variable: Variable; message: string }[] {
  const allowed = read.settings.QUITTANCE_ALLOW_PLAINTEXT ?? [];
  const databases = DATABASE_VARIABLES.flatMap((variable) => {
    const url = read.settings[variable];
    return url === undefined ? [] : databaseTransportProblems(variable, url, allowed);
  });
  const real = nodeLists(read).filter(({ network }) => !isLocalNetwork(network));
  return [...databases, ...real.flatMap(({ variable, nodes }) => nodeTransportProblems(variable, nodes, allowed))];
}

/** Settings that have no effect, or that are missing and probably should be there. */
export function idleSettings({ settings, present }: ReadSettings): ConfigProblem[] {
  const warnings = idleBackups({ settings, present });
  const warn = (variable: Variable, message: string) => warnings.push({ variable, message: `${variable} ${message}` });
  const isReal = NODE_LISTS.some((variable) => present.has(variable));
  if (isReal && !present.has('QUITTANCE_PUBLIC_URL')) {
    warn('QUITTANCE_PUBLIC_URL', 'is not set, so payment links will contain the address that this process listens on.');
  }
  if (present.has('QUITTANCE_MAINNET_NODES') && !present.has('DATABASE_URL')) {
    warn(
      'DATABASE_URL',
      'is not set, so the embedded PostgreSQL will store the invoices of mainnet. Its bundled libraries get no security updates. Use your own PostgreSQL server: see docs/security.md.',
    );
  }
  if (present.has('DATABASE_OWNER_URL')) {
    warn(
      'DATABASE_OWNER_URL',
      'is set for a service, which never uses it. Remove it here, so that an attacker who breaks into the service owns no tables.',
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
    warn('QUITTANCE_CONSOLE_PORT', "has no effect, because QUITTANCE_ROLES doesn't include the role console.");
  }
  const isWatcherAlone = settings.QUITTANCE_ROLES?.every((role) => role === 'watcher') === true;
  if (present.has('QUITTANCE_MASTER_KEY') && isWatcherAlone) {
    warn(
      'QUITTANCE_MASTER_KEY',
      'has no effect here, because the role watcher needs no secrets: unset it for this process.',
    );
  }
  const isMainnetAlone = lists.length > 0 && lists.every(({ network }) => keyMode(network) === 'live');
  if (settings.QUITTANCE_WEBHOOK_LOCAL_TARGETS === 'allow' && isMainnetAlone) {
    warn(
      'QUITTANCE_WEBHOOK_LOCAL_TARGETS',
      'has no effect: it applies to projects of test networks, and only mainnet is configured.',
    );
  }
  for (const { network, variable, nodes } of lists) {
    // A private network is believed as it is: its operator may well run all of it.
    if (isLocalNetwork(network)) continue;
    if (operatorsOf(nodes).size === 1 && !nodes.some(showsBytes)) {
      warn(
        variable,
        'leaves one operator that is asked over HTTP only: any stranger can hold up all payments with one odd transaction, whose bytes JSON hides. Name its gRPC port (grpc://host:50051, or #grpc=grpc://host:50051), or add a node of another operator.',
      );
    }
    if (agreementOf(nodes, settings.QUITTANCE_AGREEMENT) > 1) continue;
    warn(
      variable,
      'makes Quittance trust a single operator for transfers inside other contracts, which no block header proves: add a node of another operator.',
    );
  }
  return warnings;
}
