import { expect, test } from 'vitest';
import { acquireLease, releaseLease, renewLease } from '../../src/core/store/chain/leases.ts';
import { databaseOfFile } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

const { database, db } = await databaseOfFile(2);

const TTL_MS = 8000;
/** Makes a lease end later, as if the database's clock had been ahead when it was granted. */
const postpone = (name: string, seconds: number) =>
  withClient(database.owner, async (client) => {
    await client.query('set session_replication_role = replica');
    await client.query(`update leases set expires_at = expires_at + $2 * interval '1 second' where name = $1`, [
      name,
      seconds,
    ]);
  });

test('a lease is taken by one holder until it ends, with an epoch that rises', async () => {
  const first = await acquireLease(db, 'one', 'a', TTL_MS);
  expect(first).toEqual({ name: 'one', holder: 'a', epoch: 1n });
  expect(await acquireLease(db, 'one', 'b', TTL_MS)).toBeNull();
  if (first === null) throw new Error('not acquired');
  await releaseLease(db, first);
  expect(await acquireLease(db, 'one', 'b', TTL_MS)).toEqual({ name: 'one', holder: 'b', epoch: 2n });
  expect(await renewLease(db, first, TTL_MS)).toBe(false);
});

test('a lease that was given while the clock of the database was an hour ahead is waited for by nobody', async () => {
  const lost = await acquireLease(db, 'ahead', 'dead', TTL_MS);
  await postpone('ahead', 3600);
  expect(await acquireLease(db, 'ahead', 'b', TTL_MS)).toMatchObject({ holder: 'b', epoch: 2n });
  if (lost === null) throw new Error('not acquired');
  expect(await renewLease(db, lost, TTL_MS)).toBe(false);
});

test('a lease that was renewed by somebody who waited for its row is not taken for one of the future', async () => {
  await acquireLease(db, 'waited', 'a', TTL_MS);
  await postpone('waited', 20);
  expect(await acquireLease(db, 'waited', 'b', TTL_MS)).toBeNull();
});
