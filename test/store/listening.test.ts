import { once } from 'node:events';
import { type AddressInfo, createServer, Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { databaseOfTest } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { eventually } from '../support/service.ts';

test('a database that is away is asked again and again by who listens, and told of once', async () => {
  let asked = 0;
  const server = createServer((socket) => {
    asked += 1;
    socket.on('error', () => undefined).resetAndDestroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const errors: Error[] = [];
  const { port } = server.address() as AddressInfo;
  const connection = { host: '127.0.0.1', port, user: 'quittance', password: '', database: 'quittance' };
  const onError = (error: Error) => void errors.push(error);
  const db = openDatabase({ connection, poolSize: 1, applicationName: 'listening test', onError });
  onTestFinished(() => db.close());
  db.listen('somewhere', () => expect.fail('nothing can be heard'));
  await eventually(
    () => asked,
    (count) => count >= 4,
  );
  expect(errors).toHaveLength(1);
});

test('who listens hears what was said, and null whenever something may have been missed', async () => {
  const { database, db } = await databaseOfTest();
  const heard: (string | null)[] = [];
  db.listen('somewhere', (payload) => heard.push(payload));
  const hears = (count: number) =>
    eventually(
      () => heard.length,
      (length) => length === count,
    );
  await withClient(database.connection, async (client) => {
    await hears(1);
    await client.query("notify somewhere, 'what is new'; notify somewhere; notify elsewhere, 'no'");
    await hears(3);
    await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()",
    );
    await hears(4);
    await client.query("notify somewhere, 'and again'");
    await hears(5);
  });
  expect(heard).toEqual([null, 'what is new', '', null, 'and again']);
});

test('the connection that listens asks the kernel to notice within seconds that its server vanished', async () => {
  const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
  onTestFinished(() => keepAlive.mockRestore());
  const { db } = await databaseOfTest();
  await new Promise((hear) => db.listen('somewhere', hear));
  expect(keepAlive.mock.calls).toEqual([[true, 10_000]]);
});
