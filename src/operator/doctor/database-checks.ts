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
    const fix = 'Start PostgreSQL, or correct DATABASE_URL, or run this where the service runs.';
    if (databaseProblem !== null) return failed(databaseProblem, fix);
    const startedMs = performance.now();
    return ping().then(
      () => good(`it answers in ${Math.ceil(performance.now() - startedMs)} ms`),
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
        `PostgreSQL ${version} is older than ${OLDEST_POSTGRES}, the oldest that works`,
        'Upgrade it (pg_upgrade).',
      );
    }
    const ends = POSTGRES_ENDS[major];
    if (ends !== undefined && Date.parse(ends) < look.now()) {
      return atStake(look, `PostgreSQL ${version} gets no updates since ${ends}`, 'Upgrade it (pg_upgrade).');
    }
    if (look.isLive && look.database().kind === 'embedded') {
      const says = `PostgreSQL ${version}, which came with the program: nobody renews the libraries that it brings along`;
      return warning(says, 'Use a PostgreSQL of your own for a main network (DATABASE_URL): see docs/operations.md.');
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
    const fix = 'See "Your own PostgreSQL" in docs/operations.md: three commands make a user who owns nothing.';
    if (mayInsert !== true) return failed('the user of DATABASE_URL may not add invoices', fix);
    if (isSuper)
      return atStake(look, 'the user of DATABASE_URL is a superuser, whom no guard of the tables stops', fix);
    if (isOwner) return warning('the user of DATABASE_URL owns the tables, so it can switch off their guards', fix);
    if (mayDelete === true) return warning('the user of DATABASE_URL may delete invoices', fix);
    return good('its user owns nothing and deletes nothing');
  },
};

const [LEAST_BYTES, FEW_BYTES] = [200 * 1024 ** 2, 2 * 1024 ** 3];

export const databaseDisk: Check = {
  name: 'database-disk',
  needs: 'database',
  look: async ({ database, settings: { dataDir } }) => {
    const { db, kind } = database();
    const fix = 'Make room on the disk of PostgreSQL.';
    try {
      await findShortage(db);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return failed(`PostgreSQL cannot write a few megabytes: ${error.message}`, fix);
    }
    if (kind === 'external') return good('it can write a few megabytes; how much more, the server does not tell');
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const says = `${Math.round(free / 1024 ** 2)} MB are free where the embedded database is`;
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
      const says = `${off.join(', ')} ${off.length === 1 ? 'is' : 'are'} off: a crash of the machine loses invoices that were answered, or the whole ledger`;
      return failed(says, `Switch ${off.length === 1 ? 'it' : 'them'} on in PostgreSQL's settings, and for its user.`);
    }
    return checksums === 'on'
      ? good('what is committed is on the disk, and damage of it is noticed')
      : warning(
          'data_checksums is off: a disk that damages data is not noticed',
          'Run pg_checksums with PostgreSQL stopped.',
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
    if (own > most) return failed(`this process may want ${own} connections, and the server has ${most}`, fix);
    if (used > most * FULL_SHARE) return warning(`${used} of ${most} connections are in use`, fix);
    return good(`${used} of ${most} connections are in use`);
  },
};
