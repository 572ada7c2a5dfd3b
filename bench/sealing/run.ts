import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, startScript, startService } from '../child.ts';
import { newKey } from '../console/new-key.ts';
import { onServer } from '../databases.ts';
import type { HonestJob, HonestResult } from '../floods/honest.ts';
import { createDatabase, createGrowthShop } from '../growth/shop.ts';
import { BENCH_MASTER_KEY } from '../master-key.ts';
import { quantile } from '../quantile.ts';
import { ADDRESS_COUNT, fillLedger } from '../sizes/fill.ts';
import { type Target, table } from '../targets.ts';

const PLAN = { full: { invoices: 300_000, quietSeconds: 30 }, quick: { invoices: 20_000, quietSeconds: 5 } };
/** Creations, and the same number of payers' pages. */
const PER_SECOND = 100;
const WANTED = { rows: 10_000_000, minutes: 15 };

/** Measures `quittance ledger seal` on a ledger without seals, while a process with the role `api` creates and shows invoices. */
export async function runSealing(context: BenchContext): Promise<BenchResult> {
  const { command, postgres, flags, onProgress, onStart } = context;
  const plan = flags.quick ? PLAN.quick : PLAN.full;
  const { db, connection } = await createDatabase(postgres, 'sealing');
  const shop = await createGrowthShop(db, 'tail', ADDRESS_COUNT);
  const apiKey = await newKey(db, shop);
  await onServer(connection, (client) => fillLedger(client, shop, plan.invoices, onProgress));
  await db.close();
  const service = await startService(command, connection, { env: { QUITTANCE_ROW_MACS: 'warn' } });
  onStart(service);
  const [client] = await startScript('./floods/honest.ts', {});
  onStart(client);
  const job = (seconds: number): HonestJob => ({
    ...{ url: service.url, from: '127.0.0.2', perSecond: PER_SECOND, seconds, apiKey },
  });
  await ask(client, job(3));
  const quiet = await ask<HonestResult>(client, job(plan.quietSeconds));
  onProgress('sealing');
  const during: HonestResult[] = [];
  let isSealing = true;
  const sealing = seal(command, connection).finally(() => {
    isSealing = false;
  });
  while (isSealing) during.push(await ask<HonestResult>(client, job(5)));
  const sealedMs = await sealing;
  const [settings] = await onServer(connection, async (on) => {
    const { rows } = await on.query<{ rows: string; fsync: string }>(COUNT);
    return rows;
  });
  const rows = Number(settings?.rows);
  const perSecond = (rows / sealedMs) * 1000;
  const minutes = WANTED.rows / perSecond / 60;
  const targets: Target[] = [
    {
      name: 'minutes for 10,000,000',
      reach: `≤ ${WANTED.minutes}`,
      measured: minutes,
      isReached: minutes <= WANTED.minutes,
    },
  ];
  const line = (name: string, results: HonestResult[]) => {
    const latencies = results.flatMap(({ creations }) => creations.latencies);
    const made = results.reduce((sum, { creations }) => sum + (creations.statuses['201'] ?? 0), 0);
    return [
      name,
      `${made} of ${latencies.length}`,
      ...[0.5, 0.99, 1].map((share) => quantile(latencies, share).toFixed(1)),
    ];
  };
  const markdown = [
    `${rows} seals in ${(sealedMs / 1000).toFixed(1)} s: ${perSecond.toFixed(0)} a second; fsync ${settings?.fsync}. Creations, ${PER_SECOND / 2} a second:`,
    table(['', 'made', 'p50 ms', 'p99 ms', 'most ms'], [line('before', [quiet]), line('while it seals', during)]),
  ].join('\n\n');
  return { markdown, targets, record: { plan, rows, sealedMs, quiet, during } };
}

/** By then every filled row has its seal. Invoices created meanwhile, a thousandth of all, were sealed from the start. */
const COUNT = `select (select count(mac) + count(paid_mac) from invoices) + (select count(mac) from transfers)
    + (select count(mac) from events) as rows, current_setting('fsync') as fsync`;

/** Returns the duration in milliseconds. */
async function seal(command: string, connection: PostgresConnection): Promise<number> {
  const startedMs = performance.now();
  const { host, port, user, password, database } = connection;
  const url = `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`;
  const child = spawn(process.execPath, [command, 'ledger', 'seal', '--yes', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...{ PATH: process.env['PATH'], DATABASE_URL: url, DATABASE_OWNER_URL: url },
      ...{ QUITTANCE_MASTER_KEY: BENCH_MASTER_KEY, QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9' },
      QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
    },
  });
  const [[code], said, problems] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  if (code !== 0) throw new Error(`sealing ended with ${code}: ${said} ${problems}`);
  return performance.now() - startedMs;
}
