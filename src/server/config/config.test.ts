import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { unlimitedNode } from '../../core/domain/node.ts';
import { type Config, readConfig } from './config.ts';
import { editDistance } from './read-settings.ts';
import { VARIABLES } from './settings.ts';

function accepted(env: NodeJS.ProcessEnv): Config {
  const result = readConfig(env);
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result.errors));
  return result.config;
}

function refused(env: NodeJS.ProcessEnv): { variable: string; message: string }[] {
  const result = readConfig(env);
  return result.kind === 'invalid' ? result.errors : [];
}

function warned(env: NodeJS.ProcessEnv): string[] {
  return readConfig(env).warnings.map(({ variable }) => variable);
}

const USDT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
const NILE = { QUITTANCE_NILE_NODES: 'https://nile.trongrid.io' };
const MAINNET = { QUITTANCE_MAINNET_NODES: 'https://api.trongrid.io' };
const TWO = { QUITTANCE_NILE_NODES: 'https://a.example,https://b.test' };
const KEYS = [1, 2, 3, 4, 5].map((byte) => Buffer.alloc(32, byte));
const BASE64 = KEYS.map((key) => key.toString('base64'));
const [FIRST_KEY = '', SECOND_KEY = ''] = BASE64;
const MANIFEST = { QUITTANCE_ADDRESS_MANIFEST: '/etc/q/addresses.manifest', QUITTANCE_MANIFEST_KEYS: FIRST_KEY };
const AGE_KEY = `age1${'p'.repeat(58)}`;
const HEX_KEY = KEYS[0]?.toString('hex') ?? '';
const DATABASE = { DATABASE_URL: 'postgres://u:p@localhost/quittance' };
const OWNER = { DATABASE_OWNER_URL: 'postgres://o:p@localhost/quittance' };

test('an empty environment is the sandbox with every default', () => {
  expect(accepted({ PATH: '/bin', HOME: '/root' })).toEqual({
    sandbox: true,
    host: '127.0.0.1',
    port: 8080,
    publicUrl: null,
    consoleUrl: null,
    dataDir: join(process.cwd(), '.quittance'),
    databaseUrl: null,
    databaseOwnerUrl: null,
    databasePoolSize: 10,
    roles: ['api', 'watcher', 'webhooks', 'console'],
    networks: {},
    devnet: { blockMs: 1000, producers: 5 },
    metrics: { host: '127.0.0.1', port: 0 },
    console: { host: '127.0.0.1', port: 0 },
    logLevel: 'info',
    requestLog: true,
    requestLines: false,
    rowMacs: 'ledger',
    trustProxy: [],
    warnings: [],
    masterKeys: null,
    backupRecipients: [],
    backups: null,
    addressManifest: null,
    webhooks: { localTargets: true, retentionDays: 90 },
    rateLimit: { perSecond: 100, burst: 200 },
    lookupsPerMinute: 6,
    settings: expect.any(Array),
  });
});

test('the console is off on real networks until it has a port, and then has its own origin', () => {
  expect(accepted(NILE).console).toBe(null);
  const set = { QUITTANCE_CONSOLE_PORT: '8081', QUITTANCE_CONSOLE_URL: 'https://console.example.com' };
  expect(accepted({ ...NILE, ...set })).toMatchObject({
    ...{ console: { host: '127.0.0.1', port: 8081 }, consoleUrl: 'https://console.example.com' },
  });
  const alone = { ...NILE, ...DATABASE, QUITTANCE_ROLES: 'console' };
  expect(accepted({ ...alone, ...set }).roles).toEqual(['console']);
  expect(refused(alone)).toMatchObject([{ variable: 'QUITTANCE_CONSOLE_PORT' }]);
  // An older deployment's roles: none is missing, and no external database is required.
  const before = { ...NILE, QUITTANCE_ROLES: 'api,watcher,webhooks' };
  expect(refused(before)).toEqual([]);
  expect(warned({ ...before, QUITTANCE_CONSOLE_PORT: '8081' })).toContain('QUITTANCE_CONSOLE_PORT');
});

test('the configuration is frozen, its lists and parts as well', () => {
  const config = accepted({ ...NILE });
  const parts = [
    config,
    config.roles,
    config.networks,
    config.networks.nile,
    config.networks.nile?.nodes,
    config.metrics,
  ];
  for (const part of parts) expect(Object.isFrozen(part)).toBe(true);
});

test('an empty variable counts as unset, and space around a value is ignored', () => {
  expect(accepted({ QUITTANCE_PORT: '', QUITTANCE_HOST: ' ', QUITTANCE_DATABASE_POOL: ' 20 ' })).toMatchObject({
    port: 8080,
    host: '127.0.0.1',
    databasePoolSize: 20,
  });
});

const good: [env: NodeJS.ProcessEnv, expected: object][] = [
  [{ QUITTANCE_PORT: '0' }, { port: 0 }],
  [{ QUITTANCE_PORT: '65535' }, { port: 65_535 }],
  [{ QUITTANCE_HOST: '0.0.0.0' }, { host: '0.0.0.0' }],
  [{ QUITTANCE_HOST: '::1' }, { host: '::1' }],
  [{ QUITTANCE_HOST: 'node-1.example' }, { host: 'node-1.example' }],
  [{ QUITTANCE_PUBLIC_URL: 'https://pay.example.com/' }, { publicUrl: 'https://pay.example.com' }],
  [{ QUITTANCE_CONSOLE_URL: 'https://console.example.com/' }, { consoleUrl: 'https://console.example.com' }],
  [{ QUITTANCE_CONSOLE_URL: 'http://localhost:8090' }, { consoleUrl: 'http://localhost:8090' }],
  [{ QUITTANCE_CONSOLE_URL: 'http://console.localhost' }, { consoleUrl: 'http://console.localhost' }],
  [{ QUITTANCE_CONSOLE_URL: 'http://[::1]:8090' }, { consoleUrl: 'http://[::1]:8090' }],
  [{ QUITTANCE_PUBLIC_URL: 'http://shop.test:81' }, { publicUrl: 'http://shop.test:81' }],
  [{ ...MAINNET, QUITTANCE_PUBLIC_URL: 'http://localhost:8080' }, { publicUrl: 'http://localhost:8080' }],
  [{ ...MAINNET, QUITTANCE_PUBLIC_URL: 'http://[::1]:80' }, { publicUrl: 'http://[::1]' }],
  [{ QUITTANCE_DATA_DIR: '/var/lib/q' }, { dataDir: '/var/lib/q' }],
  [{ QUITTANCE_DATA_DIR: 'data/q' }, { dataDir: join(process.cwd(), 'data/q') }],
  [{ DATABASE_URL: 'postgresql://u@[::1]/db' }, { databaseUrl: 'postgresql://u@[::1]/db' }],
  [{ DATABASE_URL: 'postgres://u:p@%2Ftmp%2Fx:5432/db' }, { databaseUrl: 'postgres://u:p@%2Ftmp%2Fx:5432/db' }],
  [{ DATABASE_URL: 'postgres:///db?host=/tmp' }, { databaseUrl: 'postgres:///db?host=/tmp' }],
  [
    { ...DATABASE, ...OWNER },
    { databaseUrl: DATABASE.DATABASE_URL, databaseOwnerUrl: OWNER.DATABASE_OWNER_URL },
  ],
  [{ QUITTANCE_DATABASE_POOL: '2' }, { databasePoolSize: 2 }],
  [{ ...NILE, ...DATABASE, QUITTANCE_ROLES: 'watcher, webhooks' }, { roles: ['watcher', 'webhooks'] }],
  [{ QUITTANCE_ROLES: 'webhooks,api,watcher' }, { roles: ['webhooks', 'api', 'watcher'] }],
  [{ QUITTANCE_DEVNET_BLOCK_MS: '100', QUITTANCE_DEVNET_PRODUCERS: '27' }, { devnet: { blockMs: 100, producers: 27 } }],
  [{ QUITTANCE_METRICS_PORT: 'off' }, { metrics: null }],
  [{ QUITTANCE_METRICS_PORT: '9100', QUITTANCE_METRICS_HOST: '::' }, { metrics: { host: '::', port: 9100 } }],
  [{ QUITTANCE_LOG_LEVEL: 'silent' }, { logLevel: 'silent' }],
  [{ QUITTANCE_REQUEST_LOG: 'off' }, { requestLog: false }],
  [{ QUITTANCE_REQUEST_LINES: 'on' }, { requestLines: true }],
  [{ QUITTANCE_ROW_MACS: 'require' }, { rowMacs: 'require' }],
  [{ QUITTANCE_TRUST_PROXY: 'loopback, 10.0.0.0/8,fd00::1' }, { trustProxy: ['loopback', '10.0.0.0/8', 'fd00::1'] }],
  [{ QUITTANCE_MASTER_KEY: FIRST_KEY }, { masterKeys: [FIRST_KEY] }],
  [{ QUITTANCE_MASTER_KEY: ` ${SECOND_KEY} , ${HEX_KEY} ` }, { masterKeys: [SECOND_KEY, HEX_KEY] }],
  [{ QUITTANCE_MASTER_KEY: HEX_KEY.toUpperCase() }, { masterKeys: [HEX_KEY.toUpperCase()] }],
  [
    { QUITTANCE_BACKUP_RECIPIENT: `${AGE_KEY}, age1${'q'.repeat(58)}` },
    { backupRecipients: [AGE_KEY, `age1${'q'.repeat(58)}`] },
  ],
  [
    { ...MANIFEST, QUITTANCE_MANIFEST_KEYS: `1 of ${FIRST_KEY}, ${SECOND_KEY}`, QUITTANCE_MANIFEST_MODE: 'enforce' },
    {
      addressManifest: {
        ...{ path: '/etc/q/addresses.manifest', mode: 'enforce', dataDir: join(process.cwd(), '.quittance') },
        pinned: { needed: 1, keys: [FIRST_KEY, SECOND_KEY] },
      },
    },
  ],
  [{ QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'deny' }, { webhooks: { localTargets: false } }],
  [{ ...NILE }, { webhooks: { localTargets: false } }],
  [{ ...NILE, QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow' }, { webhooks: { localTargets: true } }],
  [{ QUITTANCE_DELIVERY_RETENTION_DAYS: '1' }, { webhooks: { retentionDays: 1 } }],
  [{ QUITTANCE_DELIVERY_RETENTION_DAYS: '3650' }, { webhooks: { retentionDays: 3650 } }],
  [{ QUITTANCE_LOOKUPS_PER_MINUTE: '600' }, { lookupsPerMinute: 600 }],
  [{ QUITTANCE_RATE_LIMIT: '1', QUITTANCE_RATE_BURST: '1' }, { rateLimit: { perSecond: 1, burst: 1 } }],
];

test.each(good)('%j is accepted', (env, expected) => {
  expect(accepted(env)).toMatchObject(expected);
});

test('a configured network ends the sandbox and moves the metrics to their own fixed port', () => {
  expect(accepted({ ...NILE, QUITTANCE_TRON_API_KEY: 'k-1' })).toMatchObject({
    sandbox: false,
    metrics: { host: '127.0.0.1', port: 9464 },
    networks: {
      nile: {
        nodes: [
          {
            url: 'https://nile.trongrid.io',
            operator: 'trongrid.io',
            apiKey: 'k-1',
            requestsPerSecond: 15,
            requestsPerDay: 100_000,
          },
        ],
        usdt: 'eca9bc828a3005b9a3b909f2cc5c2a54794de05f',
        agreement: 1,
      },
    },
  });
});

test('all networks may be configured together, each with its nodes in order of preference', () => {
  const { networks } = accepted({
    QUITTANCE_MAINNET_NODES: 'https://a.example/path/, https://b.example:8090',
    ...NILE,
    QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9090/',
    QUITTANCE_DEVNET_USDT: USDT,
  });
  expect(networks.mainnet).toEqual({
    nodes: [unlimitedNode('https://a.example/path', 'a.example'), unlimitedNode('https://b.example:8090', 'b.example')],
    usdt: 'a614f803b6fd780986a42c78ec9c7f77e6ded13c',
    agreement: 2,
  });
  expect(networks.devnet).toMatchObject({ nodes: [{ url: 'http://127.0.0.1:9090' }], agreement: 1 });
});

test('the key of TronGrid goes to nodes under trongrid.io that have none of their own, and to nobody else', () => {
  const { networks } = accepted({
    QUITTANCE_MAINNET_NODES:
      'https://api.trongrid.io,https://eu.trongrid.io#key=own,https://a.example,https://trongrid.io.evil.example',
    QUITTANCE_TRON_API_KEY: 'k-1',
  });
  expect(networks.mainnet?.nodes.map(({ apiKey }) => apiKey)).toEqual(['k-1', 'own', null, null]);
});

test('the fragment of a URL carries options, which are no part of the URL', () => {
  const { networks } = accepted({
    QUITTANCE_MAINNET_NODES:
      'https://api.trongrid.io#operator=Grid&rps=0.5&daily=7&key=a%26b%2Cc+d, https://a.example/#key=x',
  });
  expect(networks.mainnet?.nodes).toEqual([
    {
      ...unlimitedNode('https://api.trongrid.io', 'grid'),
      ...{ apiKey: 'a&b,c+d', requestsPerSecond: 0.5, requestsPerDay: 7 },
    },
    { ...unlimitedNode('https://a.example', 'a.example'), apiKey: 'x' },
  ]);
});

test.each([
  [
    'a node of one’s own',
    'grpc://node.example.com:50051',
    { url: 'grpc://node.example.com:50051', solidityUrl: 'grpc://node.example.com:50061', grpc: null },
  ],
  [
    'one with TLS and unusual ports',
    'grpcs://Node.example.com:443/#solidity=grpcs://node.example.com:444',
    { url: 'grpcs://node.example.com:443', solidityUrl: 'grpcs://node.example.com:444', grpc: null },
  ],
  [
    'TronGrid, whose irreversible side has a port of its own',
    'grpc://grpc.trongrid.io:50051',
    { url: 'grpc://grpc.trongrid.io:50051', solidityUrl: 'grpc://grpc.trongrid.io:50052', requestsPerSecond: 15 },
  ],
  [
    'an IPv6 address',
    'grpc://[::1]:50051',
    { url: 'grpc://[::1]:50051', solidityUrl: 'grpc://[::1]:50061', operator: '[::1]:50051' },
  ],
  [
    'a plain java-tron by HTTP, at its two ports',
    'http://10.0.0.1:8090#solidity=http://10.0.0.1:8091/',
    { url: 'http://10.0.0.1:8090', solidityUrl: 'http://10.0.0.1:8091', grpc: null },
  ],
  [
    'one by HTTP that serves JSON-RPC at a third',
    'http://10.0.0.1:8090#solidity=http://10.0.0.1:8091&jsonrpc=http://10.0.0.1:8545/jsonrpc',
    { url: 'http://10.0.0.1:8090', solidityUrl: 'http://10.0.0.1:8091', jsonRpcUrl: 'http://10.0.0.1:8545' },
  ],
  [
    'one by HTTP that is not asked by JSON-RPC',
    'http://10.0.0.1:8090#jsonrpc=off',
    { url: 'http://10.0.0.1:8090', jsonRpcUrl: null },
  ],
  [
    'a provider that takes its key in a header of its own',
    'grpcs://tron.example.com:50051#key=Bearer%20t-1&header=Authorization',
    { apiKey: 'Bearer t-1', apiKeyHeader: 'authorization' },
  ],
  [
    'a provider, which may serve JSON-RPC at the same place',
    'https://tron.example.com/v1/token',
    { jsonRpcUrl: 'https://tron.example.com/v1/token' },
  ],
  ['one by gRPC, which has none', 'grpc://node.example.com:50051', { jsonRpcUrl: null }],
  [
    'one by HTTP that names its gRPC twin',
    'http://10.0.0.1:8090#grpc=grpc://10.0.0.1:50051&operator=ours',
    {
      ...{ url: 'http://10.0.0.1:8090', solidityUrl: 'http://10.0.0.1:8090', operator: 'ours' },
      grpc: { url: 'grpc://10.0.0.1:50051', solidityUrl: 'grpc://10.0.0.1:50061' },
    },
  ],
])('the sides of a node: %s', (_what, entry, expected) => {
  const allowed = 'node.example.com,grpc.trongrid.io,10.0.0.1';
  const { networks } = accepted({ QUITTANCE_NILE_NODES: entry, QUITTANCE_ALLOW_PLAINTEXT: allowed });
  expect(networks.nile?.nodes[0]).toMatchObject(expected);
});

test.each([
  ['https://api.trongrid.io', 'trongrid.io'],
  ['grpc://tron.example.com:50051', 'example.com'],
  ['grpc://10.0.0.1:50051', '10.0.0.1:50051'],
  ['https://A.B.Example.COM.', 'example.com'],
  ['http://tron-1:8090', 'tron-1'],
  ['http://10.0.0.1:8090', '10.0.0.1:8090'],
  ['http://127.0.0.1:8091', '127.0.0.1:8091'],
  ['http://[::1]:8090', '[::1]:8090'],
  ['http://localhost:8090', 'localhost:8090'],
])('%s is run by %s as far as its name tells', (url, operator) => {
  const { networks } = accepted({ QUITTANCE_DEVNET_NODES: url, QUITTANCE_DEVNET_USDT: USDT });
  expect(networks.devnet?.nodes[0]?.operator).toBe(operator);
});

test('two operators must agree where two are configured, unless told otherwise', () => {
  const agreement = (nodes: string, setting?: string) =>
    accepted({ QUITTANCE_NILE_NODES: nodes, ...(setting === undefined ? {} : { QUITTANCE_AGREEMENT: setting }) })
      .networks.nile?.agreement;
  expect(agreement('https://a.example')).toBe(1);
  expect(agreement('https://x.a.test,https://y.a.test')).toBe(1);
  expect(agreement('https://a.example,https://x.a.test,https://y.a.test,https://b.test')).toBe(2);
  expect(agreement('https://a.example,https://a.test,https://b.example', '3')).toBe(3);
  expect(agreement('https://a.example,https://b.example', '1')).toBe(1);
  expect(agreement('https://a.example#operator=one,https://b.example#operator=ONE')).toBe(1);
});

const bad: [variable: string, value: string, says: string, rest?: NodeJS.ProcessEnv][] = [
  ['QUITTANCE_PORT', '80a', 'is "80a": it must be a whole number from 0 to 65535 (0 uses any free port)'],
  ['QUITTANCE_PORT', '65536', 'whole number from 0 to 65535'],
  ['QUITTANCE_PORT', '-1', 'whole number from 0 to 65535'],
  ['QUITTANCE_PORT', '8080.5', 'whole number'],
  ['QUITTANCE_PORT', '0x50', 'whole number'],
  ['QUITTANCE_HOST', 'http://0.0.0.0', 'without a scheme or port'],
  ['QUITTANCE_HOST', '127.0.0.1:80', 'without a scheme or port'],
  ['QUITTANCE_HOST', '[::1]', 'write ::1'],
  ['QUITTANCE_CONSOLE_URL', 'console.example.com', 'use a URL such as https://console.example.com'],
  ['QUITTANCE_CONSOLE_URL', 'https://console.example.com/people', 'write https://console.example.com'],
  ['QUITTANCE_CONSOLE_URL', 'http://console.example.com', 'must be https://'],
  ['QUITTANCE_CONSOLE_URL', 'http://10.0.0.5:8090', 'write https://10.0.0.5:8090'],
  ['QUITTANCE_PUBLIC_URL', 'pay.example.com', 'use a URL such as https://pay.example.com'],
  ['QUITTANCE_PUBLIC_URL', 'https://pay.example.com/shop', 'write https://pay.example.com'],
  ['QUITTANCE_PUBLIC_URL', 'https://pay.example.com?', 'write https://pay.example.com'],
  ['QUITTANCE_PUBLIC_URL', 'https://u:p@pay.example.com', 'user name or password'],
  ['QUITTANCE_PUBLIC_URL', 'http://pay.example.com', 'must start with https://', MAINNET],
  ['QUITTANCE_DATA_DIR', '~/quittance', 'use the full path'],
  ['DATABASE_URL', 'mysql://u:p@h/db', 'only PostgreSQL is supported'],
  ['DATABASE_URL', 'localhost:5432/db', 'does not start with postgres://'],
  ['DATABASE_URL', 'postgres://u:p@h', 'contains no database name'],
  ['DATABASE_URL', 'postgres://u:p@h:5432/', 'contains no database name'],
  ['DATABASE_URL', 'postgres://u:a/b@h/db', 'percent-encode'],
  ['DATABASE_URL', 'postgres://u:1#b@h/db', 'percent-encode'],
  ['QUITTANCE_DATABASE_POOL', '1', 'from 2 to 100'],
  ['QUITTANCE_DATABASE_POOL', '101', 'from 2 to 100'],
  ['QUITTANCE_ROLES', 'api,worker', '"worker" must be one of api, watcher, webhooks, console'],
  ['QUITTANCE_ROLES', 'api,api,watcher', 'each role at most once'],
  ['QUITTANCE_ROLES', 'api,watcher,console', 'Set DATABASE_URL', NILE],
  ['QUITTANCE_CONSOLE_PORT', '65536', 'from 0 to 65535'],
  ['QUITTANCE_CONSOLE_PORT', 'no', 'or "off"'],
  ['QUITTANCE_CONSOLE_PORT', '8080', 'the same as QUITTANCE_PORT'],
  ['QUITTANCE_CONSOLE_HOST', 'http://x', 'is'],
  ['QUITTANCE_CONSOLE_URL', 'console', 'is not an http:// or https:// URL'],
  ['QUITTANCE_CONSOLE_URL', 'https://x.example/console', 'write https://x.example'],
  ['QUITTANCE_CONSOLE_URL', 'http://x.example', 'must be https://'],
  ['QUITTANCE_CONSOLE_URL', 'https://x.example', 'has no effect while', { QUITTANCE_CONSOLE_PORT: 'off' }],
  ['QUITTANCE_ADDRESS_MANIFEST', '~/m', 'use the full path', { QUITTANCE_MANIFEST_KEYS: FIRST_KEY }],
  ['QUITTANCE_ADDRESS_MANIFEST', '', 'is not set', { QUITTANCE_MANIFEST_KEYS: FIRST_KEY }],
  ['QUITTANCE_MANIFEST_KEYS', 'abc', 'is not a public key', MANIFEST],
  ['QUITTANCE_MANIFEST_KEYS', `${FIRST_KEY} ${SECOND_KEY}`, 'how many of the 2 keys', MANIFEST],
  ['QUITTANCE_MANIFEST_KEYS', '', 'is not set', { QUITTANCE_ADDRESS_MANIFEST: '/m' }],
  ['QUITTANCE_MANIFEST_MODE', 'deny', 'must be one of warn, enforce', MANIFEST],
  ['QUITTANCE_MANIFEST_MODE', 'enforce', 'has no effect without QUITTANCE_ADDRESS_MANIFEST'],
  ['DATABASE_OWNER_URL', 'mysql://u:p@h/db', 'only PostgreSQL is supported', DATABASE],
  ['DATABASE_OWNER_URL', OWNER.DATABASE_OWNER_URL, 'has no effect without DATABASE_URL'],
  ['QUITTANCE_ROLES', 'api', 'Set DATABASE_URL', NILE],
  ['QUITTANCE_ROLES', 'api', 'the sandbox runs all roles in one process', DATABASE],
  ['QUITTANCE_MAINNET_NODES', 'api.trongrid.io', 'use a form such as grpcs://node.example.com:50051'],
  ['QUITTANCE_MAINNET_NODES', 'https://a.example,', 'remove the extra comma'],
  ['QUITTANCE_MAINNET_NODES', 'https://a.example,https://a.example', 'different URLs'],
  ['QUITTANCE_MAINNET_NODES', Array.from({ length: 21 }, (_, i) => `http://n${i}`).join(), '1 to 20'],
  ['QUITTANCE_NILE_NODES', 'ftp://a.example', 'is not a node URL; use a form such as grpcs://'],
  ['QUITTANCE_NILE_NODES', 'https://u:p@a.example', 'user name or password'],
  ['QUITTANCE_NILE_NODES', 'https://a.example?key=1', 'remove the "?" and everything after it'],
  ['QUITTANCE_NILE_NODES', 'grpc://a.example', 'must end with the gRPC port'],
  ['QUITTANCE_NILE_NODES', 'grpc://a.example:50051/path', 'must end with the gRPC port'],
  [
    'QUITTANCE_NILE_NODES',
    'grpc://a.example:9999',
    'also set the port of its API for irreversible blocks, as in #solidity=grpc://',
  ],
  ['QUITTANCE_NILE_NODES', 'grpc://u:p@a.example:50051', 'user name or password'],
  ['QUITTANCE_NILE_NODES', 'grpc://a.example:50051#solidity=http://a.example:8091', 'use a grpc:// URL'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#solidity=grpc://a.example:50061', 'use a http:// URL'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#jsonrpc=grpc://a.example:8545', 'it must be the http:// URL'],
  ['QUITTANCE_NILE_NODES', 'grpc://a.example:50051#jsonrpc=http://a.example:8545', 'it must be the http:// URL'],
  [
    'QUITTANCE_NILE_NODES',
    'http://a.example#jsonrpc=8545',
    'the http:// URL at which the same node serves /jsonrpc, or off',
  ],
  ['QUITTANCE_NILE_NODES', 'http://a.example#header=x-token', 'add the API key to send in that header'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#key=k&header=content-type', 'the header that carries the key'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#key=k&header=x%20token', 'the header that carries the key'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#key=%20k', '1 to 200 visible ASCII characters'],
  ['QUITTANCE_NILE_NODES', 'http://a.example#solidity=8091', 'the URL of its API for irreversible blocks'],
  [
    'QUITTANCE_NILE_NODES',
    'http://a.example#solidity=ftp://a.example',
    'invalid solidity option: it is not a node URL',
  ],
  [
    'QUITTANCE_NILE_NODES',
    'http://a.example#grpc=http://a.example:50051',
    'it must be the grpc:// URL of an http:// node',
  ],
  [
    'QUITTANCE_NILE_NODES',
    'grpc://a.example:50051#grpc=grpc://a.example:50051',
    'it must be the grpc:// URL of an http://',
  ],
  [
    'QUITTANCE_NILE_NODES',
    'http://a.example#grpc=grpc://a.example',
    'invalid grpc option: it must end with the gRPC port',
  ],
  ['QUITTANCE_NILE_NODES', 'http://a.example#grpc=50051', 'the grpc:// URL of the same node'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#x', 'use operator=, rps=, daily=, key='],
  ['QUITTANCE_NILE_NODES', 'https://a.example#rate=3', 'use operator=, rps=, daily=, key='],
  ['QUITTANCE_NILE_NODES', 'https://a.example#key=', 'use 1 to 200 visible'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#key=%zz', 'invalid key option'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#key=a#b', 'more than one "#"'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#rps=0', 'more than 0'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#rps=1&rps=2', 'the rps option twice'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#daily=1.5', 'requests per day, 1 to 999999999'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#operator=a b', 'a name of 1 to 60'],
  ['QUITTANCE_NILE_NODES', 'https://a.example#key=x,https://a.example/', 'different URLs'],
  ['QUITTANCE_AGREEMENT', '0', 'from 1 to 9'],
  ['QUITTANCE_AGREEMENT', '10', 'from 1 to 9'],
  [
    'QUITTANCE_AGREEMENT',
    '2',
    'QUITTANCE_NILE_NODES has nodes from only one operator (trongrid.io): add nodes from other operators',
    NILE,
  ],
  [
    'QUITTANCE_DEVNET_NODES',
    'http://',
    'is not a node URL; use a form such as grpcs://',
    { QUITTANCE_DEVNET_USDT: USDT },
  ],
  ['QUITTANCE_DEVNET_USDT', 'TR7NHq', '34 characters', { QUITTANCE_DEVNET_NODES: 'http://a' }],
  ['QUITTANCE_DEVNET_USDT', USDT, 'without QUITTANCE_DEVNET_NODES'],
  ['QUITTANCE_TRON_API_KEY', 'two words', 'visible ASCII', NILE],
  ['QUITTANCE_ALLOW_PLAINTEXT', 'http://10.0.0.5', 'without a scheme, port or network prefix'],
  ['QUITTANCE_ALLOW_PLAINTEXT', '10.0.0.5:5432', 'without a scheme, port or network prefix'],
  ['QUITTANCE_ALLOW_PLAINTEXT', '10.0.0.0/8', 'without a scheme, port or network prefix'],
  ['QUITTANCE_ALLOW_PLAINTEXT', '*', 'without a scheme, port or network prefix'],
  ['QUITTANCE_ALLOW_PLAINTEXT', 'db,', 'an entry is not a host name'],
  ['QUITTANCE_DEVNET_BLOCK_MS', '99', 'from 100 to 60000'],
  ['QUITTANCE_DEVNET_BLOCK_MS', '60001', 'from 100 to 60000'],
  ['QUITTANCE_DEVNET_PRODUCERS', '0', 'from 1 to 27'],
  ['QUITTANCE_DEVNET_PRODUCERS', '28', 'from 1 to 27'],
  ['QUITTANCE_METRICS_PORT', 'none', 'or "off"'],
  ['QUITTANCE_METRICS_PORT', '65536', 'from 0 to 65535'],
  ['QUITTANCE_METRICS_PORT', '8080', "can't share a port"],
  ['QUITTANCE_METRICS_HOST', 'a b', 'not an IP address or host name'],
  ['QUITTANCE_LOG_LEVEL', 'verbose', 'one of trace, debug'],
  ['QUITTANCE_REQUEST_LOG', 'yes', 'one of on, off'],
  ['QUITTANCE_REQUEST_LINES', 'yes', 'one of on, off'],
  ['QUITTANCE_ROW_MACS', 'on', 'one of ledger, off, warn, require'],
  [
    'QUITTANCE_ROW_MACS',
    'require',
    'set the same QUITTANCE_MASTER_KEY',
    { DATABASE_URL: 'postgres://localhost/quittance' },
  ],
  ['QUITTANCE_TRUST_PROXY', 'true', 'use the address of your reverse proxy'],
  ['QUITTANCE_TRUST_PROXY', '0.0.0.0/0', 'allows everyone'],
  ['QUITTANCE_TRUST_PROXY', '10.0.0.0/33', 'prefix length 33'],
  ['QUITTANCE_TRUST_PROXY', 'loopback,', 'remove the extra comma'],
  ['QUITTANCE_MASTER_KEY', FIRST_KEY.slice(1), '43 characters that is not 32 bytes'],
  ['QUITTANCE_MASTER_KEY', `${HEX_KEY}00`, '66 characters that is not 32 bytes'],
  ['QUITTANCE_MASTER_KEY', FIRST_KEY.replace('A', '-'), 'openssl rand -base64 32'],
  ['QUITTANCE_MASTER_KEY', `${FIRST_KEY},`, 'an entry of 0 characters'],
  ['QUITTANCE_MASTER_KEY', `${FIRST_KEY},${FIRST_KEY}`, '1 to 4 different keys'],
  ['QUITTANCE_MASTER_KEY', `${FIRST_KEY},${HEX_KEY}`, 'contains the same key twice'],
  ['QUITTANCE_MASTER_KEY', BASE64.join(), '1 to 4 different keys'],
  ['QUITTANCE_BACKUP_RECIPIENT', 'age1short', "isn't an age public key"],
  ['QUITTANCE_BACKUP_RECIPIENT', `AGE-SECRET-KEY-1${'Q'.repeat(58)}`, 'is a secret key'],
  ['QUITTANCE_BACKUP_RECIPIENT', `${AGE_KEY},${AGE_KEY}`, '1 to 20 different'],
  ['QUITTANCE_BACKUP_DIR', '~/backups', 'starts with "~"'],
  ['QUITTANCE_BACKUP_DIR', '/backups', 'set the same QUITTANCE_MASTER_KEY', DATABASE],
  ['QUITTANCE_BACKUP_INTERVAL_HOURS', '0', 'from 1 to 168', { QUITTANCE_BACKUP_DIR: '/backups' }],
  ['QUITTANCE_BACKUP_INTERVAL_HOURS', '24', 'without QUITTANCE_BACKUP_DIR'],
  ['QUITTANCE_BACKUP_KEEP', '1', 'from 2 to 1000', { QUITTANCE_BACKUP_DIR: '/backups' }],
  ['QUITTANCE_BACKUP_KEEP', '7', 'without QUITTANCE_BACKUP_DIR'],
  ['QUITTANCE_WEBHOOK_LOCAL_TARGETS', 'yes', 'one of allow, deny'],
  ['QUITTANCE_DELIVERY_RETENTION_DAYS', '0', 'from 1 to 3650'],
  ['QUITTANCE_DELIVERY_RETENTION_DAYS', '3651', 'from 1 to 3650'],
  ['QUITTANCE_RATE_LIMIT', '0', 'from 1 to 100000'],
  ['QUITTANCE_LOOKUPS_PER_MINUTE', '0', 'from 1 to 6000'],
  ['QUITTANCE_RATE_BURST', '1e3', 'from 1 to 1000000'],
];

test.each(bad)('%s=%s is refused: %s', (variable, value, says, rest = {}) => {
  const errors = refused({ ...rest, [variable]: value });
  expect(errors.map((error) => error.variable)).toEqual([variable]);
  expect(errors[0]?.message).toContain(says);
  expect(errors[0]?.message.startsWith(variable)).toBe(true);
});

test('every variable has a case that is refused', () => {
  expect([...new Set(bad.map(([variable]) => variable))].sort()).toEqual([...VARIABLES].sort());
});

test('scheduled backups have an absolute path, an interval and a number, and say where they have no effect', () => {
  const backups = { ...NILE, QUITTANCE_BACKUP_DIR: '/backups', QUITTANCE_BACKUP_INTERVAL_HOURS: '6' };
  expect(accepted({ ...backups, QUITTANCE_BACKUP_RECIPIENT: AGE_KEY }).backups).toEqual({
    ...{ directory: '/backups', intervalMs: 6 * 3_600_000, keep: 14, recipients: [AGE_KEY] },
  });
  const warned = (env: Record<string, string>) => readConfig(env).warnings.map(({ variable }) => variable);
  expect(warned(backups)).not.toContain('QUITTANCE_BACKUP_DIR');
  // The sandbox makes backups too.
  expect(warned({ QUITTANCE_BACKUP_DIR: '/backups' })).not.toContain('QUITTANCE_BACKUP_DIR');
  const others = { ...DATABASE, QUITTANCE_MASTER_KEY: FIRST_KEY, QUITTANCE_ROLES: 'api,webhooks' };
  expect(warned({ ...backups, ...others })).toContain('QUITTANCE_BACKUP_DIR');
});

test('a private network without its USDT contract is refused', () => {
  const [error, ...others] = refused({ QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9090' });
  expect(error).toMatchObject({ variable: 'QUITTANCE_DEVNET_USDT', message: expect.stringContaining('is not set') });
  expect(others).toEqual([]);
});

test('the default port of the metrics cannot be the port of the API of a real service', () => {
  expect(refused({ ...NILE, QUITTANCE_PORT: '9464' })).toMatchObject([{ variable: 'QUITTANCE_PORT' }]);
  expect(refused({ QUITTANCE_PORT: '9464' })).toEqual([]);
});

test('all errors are reported at once, each entry of a list for itself', () => {
  const errors = refused({
    QUITTANCE_PORT: 'x',
    QUITTANCE_MAINNET_NODES: 'one,two',
    DATABASE_URL: 'x',
    QUITTANCE_HOTS: '1',
    QUITTANCE_DEVNET_USDT: USDT,
  });
  expect(errors.map(({ variable }) => variable)).toEqual([
    'QUITTANCE_PORT',
    'DATABASE_URL',
    'QUITTANCE_MAINNET_NODES',
    'QUITTANCE_MAINNET_NODES',
    'QUITTANCE_HOTS',
    'QUITTANCE_DEVNET_USDT',
  ]);
});

describe('a misspelt name', () => {
  test.each([
    ['QUITTANCE_PROT', 'QUITTANCE_PORT'],
    ['QUITANCE_PORT', 'QUITTANCE_PORT'],
    ['quittance_port', 'QUITTANCE_PORT'],
    ['QUITTANCE_POTR_', 'QUITTANCE_PORT'],
    ['QUITTANCE_MAINNET_NODE', 'QUITTANCE_MAINNET_NODES'],
    ['QUITTANCE_TRON_APIKEY', 'QUITTANCE_TRON_API_KEY'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
  ])('%s is refused: did you mean %s?', (variable, meant) => {
    const errors = refused({ [variable]: 'sk-secret' });
    expect(errors).toMatchObject([{ variable, message: expect.stringContaining(`did you mean ${meant}?`) }]);
    expect(JSON.stringify(errors)).not.toContain('sk-secret');
  });

  test('that is farther off gets a warning if it is one of ours, and nothing otherwise', () => {
    const env = { QUITTANCE_COLOUR: 'red', DATABASE_PASSWORD: 'x', PORT: '1', PGHOST: 'h' };
    expect(refused(env)).toEqual([]);
    expect(warned(env)).toEqual(['QUITTANCE_COLOUR']);
  });

  test('that integrators give to their programs, and to commands, is theirs', () => {
    const env = { QUITTANCE_ADMIN_KEY: 'k', QUITTANCE_API_KEY: 'k', QUITTANCE_SERVER: 's', QUITTANCE_URL: 'u' };
    expect(warned(env)).toEqual([]);
  });

  test('of another program is left alone when ours is set', () => {
    expect(refused({ ...DATABASE, DATABASE_URI: 'x' })).toEqual([]);
    expect(refused({ QUITTANCE_PORT: '1', QUITTANCE_PORTS: '2' })).toMatchObject([{ variable: 'QUITTANCE_PORTS' }]);
  });
});

test('the edit distance counts letters inserted, dropped, replaced and swapped', () => {
  const pairs: [string, string, number][] = [
    ['', '', 0],
    ['abc', '', 3],
    ['abc', 'abc', 0],
    ['abc', 'acb', 1],
    ['abc', 'axc', 1],
    ['abc', 'ac', 1],
    ['ca', 'abc', 3],
    ['PORT', 'HOST', 2],
  ];
  for (const [left, right, letters] of pairs) {
    expect(editDistance(left, right)).toBe(letters);
    expect(editDistance(right, left)).toBe(letters);
  }
});

test('no message holds a password, a key or a token, however the value is broken', () => {
  const secret = 'h0rse';
  const broken = [
    `postgres://u:${secret}@h`,
    `postgres://u:${secret}/x@h/db`,
    `postgres://u:1#${secret}@h/db`,
    `mysql://u:${secret}@h/db`,
    `u:${secret}@h/db`,
    `https://u:${secret}@a.example`,
    `https://u:x/${secret}@a.example`,
    `https://a.example?key=${secret}`,
    `ftp://a.example/${secret}`,
    `https://a.example/${secret}#x`,
    `https://a.example/${secret},https://a.example/${secret}`,
    `u:${secret}@a.example`,
    `https://a.example#key=${secret}&x`,
    `https://a.example#${secret}`,
    `https://a.example#key=a@${secret}&x`,
    `https://a.example?x#key=${secret}`,
    `https://u:${secret}#x@a.example`,
    `https://a.example#key=x,${secret}`,
    `a.example#key=${secret}`,
    `https://a.example#key=x#${secret}`,
    `https://a.example#rps=${secret}`,
  ];
  const nodes = ['QUITTANCE_MAINNET_NODES', 'QUITTANCE_NILE_NODES', 'QUITTANCE_DEVNET_NODES'];
  const variables = ['DATABASE_URL', 'DATABASE_OWNER_URL', ...nodes];
  for (const value of broken) {
    for (const variable of variables) {
      const errors = refused({ [variable]: value });
      expect(errors, `${variable}=${value}`).not.toEqual([]);
      expect(JSON.stringify(errors)).not.toContain(secret);
    }
  }
  for (const value of broken.filter((text) => /@|\?/.test(text))) {
    expect(JSON.stringify(refused({ QUITTANCE_PUBLIC_URL: value, QUITTANCE_HOST: value }))).not.toContain(secret);
  }
  expect(JSON.stringify(refused({ ...NILE, QUITTANCE_TRON_API_KEY: `${secret} ${secret}` }))).not.toContain(secret);
});

test('no message shows a master key or a part of it, however it is broken', () => {
  const key = 'c4n4ryC4N4RYc4n4ryC4N4RYc4n4ryC4N4RYc4n4ryA';
  const broken = [
    key,
    `${key}==`,
    `"${key}="`,
    `${key}=,`,
    `${key}=;${SECOND_KEY}`,
    `${key}=,${key}=`,
    `base64:${key}=`,
  ];
  for (const value of [...broken, Array.from({ length: 5 }, () => `${key}=`).join()]) {
    const errors = refused({ QUITTANCE_MASTER_KEY: value, QUITTANCE_MASTERKEY: value });
    expect(
      errors.map(({ variable }) => variable),
      value,
    ).toContain('QUITTANCE_MASTER_KEY');
    expect(JSON.stringify(errors)).not.toMatch(/c4n4ry/i);
  }
});

test('settings that have no effect, and a missing public URL, are worth a warning', () => {
  expect(warned({})).toEqual([]);
  expect(warned({ ...TWO })).toEqual(['QUITTANCE_PUBLIC_URL']);
  expect(warned({ ...TWO, QUITTANCE_AGREEMENT: '1' })).toEqual(['QUITTANCE_PUBLIC_URL', 'QUITTANCE_NILE_NODES']);
  // A single operator is believed, and over HTTP any stranger can block it.
  const twice = ['QUITTANCE_PUBLIC_URL', 'QUITTANCE_NILE_NODES', 'QUITTANCE_NILE_NODES'];
  expect(warned({ ...NILE })).toEqual(twice);
  const grpc = { QUITTANCE_NILE_NODES: 'grpcs://grpc.nile.trongrid.io:50051' };
  expect(warned(grpc)).toEqual(['QUITTANCE_PUBLIC_URL', 'QUITTANCE_NILE_NODES']);
  expect(warned({ QUITTANCE_AGREEMENT: '1' })).toEqual(['QUITTANCE_AGREEMENT']);
  expect(warned({ ...TWO, QUITTANCE_TRON_API_KEY: 'x' })).toEqual(['QUITTANCE_PUBLIC_URL', 'QUITTANCE_TRON_API_KEY']);
  expect(warned({ QUITTANCE_TRON_API_KEY: 'x' })).toEqual(['QUITTANCE_TRON_API_KEY']);
  const masterKey = { QUITTANCE_MASTER_KEY: FIRST_KEY, QUITTANCE_PUBLIC_URL: 'https://p.example' };
  expect(warned({ ...TWO, ...DATABASE, ...masterKey })).toEqual([]);
  expect(warned({ ...TWO, ...DATABASE, ...masterKey, QUITTANCE_ROLES: 'watcher' })).toEqual([]);
  // This service has credentials that it never needs.
  expect(warned({ ...TWO, ...DATABASE, ...OWNER, ...masterKey })).toEqual(['DATABASE_OWNER_URL']);
  // It uses the key to sign receipts.
  expect(warned({ ...TWO, ...DATABASE, ...masterKey, QUITTANCE_ROLES: 'api,watcher' })).toEqual([]);
  const local = { QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow', QUITTANCE_PUBLIC_URL: 'https://p.example' };
  expect(warned({ ...TWO, ...local })).toEqual([]);
  expect(warned({ QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow' })).toEqual([]);
  const real = { QUITTANCE_MAINNET_NODES: 'https://a.example,https://b.test' };
  expect(warned({ ...real, ...DATABASE, ...local })).toEqual(['QUITTANCE_WEBHOOK_LOCAL_TARGETS']);
  expect(warned({ ...real, ...TWO, ...DATABASE, ...local })).toEqual([]);
  const idle = { QUITTANCE_DEVNET_BLOCK_MS: '500', QUITTANCE_DEVNET_PRODUCERS: '3' };
  expect(warned({ ...TWO, ...idle, QUITTANCE_PUBLIC_URL: 'https://p.example' })).toEqual(Object.keys(idle));
});

test('a main network on the embedded PostgreSQL is worth a warning, a test network is not', () => {
  const url = { QUITTANCE_PUBLIC_URL: 'https://p.example' };
  const main = { ...url, QUITTANCE_MAINNET_NODES: 'https://a.example,https://b.test' };
  const [warning, ...others] = readConfig(main).warnings;
  expect(warning).toMatchObject({
    variable: 'DATABASE_URL',
    message: expect.stringMatching(/bundled libraries get no security updates/),
  });
  expect(others).toEqual([]);
  expect(warned({ ...main, ...DATABASE })).toEqual([]);
  expect(warned({ ...TWO, ...url })).toEqual([]);
});
