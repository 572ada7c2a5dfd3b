import { AppError } from '../../domain/errors.ts';
import type { Sql } from './database.ts';
import { answerOf } from './rows-of.ts';

/** The version in Debian 12. Statements and migrations are tested against it (test/flows/oldest-postgres.test.ts). */
export const OLDEST_POSTGRES = 15;

const findRelease = answerOf(
  'server-release',
  { version: 'text', versionNumber: 'int4' },
  `select current_setting('server_version') as version, current_setting('server_version_num')::int4 as version_number`,
  () => [],
  ([row]) => row ?? null,
);

/** Throws `CONFIG_INVALID` if the server is older than the oldest supported version. */
export async function refuseOldServer(sql: Sql): Promise<void> {
  const release = await findRelease(sql);
  if (release === null || release.versionNumber >= OLDEST_POSTGRES * 10_000) return;
  throw new AppError(
    'CONFIG_INVALID',
    `the server in DATABASE_URL is PostgreSQL ${release.version}, but Quittance requires ${OLDEST_POSTGRES} or newer: upgrade it (pg_upgrade), or use another server. Nothing was changed`,
  );
}
