import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createPayer } from '@quittance/devnet/payer';
import { afterEach, expect, test } from 'vitest';
import { migrate, readMigrations } from '../../src/core/store/db/migrate.ts';
import { untilItFails } from '../support/fault-flow.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import {
  call,
  createInvoice,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

async function started(options: Parameters<typeof startTestService>[0] = {}): Promise<TestService> {
  service = await startTestService(options);
  return service;
}

const payExactly = async (to: TestService, id: string) => {
  const { address, amountMicro } = await payableOf(to, id);
  return to.payer.transfer({ contract: to.devnet.usdtContract, to: address, amountMicro });
};

/** One fault of each kind. `npm run test:long` has all of them on every node, and the simulation has them at any time. */
const REFUSALS = ['unavailable-503', 'truncated', 'swapped-infos'] as const;

test.each(REFUSALS)('a node that answers %s stops nothing but confirmation, and loses nothing', async (kind) => {
  const running = await started();
  const first = (await createInvoice(running)).body.invoiceId;
  const other = (await createInvoice(running)).body.invoiceId;
  const payments = [await payableOf(running, first), await payableOf(running, other)];
  // Two payments in one block, so that swapped and missing infos hide something.
  for (const { address, amountMicro } of payments) {
    await running.payer.transfer({ contract: running.devnet.usdtContract, to: address, amountMicro });
  }
  running.devnet.setFault({ kind });
  running.devnet.mineUntilSolid();
  await untilItFails(running);
  expect((await createInvoice(running)).status).toBe(201);
  expect((await readInvoice(running, first)).body.status).toBe('PENDING');
  running.devnet.setFault();
  await untilStatus(running, first, 'PAID');
  await untilStatus(running, other, 'PAID');
});

test('a back end that lost the transactions of its blocks together with their infos hides no payment', async () => {
  const running = await started();
  const id = (await createInvoice(running)).body.invoiceId;
  await payExactly(running, id);
  running.devnet.setFault({ kind: 'empty-block' }, { kind: 'empty-infos' });
  running.devnet.mineUntilSolid();
  await untilItFails(running);
  running.devnet.setFault();
  await untilStatus(running, id, 'PAID');
});

test('a server whose clock is ahead of the chain’s finds a payment that was made before the first start saw a node', async () => {
  const running = await started({ isNodeDown: true });
  running.clock.advance(60_000);
  const id = (await createInvoice(running)).body.invoiceId;
  const other = await running.devnet.addNode();
  const { address, amountMicro } = await payableOf(running, id);
  const wallet = createPayer({ nodeUrl: other.url, privateKey: running.devnet.payer.privateKey });
  await wallet.transfer({ contract: running.devnet.usdtContract, to: address, amountMicro });
  running.devnet.mineUntilSolid();
  running.devnet.setFault();
  await untilStatus(running, id, 'PAID');
});

test('a node that is down at the first start: invoices are created, readyz says blind, and a payment made meanwhile is found', async () => {
  const running = await started({ isNodeDown: true });
  const id = (await createInvoice(running)).body.invoiceId;
  const ready = await call(`${running.metricsUrl}/readyz`);
  expect(ready).toMatchObject({ status: 200, body: { status: 'ready', networks: { devnet: { blind: true } } } });
  // The payer's wallet uses another node, which works.
  const other = await running.devnet.addNode();
  const { address, amountMicro } = await payableOf(running, id);
  const wallet = createPayer({ nodeUrl: other.url, privateKey: running.devnet.payer.privateKey });
  await wallet.transfer({ contract: running.devnet.usdtContract, to: address, amountMicro });
  running.devnet.mineUntilSolid();
  running.devnet.mineUntilSolid();
  expect((await readInvoice(running, id)).body.status).toBe('PENDING');
  running.devnet.setFault();
  await untilStatus(running, id, 'PAID');
});

test('a database that is lost and comes back: 503 with Retry-After meanwhile, then everything goes on', async () => {
  const database = await createTestDatabase();
  const proxy = await startProxy(database.connection.host, database.connection.port);
  // The service is started through the proxy, which can be cut.
  const running = await startTestService({
    connection: { ...database.connection, host: '127.0.0.1', port: proxy.port },
  });
  try {
    const id = (await createInvoice(running)).body.invoiceId;
    proxy.cut();
    const refused = await eventually(
      () => createInvoice(running),
      ({ status }) => status !== 201,
    );
    expect(refused.status).toBe(503);
    expect(refused.body.code).toBe('UNAVAILABLE');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await call(`${running.url}/healthz`)).status).toBe(200);
    expect((await call(`${running.url}/readyz`)).status).toBe(503);
    proxy.mend();
    await eventually(
      () => createInvoice(running),
      ({ status }) => status === 201,
    );
    await payExactly(running, id);
    running.devnet.mineUntilSolid();
    await untilStatus(running, id, 'PAID');
  } finally {
    await running.stop();
    proxy.close();
    await database.drop();
  }
});

test('a database with a migration of a newer release is refused', async () => {
  const database = await createTestDatabase();
  const db = openTestDatabase(database, 2);
  try {
    const known = await readMigrations();
    await expect(migrate(db, { migrations: known.slice(0, -1) })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
    const changed = known.map((migration) => ({ ...migration, sha256: '0'.repeat(64) }));
    await expect(migrate(db, { migrations: changed })).rejects.toMatchObject({ code: 'SCHEMA_CHANGED' });
    expect(await migrate(db, { migrations: known })).toEqual([]);
  } finally {
    await db.close();
    await database.drop();
  }
});

test('a port in use is named with the fix', async () => {
  const running = await started();
  const port = Number(new URL(running.url).port);
  await expect(startTestService({ config: { port } })).rejects.toMatchObject({
    code: 'PORT_IN_USE',
    message: expect.stringContaining('QUITTANCE_PORT'),
  });
});

/** A TCP proxy to PostgreSQL's Unix socket that can be cut and restored. */
async function startProxy(socketDir: string, port: number) {
  const open = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const database = connect(`${socketDir}/.s.PGSQL.${port}`);
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      for (const socket of open) socket.destroy();
    },
    mend: () => {
      isCut = false;
    },
    close: () => server.close(),
  };
}
