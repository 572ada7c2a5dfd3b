import { randomBytes } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { runCli } from './run-cli.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

const env = {
  DATABASE_URL: database.connectionString,
  QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64'),
};
const cli = (...args: string[]) => runCli([...args, '--json'], { env });

test('commands that enable an adapter at once make one of each kind: the others find it, and change its rate', async () => {
  await cli('project', 'create', '--name', 'Shop', '--network', 'nile');
  const rates = ['7.1', '7.2', '7.3', '7.4'];
  const enabled = await Promise.all(rates.map((rate) => cli('adapter', 'enable', '--kind', 'epusdt', '--rate', rate)));
  expect(enabled.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  const { json } = await cli('adapter', 'list');
  expect(json.data).toHaveLength(1);
  expect(new Set(enabled.map((each) => each.json.adapterId))).toEqual(new Set([json.data[0].adapterId]));
  // Only who made it is shown its secret.
  expect(enabled.filter((each) => each.json.secret !== null)).toHaveLength(1);
  const changes = await withClient(database.owner, async (client) => {
    const text = `select count(*)::int as count from operator_actions where action = 'webhook.changed'`;
    return (await client.query(text)).rows[0].count;
  });
  expect(changes).toBe(rates.length - 1);
});
