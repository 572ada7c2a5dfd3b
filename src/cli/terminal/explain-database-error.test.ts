import { expect, test } from 'vitest';
import { AppError } from '../../core/domain/errors.ts';
import { explainDatabaseError } from './explain-database-error.ts';

function explain(message: string, code?: string) {
  const cause = Object.assign(new Error(message), code === undefined ? {} : { code });
  const error = new AppError('DATABASE_UNAVAILABLE', 'the database does not respond', { cause });
  return explainDatabaseError(error, { databaseUrl: 'postgres://shop:secret@127.0.0.1:5432/quittance' });
}

test('a closed ledger is named as such, and not as a database that does not respond', () => {
  const closed = 'this ledger was closed by its final backup: new invoices are made where that was restored';
  expect(explain(closed, '25006')).toMatchObject({
    code: 'LEDGER_CLOSED',
    message: `${closed}; set DATABASE_URL to the database into which that backup was restored`,
  });
  expect(explain('cannot execute INSERT in a read-only transaction', '25006')).toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message: expect.stringContaining('point DATABASE_URL to the primary'),
  });
});

test('a server without TLS is told how to be reached, without the password', () => {
  expect(explain('The server does not support SSL connections')).toMatchObject({
    code: 'DATABASE_UNAVAILABLE',
    message:
      'the database "quittance" at 127.0.0.1:5432 does not respond: The server does not support SSL connections; turn on TLS there or, if the server is on this machine, remove sslmode from DATABASE_URL',
  });
});
