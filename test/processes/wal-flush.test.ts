import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { startTestDevnet } from '../support/devnet.ts';
import { call, eventually } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';
import { killPostgres, processesOfPostgres } from './kill-postgres.ts';
import { type Life, startLife } from './life.ts';
import { MASTER_KEY, openShops } from './shop.ts';
import { findUnflushed, startTrace, whyNoStrace } from './wal-trace.ts';

let folder: string;
let life: Life | null = null;
beforeEach(async () => {
  folder = await mkdtemp(join(inject('runDirectory'), 'flush-'));
  await chmod(folder, 0o1777);
});
afterEach(async () => {
  await life?.dieWithin(0);
  await killPostgres(join(folder, 'data'));
  await rm(folder, { recursive: true, force: true });
});

const reason = whyNoStrace();
const ORDERS = 10;

test.skipIf(reason !== null)(
  `the journal is flushed before each acknowledged 201 is handed to the socket, and without synchronous_commit it is seen that it is not${reason === null ? '' : ` (skipped: ${reason})`}`,
  async () => {
    const devnet = await startTestDevnet();
    devnet.mineUntilSolid();
    const dataDir = join(folder, 'data');
    const port = await findSteadyPort();
    const env = {
      QUITTANCE_PORT: String(port),
      QUITTANCE_DEVNET_NODES: devnet.url,
      QUITTANCE_DEVNET_USDT: devnet.usdtContract,
      QUITTANCE_MASTER_KEY: MASTER_KEY,
      // The test writes unsealed rows.
      QUITTANCE_ROW_MACS: 'warn',
    };
    const started = await startLife({ dataDir, folder, env, failpoint: null, formerSocket: null });
    life = started;
    expect(await started.service.ready).toBe('ready');
    const { database } = started;
    if (database === null) throw new Error('the database is not there');
    const secret = createWebhookSecret(randomBytes);
    const [shop] = await openShops(database.connection, { url: 'http://127.0.0.1:9/', secret });
    const create = async (): Promise<string> => {
      const token = `order-${randomUUID()}`;
      const headers = { 'x-api-key': shop?.apiKey ?? '', 'content-type': 'application/json', 'idempotency-key': token };
      const body = JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: token });
      // The first request discovers a connection that was closed a moment ago, and is then repeated.
      await eventually(
        () => call(`http://127.0.0.1:${port}/v1/invoices`, { method: 'POST', headers, body }),
        ({ status }) => status === 201,
      );
      return token;
    };
    const trace = await startTrace(
      [started.service.pid, ...(await processesOfPostgres(dataDir))],
      join(folder, 'trace'),
    );
    const [durable, careless]: [string[], string[]] = [[], []];
    let lines: string[];
    try {
      for (let i = 0; i < ORDERS; i += 1) durable.push(await create());
      await database.client.query('alter database quittance set synchronous_commit = off');
      // Otherwise everything would be flushed in time if ten orders take that long.
      await database.client.query("alter system set wal_writer_delay = '10s'");
      await database.client.query('select pg_reload_conf()');
      await database.client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'quittance'",
      );
      for (let i = 0; i < ORDERS; i += 1) careless.push(await create());
    } finally {
      lines = await trace.end();
    }
    expect(findUnflushed(lines, durable)).toEqual([]);
    expect(findUnflushed(lines, careless)).not.toEqual([]);
  },
);
