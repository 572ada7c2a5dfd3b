import { expect, test } from 'vitest';
import { EmbeddedPostgresError } from '../../../core/store/embedded/error.ts';
import { nameUse } from './verify-backup.ts';

test('an installation without a PostgreSQL hears that backups need it, whatever database it works with', () => {
  const missing = new EmbeddedPostgresError('EMBEDDED_MISSING', 'No embedded PostgreSQL: set DATABASE_URL');
  expect(() => nameUse(missing)).toThrow(
    /^Quittance verifies backups with its bundled PostgreSQL, .*target "embedded"/,
  );
  const other = new EmbeddedPostgresError('EMBEDDED_FAILED', 'it has ended');
  expect(() => nameUse(other)).toThrow(other);
});
