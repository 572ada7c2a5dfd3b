/**
 * Records the current release's communication with PostgreSQL, before adding a migration that must not disturb it: all statements, and
 * those of a run with their parameters. Run it in a checkout of that release, and keep the file beside upgrade-rolling.test.ts:
 *
 *     npm run upgrade:record
 */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { expect, test } from 'vitest';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { allStatements } from '../../src/core/store/db/statement.ts';
import { runCli } from '../cli/run-cli.ts';
import { importStatements } from '../support/import-statements.ts';
import { createInvoice, eventually, inboxOf, payableOf, startTestService, untilStatus } from '../support/service.ts';

type Said = { name: string; values: unknown[] };

/** Records every named statement of all connections in this process, except failed ones. */
function recordAll(): Said[] {
  const said: Said[] = [];
  const { query } = pg.Client.prototype as unknown as { query: (...args: unknown[]) => Promise<unknown> };
  (pg.Client.prototype as unknown as { query: unknown }).query = function (this: pg.Client, ...args: unknown[]) {
    const [config] = args as [{ name?: string; values?: unknown[] }];
    const keep = () => {
      if (config?.name !== undefined) said.push({ name: config.name, values: (config.values ?? []).map(portable) });
    };
    // A pool passes a callback; a connection in a transaction is awaited.
    const at = args.findIndex((arg) => typeof arg === 'function');
    const callback = args[at] as (error: unknown, result: unknown) => void;
    if (at !== -1) {
      args[at] = (error: unknown, result: unknown) => {
        if (!error) keep();
        callback(error, result);
      };
      return query.apply(this, args);
    }
    const running = query.apply(this, args);
    if (typeof running?.then === 'function') running.then(keep, () => undefined);
    return running;
  };
  return said;
}

function portable(value: unknown): unknown {
  return Buffer.isBuffer(value) ? { hex: value.toString('hex') } : value;
}

/** Drops repetitions of loops, because one occurrence is enough. */
function withoutRepeats(said: readonly Said[]): Said[] {
  const latest = new Map<string, string>();
  return said.filter(({ name, values }) => {
    const text = JSON.stringify(values).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time');
    const isNew = latest.get(name) !== text;
    latest.set(name, text);
    return isNew;
  });
}

test('records the statements of this release', async () => {
  await importStatements();
  const said = recordAll();
  const service = await startTestService({ addressCount: 2 });
  const env = {
    DATABASE_URL: service.connectionString,
    QUITTANCE_DEVNET_NODES: service.devnet.url,
    QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
    QUITTANCE_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
  };
  const cli = async (...args: string[]) => (await runCli([...args, '--json'], { env })).json;
  const pay = async (invoiceId: string, extra = 0n) => {
    const { address, amountMicro } = await payableOf(service, invoiceId);
    await service.payer.transfer({
      contract: service.devnet.usdtContract,
      to: address,
      amountMicro: amountMicro + extra,
    });
    service.devnet.mine();
  };
  const ids: string[] = [];
  for (let i = 0; i < 4; i += 1) ids.push((await createInvoice(service)).body.invoiceId);
  const [paid = '', , open = ''] = ids;
  await pay(paid);
  await untilStatus(service, paid, 'CONFIRMING');
  service.devnet.mineUntilSolid();
  await untilStatus(service, paid, 'PAID');
  await pay(paid);
  await pay(open, 1n);
  service.devnet.mineUntilSolid();
  await eventually(
    () => inboxOf(service),
    (received) => received.length >= 4,
  );
  const key = randomUUID();
  for (let i = 0; i < 2; i += 1) await createInvoice(service, { idempotencyKey: key, body: { externalId: key } });
  await cli('project', 'update', '--name', 'Renamed', '--accent', '#00aa11', '--support', 'a@b.example');
  const made = await cli('key', 'create');
  await cli('key', 'revoke', made.keyId);
  const T = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
  await cli('address', 'add', '--no-check', T);
  await cli('address', 'retire', T);
  await cli('address', 'activate', T);
  await cli('address', 'list');
  await cli('address', 'capacity');
  const endpoint = await cli('webhook', 'add', '--url', 'http://127.0.0.1:9/hook');
  await cli('webhook', 'list');
  await cli('webhook', 'disable', endpoint.endpointId);
  await cli('deliveries', 'list');
  const transfers = await cli('transfers', 'list');
  for (const { transferId } of transfers.data)
    await cli('transfers', 'resolve', transferId, '--as', 'ignored', '--note', 'x');
  await cli('explain', paid);
  await cli('chain', 'status');
  await cli('reconcile');
  await service.restart();
  await service.stop();
  const trace = withoutRepeats(said);
  expect(new Set(trace.map(({ name }) => name)).size).toBeGreaterThan(80);
  const { length: version } = await readMigrations();
  const statements = allStatements.map(({ name, text, columns }) => ({ name, text, columns }));
  const file = new URL(`upgrade-release-${version}.json.gz`, import.meta.url);
  await writeFile(file, gzipSync(JSON.stringify({ version, statements, trace }), { level: 9 }));
  process.stdout.write(
    `${statements.length} statements, ${trace.length} said (${new Set(trace.map(({ name }) => name)).size} different): ${file.pathname}\n`,
  );
}, 180_000);
