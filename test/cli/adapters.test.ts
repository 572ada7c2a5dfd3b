import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { runCli } from './run-cli.ts';

const database = await createTestDatabase();
afterAll(() => database.drop());

const env = {
  DATABASE_URL: database.connectionString,
  QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64'),
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
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
  // Only the caller that created it sees its secret.
  expect(enabled.filter((each) => each.json.secret !== null)).toHaveLength(1);
  const changes = await withClient(database.owner, async (client) => {
    const text = `select count(*)::int as count from operator_actions where action = 'webhook.changed'`;
    return (await client.query(text)).rows[0].count;
  });
  expect(changes).toBe(rates.length - 1);
});

test('an adapter whose rate a source says is shown with it, and with a fixed rate or another source when it is given one', async () => {
  let rate = '7.19';
  const seconds = Math.floor(Date.now() / 1000) - 60;
  const server = createServer((_, response) => response.end(`{"tether":{"cny":${rate},"t":${seconds}}}`));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/?key=h0rse`;
  const { projectId } = (await cli('project', 'create', '--name', 'Another', '--network', 'nile')).json;
  const enable = (...args: string[]) => cli('adapter', 'enable', '--project', projectId, '--kind', 'epay', ...args);
  const source = [
    '--rate-url',
    url,
    '--rate-path',
    '/tether/cny',
    '--rate-time-path',
    '/tether/t',
    '--rate-min',
    '6.5',
    '--rate-max',
    '8',
  ];
  const enabled = await enable(...source);
  expect(enabled.json).toMatchObject({
    ...{ rate: '7.19', currency: 'CNY' },
    rateSource: {
      url,
      path: '/tether/cny',
      timePath: '/tether/t',
      min: '6.5',
      max: '8',
      maxAge: '30m',
      isTooOld: false,
    },
  });
  expect(Date.parse(enabled.json.rateSource.at)).toBe(seconds * 1000);
  const list = () => runCli(['adapter', 'list', '--project', projectId], { env });
  expect((await list()).stdout).toMatch(
    new RegExp(`7.19 CNY +${new URL(url).origin}, (([6-9]\\d|1[01]\\d) s|\\d+m) old `),
  );
  expect((await list()).stdout).not.toContain('h0rse');

  rate = '8.01';
  const refused = await enable(...source, '--rate-max-age', '1h');
  expect([refused.code, refused.json.error.message]).toEqual([
    ...[2, '--rate-url returned no rate: the rate is 8.01, which is not between 6.5 and 8; nothing was changed'],
  ]);
  rate = '7.2';
  expect((await enable(...source, '--rate-max-age', '1h')).json.rateSource.maxAge).toBe('1h');
  expect((await enable('--rate', '7.1')).json).toMatchObject({ rate: '7.1', rateSource: null });
  expect((await list()).stdout).toContain('7.1 CNY  fixed');
  const log = await cli('audit', 'list', '--subject', enabled.json.adapterId);
  const changes = log.json.data.filter(({ action }: { action: string }) => action === 'webhook.changed');
  expect(changes.map(({ detail }: { detail: object }) => detail)).toMatchObject([
    { rate: { from: { origin: new URL(url).origin, maxAge: '1h' }, to: { fixed: '7.1', min: '6.5', max: '8' } } },
    { rate: { from: { maxAge: '30m' }, to: { maxAge: '1h' } } },
  ]);
  expect(JSON.stringify(log.json)).not.toContain('h0rse');
});
