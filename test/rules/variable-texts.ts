import type { Variable } from '../../src/server/config/settings.ts';

type Text = {
  /** The purpose of the variable, with a link to the guide if there is one. */
  means: string;
  /** For defaults that depend on other variables. */
  fallback?: string;
};

/** The texts of docs/reference/configuration.md for each variable, in order. Defaults, bounds and choices come from the settings. */
export const VARIABLE_TEXTS: Readonly<Record<string, Partial<Record<Variable, Text>>>> = {
  Server: {
    QUITTANCE_PORT: { means: 'Port of the API and the payment pages. `0` uses any free port.' },
    QUITTANCE_HOST: { means: 'Address to listen on. `0.0.0.0` means all interfaces; put a TLS proxy in front of it.' },
    QUITTANCE_PUBLIC_URL: {
      means: 'Origin that payers see, such as `https://pay.example.com`. No path. Mainnet requires `https://`.',
      fallback: 'the address it listens on',
    },
    QUITTANCE_TRUST_PROXY: {
      means:
        'Proxies whose `X-Forwarded-For` Quittance trusts: addresses, CIDR blocks or `loopback`. See [Behind a reverse proxy](../guides/checkout.md#behind-a-reverse-proxy).',
    },
    QUITTANCE_ROLES: {
      means: 'Roles of this process. See [Processes and roles](../guides/high-availability.md#processes-and-roles).',
    },
    QUITTANCE_RATE_LIMIT: { means: 'Requests per second for each key and process.' },
    QUITTANCE_RATE_BURST: { means: 'Burst of requests allowed for each key and process.' },
    QUITTANCE_LOOKUPS_PER_MINUTE: {
      means: 'Look-ups by payers per minute, for each network and process. Each uses two node requests.',
    },
    QUITTANCE_LOG_LEVEL: { means: 'Log level.' },
    QUITTANCE_REQUEST_LINES: { means: 'Whether Quittance logs every response.' },
    QUITTANCE_REQUEST_LOG: {
      means:
        'Whether Quittance keeps API requests for 30 days, without bodies. See [the console](../guides/console.md#reports-and-requests).',
    },
  },
  Data: {
    QUITTANCE_DATA_DIR: {
      means:
        'Directory of the embedded PostgreSQL, the local network, `master-key`, and audit log and inventory marks.',
    },
    DATABASE_URL: {
      means:
        'Your own PostgreSQL: `postgres://user:password@host:5432/database`. See [PostgreSQL](../guides/postgresql.md). Secret.',
      fallback: 'the embedded PostgreSQL',
    },
    DATABASE_OWNER_URL: {
      means:
        'A connection to the same database as its owner, for `migrate`, `restore`, `backup --final`, `ledger seal` and `master-key rotate`. Secret.',
      fallback: '`DATABASE_URL`',
    },
    QUITTANCE_DATABASE_POOL: {
      means: 'Database connections for this process. The `api` role uses two more, and the `webhooks` role one.',
    },
    QUITTANCE_ALLOW_PLAINTEXT: {
      means: 'Hosts that Quittance may connect to without verified TLS, because the network path is safe.',
    },
  },
  'TRON networks': {
    QUITTANCE_MAINNET_NODES: { means: 'Nodes of the main network. See [Nodes](../guides/nodes.md).' },
    QUITTANCE_NILE_NODES: { means: 'Nodes of the test network Nile.' },
    QUITTANCE_DEVNET_NODES: { means: 'Nodes of a private network, such as `quittance devnet`.' },
    QUITTANCE_DEVNET_USDT: {
      means: 'The USDT contract of the private network. Required with `QUITTANCE_DEVNET_NODES`.',
    },
    QUITTANCE_TRON_API_KEY: { means: 'A key of TronGrid, sent only to nodes under trongrid.io. Secret.' },
    QUITTANCE_AGREEMENT: {
      means: 'Number of operators that must return the same unproven transfers.',
      fallback: '`2` with nodes from two operators, otherwise `1`',
    },
  },
  'Keys, seals and signed addresses': {
    QUITTANCE_MASTER_KEY: {
      means:
        'Up to 4 keys, each 32 bytes in base64 or hexadecimal. Quittance encrypts with the first key and decrypts with all of them. See [The master key](../guides/seals.md#the-master-key). Secret.',
      fallback: 'the file `master-key` with the embedded database; otherwise required',
    },
    QUITTANCE_ROW_MACS: { means: 'Effect of a wrong seal. See [Seals](../guides/seals.md#seals).' },
    QUITTANCE_ADDRESS_MANIFEST: {
      means: 'Path of the signed list of addresses. See [Signed addresses](../guides/signed-addresses.md).',
    },
    QUITTANCE_MANIFEST_KEYS: {
      means: 'Public keys that must sign the list of addresses: one key, or `2 of KEY KEY KEY`.',
    },
    QUITTANCE_MANIFEST_MODE: { means: '`warn` raises an alarm; `enforce` also hides unsigned addresses.' },
  },
  Backups: {
    QUITTANCE_BACKUP_DIR: {
      means: 'Existing directory of [scheduled backups](../guides/backup.md#scheduled-backups).',
    },
    QUITTANCE_BACKUP_INTERVAL_HOURS: { means: 'Hours between two backups.' },
    QUITTANCE_BACKUP_KEEP: { means: 'Verified backups to keep.' },
    QUITTANCE_BACKUP_RECIPIENT: { means: 'Up to 20 age public keys (`age1…`) that can read each backup.' },
  },
  Webhooks: {
    QUITTANCE_WEBHOOK_LOCAL_TARGETS: {
      means: 'Whether webhooks for test projects may use `http://` and this machine.',
      fallback: '`allow` in the sandbox, otherwise `deny`',
    },
    QUITTANCE_DELIVERY_RETENTION_DAYS: {
      means: 'Days to keep finished deliveries. Quittance keeps events permanently.',
    },
  },
  Console: {
    QUITTANCE_CONSOLE_PORT: {
      means: 'Port of the [console](../guides/console.md#open-it) and the admin API. `off` disables it.',
      fallback: '`off`; in the sandbox `0`',
    },
    QUITTANCE_CONSOLE_HOST: { means: 'Address to listen on. Put a TLS proxy or a tunnel in front of it.' },
    QUITTANCE_CONSOLE_URL: {
      means: 'Origin of the console, such as `https://console.example.com`. Passkeys belong to this host.',
      fallback: 'the address it listens on',
    },
  },
  Metrics: {
    QUITTANCE_METRICS_PORT: {
      means: 'Port of `GET /metrics` and of the detailed `GET /readyz`. `off` disables it.',
      fallback: '`9464`; in the sandbox `0`',
    },
    QUITTANCE_METRICS_HOST: { means: 'Address to listen on. Keep it internal.' },
  },
  Sandbox: {
    QUITTANCE_DEVNET_BLOCK_MS: { means: 'Milliseconds between two blocks of the local network.' },
    QUITTANCE_DEVNET_PRODUCERS: { means: 'Block producers of the local network.' },
  },
};
