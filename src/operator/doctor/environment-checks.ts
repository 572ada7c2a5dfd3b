import { statfs } from 'node:fs/promises';
import { MOST_MS } from '../../domain/clocks.ts';
import { AppError } from '../../domain/errors.ts';
import { isLocalNetwork } from '../../domain/network.ts';
import { findShortage } from '../../store/db/find-shortage.ts';
import { OLDEST_POSTGRES } from '../../store/db/refuse-server.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import { findOwnership } from '../../store/db/runtime-role.ts';
import { count } from '../../store/db/statement.ts';
import { atStake, check, databaseCheck, failed, good, schemaCheck, skipped, spell, warning } from './check.ts';

/** When the last security update of each release of Node.js comes (github.com/nodejs/Release); uneven ones live for half a year. */
const NODE_ENDS: Readonly<Record<number, string>> = {
  ...{ 18: '2025-04-30', 19: '2023-06-01', 20: '2026-04-30', 21: '2024-06-01', 22: '2027-04-30' },
  ...{ 23: '2025-06-01', 24: '2028-04-30', 25: '2026-06-01' },
};
const SOON_MS = 90 * 86_400_000;

export const configuration = check('configuration', async ({ settings: { warnings } }) =>
  warnings.length === 0
    ? good('the settings are consistent')
    : warning(warnings.join('; '), 'Correct these variables: see docs/reference/configuration.md.'),
);

export const nodeRelease = check('node-release', async (look) => {
  const { nodeVersion, now } = look;
  const ends = NODE_ENDS[Number.parseInt(nodeVersion, 10)];
  const fix = 'Upgrade to a supported Node.js LTS release, such as 24.';
  if (ends === undefined)
    return good(`Node.js ${nodeVersion}, which is newer than the releases that this version knows`);
  const leftMs = Date.parse(ends) - now();
  if (leftMs < 0) return atStake(look, `Node.js ${nodeVersion} has had no security updates since ${ends}`, fix);
  if (leftMs < SOON_MS) return warning(`Node.js ${nodeVersion} gets security updates only until ${ends}`, fix);
  return good(`Node.js ${nodeVersion} gets security updates until ${ends}`);
});

const CLOCKS = 'Correct the clocks of the machines, and keep them synchronised with chrony or systemd-timesyncd.';

export const clockDatabase = databaseCheck('clock-database', async ({ ping }) => {
  const { ownAt, databaseAt } = await ping();
  const apartMs = ownAt - databaseAt;
  if (Math.abs(apartMs) < MOST_MS) return good("this machine's clock agrees with the database's");
  const way = apartMs < 0 ? 'behind' : 'ahead of';
  return failed(`this machine's clock is ${spell(apartMs)} ${way} the database's`, CLOCKS);
});

/** Blocks come every 3 s. */
const OLD_MS = 60_000;

export const clockChain = check('clock-chain', async ({ now, askNodes }) => {
  const heads = (await askNodes()).filter(({ network }) => !isLocalNetwork(network)).flatMap(({ head }) => head ?? []);
  if (heads.length === 0)
    return skipped('no node of a public network returned a block, and a local network has its own time');
  const newest = Math.max(...heads.map(({ time }) => time));
  const aheadMs = now() - newest;
  if (aheadMs < -MOST_MS) {
    return failed(`this machine's clock is ${spell(aheadMs)} behind the newest block`, CLOCKS);
  }
  if (aheadMs > OLD_MS) {
    const says = `by this machine's clock, the newest block of all nodes is ${spell(aheadMs)} old: either the clock is ahead, or all nodes are behind`;
    return failed(says, `${CLOCKS} If the clocks are right, add a node of another operator.`);
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

/** What the server says of itself, and what this user may do there. */
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
    if (row === undefined) throw new Error('the server said nothing of itself');
    return row;
  },
);

/** When the last update of each release of PostgreSQL comes (postgresql.org/support/versioning). */
const POSTGRES_ENDS: Readonly<Record<number, string>> = {
  ...{ 15: '2027-11-11', 16: '2028-11-09', 17: '2029-11-08', 18: '2030-11-14' },
};

export const database = check('database', async (look) => {
  const { databaseProblem, ping, describeError } = look;
  const fix = 'Start PostgreSQL, correct DATABASE_URL, or run this command where the service runs.';
  if (databaseProblem !== null) return failed(databaseProblem, fix);
  const startedMs = performance.now();
  return ping().then(
    () => good(`the database answers in ${Math.ceil(performance.now() - startedMs)} ms`),
    (error: unknown) => failed(describeError(error), fix),
  );
});

export const postgresRelease = databaseCheck('postgres-release', async (look) => {
  const { version, versionNumber } = await look.read(readServer);
  const major = Math.floor(versionNumber / 10_000);
  if (major < OLDEST_POSTGRES) {
    return failed(
      `PostgreSQL ${version} is too old: Quittance needs ${OLDEST_POSTGRES} or later`,
      'Upgrade it (pg_upgrade).',
    );
  }
  const ends = POSTGRES_ENDS[major];
  if (ends !== undefined && Date.parse(ends) < look.now()) {
    return atStake(look, `PostgreSQL ${version} has had no updates since ${ends}`, 'Upgrade it (pg_upgrade).');
  }
  if (look.isLive && look.database().kind === 'embedded') {
    const says = `PostgreSQL ${version} is the bundled one, whose libraries get no security updates`;
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
  if (mayInsert !== true) return failed("the database user of DATABASE_URL isn't allowed to create invoices", fix);
  if (isSuper)
    return atStake(
      look,
      'the database user of DATABASE_URL is a superuser, so it bypasses the protection of the tables',
      fix,
    );
  if (isOwner)
    return warning('the database user of DATABASE_URL owns the tables, so it can switch off their protection', fix);
  if (mayDelete === true) return warning('the database user of DATABASE_URL is allowed to delete invoices', fix);
  return good('the database user owns no tables and cannot delete rows');
});

const [LEAST_BYTES, FEW_BYTES] = [200 * 1024 ** 2, 2 * 1024 ** 3];

export const databaseDisk = databaseCheck('database-disk', async ({ database, settings: { dataDir } }) => {
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
  const says = `${Math.round(free / 1024 ** 2)} MB are free on the disk of the embedded database`;
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
    return failed(says, `Turn ${off.length === 1 ? 'it' : 'them'} on in PostgreSQL's settings, and for its user.`);
  }
  return checksums === 'on'
    ? good('committed data is on disk, and checksums detect damage')
    : warning(
        'data_checksums is off, so damaged data goes unnoticed',
        'Stop PostgreSQL, and enable data checksums with pg_checksums.',
      );
});

/** The pool, and those that listen. */
const LISTENING = 2;
const FULL_SHARE = 0.8;

export const databaseConnections = databaseCheck(
  'database-connections',
  async ({ read, settings: { databasePoolSize } }) => {
    const { used, most } = await read(readServer);
    const own = databasePoolSize + LISTENING;
    const fix = 'Raise max_connections of PostgreSQL, or lower QUITTANCE_DATABASE_POOL.';
    if (own > most) return failed(`this process may need ${own} connections, but the server allows ${most}`, fix);
    if (used > most * FULL_SHARE) return warning(`${used} of ${most} connections are in use`, fix);
    return good(`${used} of ${most} connections are in use`);
  },
);
