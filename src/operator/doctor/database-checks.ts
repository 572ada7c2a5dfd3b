import { statfs } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { findShortage } from '../../store/db/find-shortage.ts';
import { OLDEST_POSTGRES } from '../../store/db/refuse-server.ts';
import { findOwnership } from '../../store/db/runtime-role.ts';
import { atStake, type Check, failed, good, warning } from './check.ts';
import { readServer } from './database-queries.ts';

/** When the last update of each release of PostgreSQL comes (postgresql.org/support/versioning). */
const POSTGRES_ENDS: Readonly<Record<number, string>> = {
  ...{ 15: '2027-11-11', 16: '2028-11-09', 17: '2029-11-08', 18: '2030-11-14' },
};

export const database: Check = {
  name: 'database',
  look: async (look) => {
    const { databaseProblem, ping, describeError } = look;
    const fix = 'Start PostgreSQL, correct DATABASE_URL, or run this command where the service runs.';
    if (databaseProblem !== null) return failed(databaseProblem, fix);
    const startedMs = performance.now();
    return ping().then(
      () => good(`the database answers in ${Math.ceil(performance.now() - startedMs)} ms`),
      (error: unknown) => failed(describeError(error), fix),
    );
  },
};

export const postgresRelease: Check = {
  name: 'postgres-release',
  needs: 'database',
  look: async (look) => {
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
      return warning(says, 'Use your own PostgreSQL server for a main network (DATABASE_URL): see docs/operations.md.');
    }
    return good(`PostgreSQL ${version}${ends === undefined ? '' : ` gets updates until ${ends}`}`);
  },
};

export const databaseRights: Check = {
  name: 'database-rights',
  needs: 'schema',
  look: async (look) => {
    const { isSuper, mayInsert, mayDelete } = await look.read(readServer);
    const { isOwner } = await look.read(findOwnership);
    const fix =
      'Create a user that owns no tables. See "Your own PostgreSQL" in docs/operations.md for the three commands.';
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
  },
};

const [LEAST_BYTES, FEW_BYTES] = [200 * 1024 ** 2, 2 * 1024 ** 3];

export const databaseDisk: Check = {
  name: 'database-disk',
  needs: 'database',
  look: async ({ database, settings: { dataDir } }) => {
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
  },
};

export const databaseDurability: Check = {
  name: 'database-durability',
  needs: 'database',
  look: async ({ read }) => {
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
  },
};

/** The pool, and those that listen. */
const LISTENING = 2;
const FULL_SHARE = 0.8;

export const databaseConnections: Check = {
  name: 'database-connections',
  needs: 'database',
  look: async ({ read, settings: { databasePoolSize } }) => {
    const { used, most } = await read(readServer);
    const own = databasePoolSize + LISTENING;
    const fix = 'Raise max_connections of PostgreSQL, or lower QUITTANCE_DATABASE_POOL.';
    if (own > most) return failed(`this process may need ${own} connections, but the server allows ${most}`, fix);
    if (used > most * FULL_SHARE) return warning(`${used} of ${most} connections are in use`, fix);
    return good(`${used} of ${most} connections are in use`);
  },
};
