import { expect, test } from 'vitest';
import { findLogo } from '../../src/core/store/ledger/logos.ts';
import { insertLogo } from '../../src/faces/operator/subjects/projects.ts';
import { databaseOfTest } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';

test('a logo whose bytes the owner of the tables changed is found by nobody, until they are again what its name says', async () => {
  const { database, db } = await databaseOfTest();
  const content = Buffer.from('89504e470d0a1a0a', 'hex');
  const id = await insertLogo(db, { type: 'image/png', content });
  const write = (bytes: Buffer) =>
    withClient(database.owner, async (client) => {
      await client.query('set session_replication_role = replica');
      await client.query('update logos set content = $2 where id = $1', [id, bytes]);
    });
  expect(await findLogo(db, id)).toEqual({ type: 'image/png', content });
  await write(Buffer.from('<script>alert(1)</script>'));
  expect(await findLogo(db, id)).toBeNull();
  await write(content);
  expect(await findLogo(db, id)).toEqual({ type: 'image/png', content });
});
