import { statfs } from 'node:fs/promises';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { TLSSocket } from 'node:tls';
import { AppError } from '../../../core/domain/errors.ts';
import { isLocalNetwork } from '../../../core/domain/network.ts';
import {
  MADE_UP_CLIENT,
  PROBE_HEADER,
  PROBE_PATH,
  PROBE_PAUSE_MS,
  proveProbe,
  readProbeAnswer,
} from '../../../core/domain/probe.ts';
import { isLoopbackLink } from '../../../core/domain/url.ts';
import { MOST_MS } from '../../../core/payments/clocks.ts';
import { findShortage } from '../../../core/payments/health-problems.ts';
import { OLDEST_POSTGRES } from '../../../core/store/db/migrate.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { findOwnership } from '../../../core/store/db/runtime-role.ts';
import { count } from '../../../core/store/db/statement.ts';
import { quotePage, redactAnswer } from '../../../core/webhooks/redact.ts';
import {
  atStake,
  check,
  type DoctorSettings,
  databaseCheck,
  type Finding,
  failed,
  good,
  type Probed,
  schemaCheck,
  skipped,
  spell,
  type UrlAnswer,
  type UrlRefusal,
  warning,
} from './check.ts';

/** When security updates end for each Node.js release (github.com/nodejs/Release). Odd releases are supported for half a year. */
const NODE_ENDS: Readonly<Record<number, string>> = {
  ...{ 18: '2025-04-30', 19: '2023-06-01', 20: '2026-04-30', 21: '2024-06-01', 22: '2027-04-30' },
  ...{ 23: '2025-06-01', 24: '2028-04-30', 25: '2026-06-01' },
};
const SOON_MS = 90 * 86_400_000;

const configuration = check('configuration', async ({ settings: { warnings } }) =>
  warnings.length === 0
    ? good('the settings are consistent')
    : warning(warnings.join('; '), 'Correct these variables: see docs/reference/configuration.md.'),
);

const nodeRelease = check('node-release', async (look) => {
  const { nodeVersion, now } = look;
  const ends = NODE_ENDS[Number.parseInt(nodeVersion, 10)];
  const fix = 'Upgrade to a supported Node.js LTS release, such as 24.';
  if (ends === undefined)
    return good(`Node.js ${nodeVersion} is newer than the releases that this version of Quittance knows`);
  const leftMs = Date.parse(ends) - now();
  if (leftMs < 0) return atStake(look, `Node.js ${nodeVersion} has had no security updates since ${ends}`, fix);
  if (leftMs < SOON_MS) return warning(`Node.js ${nodeVersion} gets security updates only until ${ends}`, fix);
  return good(`Node.js ${nodeVersion} gets security updates until ${ends}`);
});

const CLOCKS = "Correct the machines' clocks, and keep them synchronised with chrony or systemd-timesyncd.";

const clockDatabase = databaseCheck('clock-database', async ({ ping }) => {
  const { ownAt, databaseAt } = await ping();
  const apartMs = ownAt - databaseAt;
  if (Math.abs(apartMs) < MOST_MS) return good("this machine's clock agrees with the database's");
  const way = apartMs < 0 ? 'behind' : 'ahead of';
  return failed(`this machine's clock is ${spell(apartMs)} ${way} the database's`, CLOCKS);
});

/** A block is produced every 3 s, so a newest block that is older than this is late. */
const OLD_MS = 60_000;

const clockChain = check('clock-chain', async ({ now, askNodes }) => {
  const heads = (await askNodes()).filter(({ network }) => !isLocalNetwork(network)).flatMap(({ head }) => head ?? []);
  if (heads.length === 0)
    return skipped('no node of a public network returned a block, and blocks of a local network do not show the time');
  const newest = Math.max(...heads.map(({ time }) => time));
  const aheadMs = now() - newest;
  if (aheadMs < -MOST_MS) {
    return failed(`this machine's clock is ${spell(aheadMs)} behind the newest block`, CLOCKS);
  }
  if (aheadMs > OLD_MS) {
    const says = `by this machine's clock, the newest block of all nodes is ${spell(aheadMs)} old: either the clock is ahead, or all nodes are behind`;
    return failed(says, `${CLOCKS} If the clocks are right, add a node from another operator.`);
  }
  return good("this machine's clock agrees with the newest block");
});

const server = {
  version: 'text',
  versionNumber: 'int4',
  isSuper: 'bool',
  mayInsert: 'bool?',
  mayDelete: 'bool?',
  fsync: 'text',
  fullPageWrites: 'text',
  synchronousCommit: 'text',
  checksums: 'text',
  used: count,
  most: 'int4',
} as const;

/** Returns the server's information about itself, and this user's rights. */
export const readServer = answerOf(
  'doctor-server',
  server,
  `select current_setting('server_version') as version, current_setting('server_version_num')::int4 as version_number,
     (select rolsuper from pg_roles where rolname = current_user) as is_super,
     has_table_privilege(to_regclass('invoices')::oid, 'insert') as may_insert,
     has_table_privilege(to_regclass('invoices')::oid, 'delete') as may_delete,
     current_setting('fsync') as fsync, current_setting('full_page_writes') as full_page_writes,
     current_setting('synchronous_commit') as synchronous_commit, current_setting('data_checksums') as checksums,
     (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
     current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4 as most`,
  () => [],
  ([row]) => {
    if (row === undefined) throw new Error('the server returned no information about itself');
    return row;
  },
);

/** When each PostgreSQL release gets its last update (postgresql.org/support/versioning). */
const POSTGRES_ENDS: Readonly<Record<number, string>> = {
  ...{ 15: '2027-11-11', 16: '2028-11-09', 17: '2029-11-08', 18: '2030-11-14' },
};

const database = check('database', async (look) => {
  const { databaseProblem, ping, describeError } = look;
  const fix = 'Start PostgreSQL, correct DATABASE_URL, or run this command where the service runs.';
  if (databaseProblem !== null) return failed(databaseProblem, fix);
  const startedMs = performance.now();
  return ping().then(
    () => good(`the database responds in ${Math.ceil(performance.now() - startedMs)} ms`),
    (error: unknown) => failed(describeError(error), fix),
  );
});

export const postgresRelease = databaseCheck('postgres-release', async (look) => {
  const { version, versionNumber } = await look.read(readServer);
  const major = Math.floor(versionNumber / 10_000);
  if (major < OLDEST_POSTGRES) {
    return failed(
      `PostgreSQL ${version} is too old: Quittance needs ${OLDEST_POSTGRES} or later`,
      'Upgrade PostgreSQL (pg_upgrade).',
    );
  }
  const ends = POSTGRES_ENDS[major];
  if (ends !== undefined && Date.parse(ends) < look.now()) {
    return atStake(look, `PostgreSQL ${version} has had no updates since ${ends}`, 'Upgrade PostgreSQL (pg_upgrade).');
  }
  if (look.isLive && look.database().kind === 'embedded') {
    const says = `PostgreSQL ${version} is bundled with Quittance, and its libraries get no security updates`;
    return warning(
      says,
      'Use your own PostgreSQL server for a main network (DATABASE_URL): see docs/guides/postgresql.md.',
    );
  }
  return good(`PostgreSQL ${version}${ends === undefined ? '' : ` gets updates until ${ends}`}`);
});

export const databaseRights = schemaCheck('database-rights', async (look) => {
  const { isSuper, mayInsert, mayDelete } = await look.read(readServer);
  const { isOwner } = await look.read(findOwnership);
  const fix =
    'Create a user that owns no tables. See "Your own PostgreSQL" in docs/guides/postgresql.md for the three commands.';
  if (mayInsert !== true) return failed("the database user in DATABASE_URL isn't allowed to create invoices", fix);
  if (isSuper)
    return atStake(
      look,
      'the database user in DATABASE_URL is a superuser, so it bypasses the protection of the tables',
      fix,
    );
  if (isOwner)
    return warning('the database user in DATABASE_URL owns the tables, so it can switch off their protection', fix);
  if (mayDelete === true) return warning('the database user in DATABASE_URL is allowed to delete invoices', fix);
  return good('the database user owns no tables and cannot delete rows');
});

const [LEAST_BYTES, FEW_BYTES] = [200 * 1024 ** 2, 2 * 1024 ** 3];

const databaseDisk = databaseCheck('database-disk', async ({ database, settings: { dataDir } }) => {
  const { db, kind } = database();
  const fix = 'Free disk space on the PostgreSQL server.';
  try {
    await findShortage(db);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return failed(`PostgreSQL can't write a few megabytes: ${error.message}`, fix);
  }
  if (kind === 'external')
    return good("PostgreSQL can write a few megabytes; the server doesn't report how much space is left");
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const says = `${Math.round(free / 1024 ** 2)} MB are free on the embedded database's disk`;
  if (free < LEAST_BYTES) return failed(says, fix);
  return free < FEW_BYTES ? warning(says, fix) : good(says);
});

export const databaseDurability = databaseCheck('database-durability', async ({ read }) => {
  const { fsync, fullPageWrites, synchronousCommit, checksums } = await read(readServer);
  const off = [
    ...(fsync === 'on' ? [] : ['fsync']),
    ...(fullPageWrites === 'on' ? [] : ['full_page_writes']),
    ...(synchronousCommit === 'off' ? ['synchronous_commit'] : []),
  ];
  if (off.length > 0) {
    const says = `${off.join(', ')} ${off.length === 1 ? 'is' : 'are'} off: if the machine crashes, confirmed invoices or the whole ledger can be lost`;
    return failed(
      says,
      `Turn ${off.length === 1 ? 'it' : 'them'} on in PostgreSQL's settings, and for the database user.`,
    );
  }
  return checksums === 'on'
    ? good('committed data is on disk, and checksums detect damage')
    : warning(
        'data_checksums is off, so damaged data goes unnoticed',
        'Stop PostgreSQL, and enable data checksums with pg_checksums.',
      );
});

/** The number of connections that listen for notifications. The pool doesn't count them. */
const LISTENING = 2;
const FULL_SHARE = 0.8;

const databaseConnections = databaseCheck('database-connections', async ({ read, settings: { databasePoolSize } }) => {
  const { used, most } = await read(readServer);
  const own = databasePoolSize + LISTENING;
  const fix = "Raise PostgreSQL's max_connections, or lower QUITTANCE_DATABASE_POOL.";
  if (own > most) return failed(`this process may need ${own} connections, but the server allows ${most}`, fix);
  if (used > most * FULL_SHARE) return warning(`${used} of ${most} connections are in use`, fix);
  return good(`${used} of ${most} connections are in use`);
});

const MAX_PARTS_BYTES = 64 * 1024;

/** Requests a URL once on a new connection, without following redirects, and reads the whole response. Never throws. */
function askUrl(
  url: URL,
  { headers = {}, timeoutMs }: { headers?: Record<string, string>; timeoutMs: number },
): Promise<UrlAnswer | UrlRefusal> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const refuse = (error: Error) => resolve({ code: codeOf(error), reason: error.message || codeOf(error) });
    const send = url.protocol === 'https:' ? tlsRequest : plainRequest;
    const signal = AbortSignal.timeout(timeoutMs);
    const asking = send(url, { headers, agent: false, signal }, (response) => {
      const parts: { text: string; atMs: number }[] = [];
      let bytes = 0;
      const socket = response.socket;
      const ends = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : null;
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        bytes += text.length;
        if (bytes <= MAX_PARTS_BYTES) parts.push({ text, atMs: performance.now() - startedMs });
      });
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          encoding: response.headers['content-encoding'] ?? '',
          parts,
          certificateEnds: ends === null || Number.isNaN(ends) ? null : ends,
        }),
      );
      response.once('error', refuse);
    });
    asking.once('error', (error) =>
      refuse(
        signal.aborted
          ? Object.assign(new Error(`no complete response within ${timeoutMs / 1000} s`), { code: 'LATE' })
          : error,
      ),
    );
    asking.end();
  });
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
}

const ANSWER_MS = 5000;
const PROBE_TRIES = 3;

type Deps = { settings: DoctorSettings; random(bytes: number): Uint8Array; ledgerId: string | null };

/** `ledgerId` is `null` if there's no database that could provide it. */
export async function probeService({ settings, random, ledgerId }: Deps): Promise<Probed> {
  const { localUrl, metricsUrl, publicUrl } = settings;
  const ready = (url: string) => askUrl(new URL('/readyz', url), { timeoutMs: ANSWER_MS });
  const nonce = Buffer.from(random(16)).toString('hex');
  const headers = {
    'x-forwarded-for': MADE_UP_CLIENT,
    accept: 'text/event-stream',
    ...(ledgerId === null ? {} : { [PROBE_HEADER]: `${nonce}.${proveProbe(ledgerId, 'doctor', nonce)}` }),
  };
  const [local, inner, answer] = await Promise.all([
    localUrl === null ? null : ready(localUrl),
    metricsUrl === null ? null : ready(metricsUrl),
    publicUrl === null ? null : askProbe(new URL(PROBE_PATH, publicUrl), headers),
  ]);
  const told = answer !== null && 'status' in answer ? readProbeAnswer(textOf(answer)) : null;
  const isOurs = told !== null && ledgerId !== null && told.proof === proveProbe(ledgerId, 'service', nonce);
  return { local, inner, public: answer, probe: isOurs ? told : null, isLedgerKnown: ledgerId !== null };
}

/**
 * Asks again if the events arrived together. A busy machine may also read both at once; a proxy that buffers always holds them back. All
 * tries together take no longer than one may, and one that fails doesn't replace an earlier answer.
 */
async function askProbe(url: URL, headers: Record<string, string>): Promise<UrlAnswer | UrlRefusal> {
  const endMs = performance.now() + ANSWER_MS;
  let answer = await askUrl(url, { headers, timeoutMs: ANSWER_MS });
  for (let tries = 1; tries < PROBE_TRIES && isProbed(answer) && isTogether(answer); tries += 1) {
    const next = await askUrl(url, { headers, timeoutMs: Math.max(1, Math.ceil(endMs - performance.now())) });
    if (!isProbed(next)) break;
    answer = next;
  }
  return answer;
}

function isProbed(answer: UrlAnswer | UrlRefusal): answer is UrlAnswer {
  return !isRefusal(answer) && readProbeAnswer(textOf(answer)) !== null;
}

/** Whether the events of a probe's answer arrived together, although they're sent with a pause in between. */
function isTogether({ parts }: UrlAnswer): boolean {
  return (parts.at(-1)?.atMs ?? 0) - (parts[0]?.atMs ?? 0) < PROBE_PAUSE_MS / 2;
}

function textOf({ parts }: UrlAnswer): string {
  return parts.map(({ text }) => text).join('');
}

const isRefusal = (answer: UrlAnswer | UrlRefusal): answer is UrlRefusal => 'code' in answer;

const service = check('service', async ({ probe, settings }) => {
  const { local, inner } = await probe();
  if (local === null) return skipped('this process has no API, or its port is not fixed');
  if (isRefusal(local))
    return skipped(`nothing responds at ${settings.localUrl} (${local.code}): the service isn't running here`);
  const { status } = readReadiness(textOf(local));
  const { reason, troubles = [] } = inner === null || isRefusal(inner) ? {} : readReadiness(textOf(inner));
  const fix = "Follow the message. The service's log has details.";
  if (local.status !== 200 || status !== 'ready') {
    const page = quotePage(redactAnswer(Buffer.from(textOf(local))));
    if (page !== null) {
      const says = `${settings.localUrl} returns the web page “${page}” instead of Quittance`;
      return failed(says, 'Stop the other program on that port, or set QUITTANCE_PORT to a free port.');
    }
    return failed(`the service at ${settings.localUrl} is not ready: ${reason ?? `it returned ${local.status}`}`, fix);
  }
  const [trouble] = troubles;
  return trouble === undefined
    ? good('the service is ready')
    : warning(`the service is ready, but reports: ${trouble.detail}`, fix);
});

type Readiness = { status?: string; reason?: string; troubles?: { detail: string }[] };

function readReadiness(text: string): Readiness {
  try {
    return JSON.parse(text) as Readiness;
  } catch {
    return {};
  }
}

const RENEW_MS = 14 * 86_400_000;

export const publicUrl = check('public-url', async (look) => {
  const { publicUrl: url } = look.settings;
  if (url === null) {
    const says = "QUITTANCE_PUBLIC_URL is not set, so payment links point to this machine and payers can't open them";
    return atStake(look, says, 'Set QUITTANCE_PUBLIC_URL to the https:// address that payers see.');
  }
  const probed = await look.probe();
  const problem = problemOfUrl(url, probed);
  if (problem !== null) return problem;
  const { public: answer } = probed;
  const ends = answer === null || isRefusal(answer) ? null : answer.certificateEnds;
  if (ends !== null && ends - look.now() < RENEW_MS) {
    const says = `the certificate for ${url} expires in ${spell(ends - look.now())}`;
    return warning(says, 'Renew the certificate, and find out why automatic renewal failed.');
  }
  return good(
    `${url} serves this ledger${ends === null ? '' : `, with a certificate that is valid until ${new Date(ends).toISOString().slice(0, 10)}`}`,
  );
});

const CERTIFICATE = /^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

function problemOfUrl(url: string, { public: answer, local, probe, isLedgerKnown }: Probed): Finding | null {
  if (answer === null) return skipped('there is no public URL');
  if (isRefusal(answer)) {
    if (CERTIFICATE.test(answer.code) || answer.code === 'EPROTO') {
      const says = `payers' browsers reject the certificate for ${url}: ${answer.reason} (${answer.code})`;
      return failed(
        says,
        'In the proxy, install a certificate for this name from a trusted authority, with the intermediate certificates.',
      );
    }
    if (isDown(local)) return skipped(`${url} does not respond (${answer.code}), and the service isn't running here`);
    const says = `${url} does not respond: ${answer.reason} (${answer.code})`;
    return failed(
      says,
      'Correct QUITTANCE_PUBLIC_URL, DNS, the proxy or the firewall, or run this command on a machine that can reach the public URL.',
    );
  }
  if (probe !== null) return null;
  if (!isLedgerKnown)
    return skipped(
      `${url} responds, but without the database this check can't find out whether the URL serves this ledger`,
    );
  if (answer.status === 404) {
    const says = `${url} doesn't serve this ledger: it belongs to a different service, or to an older release of Quittance`;
    return failed(
      says,
      'Configure the proxy to pass every path to Quittance, correct QUITTANCE_PUBLIC_URL, or restart the service with this release.',
    );
  }
  if (isDown(local) && answer.status >= 500)
    return skipped(`${url} returned ${answer.status}: the service isn't running here`);
  const page = quotePage(redactAnswer(Buffer.from(textOf(answer))));
  const shown = page === null ? '' : ` with the web page “${page}”`;
  const says = `${url} returned ${answer.status}${shown} instead of Quittance`;
  return failed(
    says,
    'Configure the proxy to pass every path to Quittance, and not to return its own pages or redirects.',
  );
}

function isDown(local: Probed['local']): boolean {
  return local !== null && isRefusal(local);
}

export const streams = check('streams', async ({ probe }) => {
  const { public: answer, probe: told } = await probe();
  if (answer === null || isRefusal(answer) || told === null)
    return skipped("Quittance doesn't respond at a public URL");
  const fix = 'Turn off buffering and compression of text/event-stream in the proxy (nginx: proxy_buffering off).';
  if (answer.encoding !== '') return failed(`the proxy compresses event streams (${answer.encoding})`, fix);
  const says = 'the proxy buffers event streams, so open payment pages will show a payment late';
  return isTogether(answer) ? failed(says, fix) : good('the proxy passes event streams on immediately');
});

/** Matches ranges such as `0.0.0.0/0`, which would make any client's headers trusted. */
const EVERYBODY = /^(?:[\d.]+\/[0-7]|[\da-f:]+\/(?:\d|1[0-5]))$/i;

const proxy = check('proxy', async (look) => {
  const { trustProxy, publicUrl: url } = look.settings;
  const broad = trustProxy.find((entry) => EVERYBODY.test(entry));
  const narrow = 'Set QUITTANCE_TRUST_PROXY to only the addresses of your proxy.';
  if (broad !== undefined) {
    return failed(
      `QUITTANCE_TRUST_PROXY contains ${broad}, so anyone can fake their IP address and bypass limits and allow lists`,
      narrow,
    );
  }
  const { probe: told } = await look.probe();
  if (url === null || told === null) return skipped("Quittance doesn't respond at a public URL");
  const isDirect = url.startsWith('http:');
  return judgeProxy(told, { isDirect: isDirect && isLoopbackLink(new URL(url).hostname), narrow });
});

type Told = NonNullable<Probed['probe']>;

function judgeProxy({ forwarded, isProxyTrusted }: Told, { isDirect, narrow }: { isDirect: boolean; narrow: string }) {
  if (forwarded === 'same' && !isProxyTrusted && isDirect) return good('there is no proxy, and Quittance trusts none');
  if (forwarded === 'none') {
    const fix =
      'Configure the proxy to send X-Forwarded-For with the client\'s address: see "Load balancer" in docs/guides/high-availability.md.';
    return failed("the proxy doesn't pass on client addresses, so all payers share one rate limit", fix);
  }
  if (!isProxyTrusted) {
    const fix =
      'Set QUITTANCE_TRUST_PROXY to the address of the proxy, as the service sees it, or to "loopback" if the proxy runs on the same machine.';
    return failed('the proxy is not trusted, so all payers share one rate limit', fix);
  }
  if (forwarded === 'same') {
    const says = 'the proxy passes on forged client addresses, so anyone can fake their IP address';
    return failed(says, `Configure the proxy to append or set X-Forwarded-For ($proxy_add_x_forwarded_for). ${narrow}`);
  }
  return good('the proxy is trusted and passes on client addresses');
}

export const ENVIRONMENT_CHECKS = [
  ...[configuration, nodeRelease, clockDatabase, clockChain, database, postgresRelease, databaseRights, databaseDisk],
  ...[databaseDurability, databaseConnections],
];
export const SERVICE_CHECKS = [service, publicUrl, streams, proxy];
