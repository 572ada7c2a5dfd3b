import { type ChildProcess, execFile, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { startDevnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import type { Called } from './covered-service.ts';

/** The files of `src/` in which a function is called while a running service does one thing. */
export type Flows = Record<'create' | 'page' | 'block to webhook', string[]>;

const ROOT = resolve(import.meta.dirname, '../..');
/** Ends the measurement if an expected event never happens. */
const LIMIT_MS = 300_000;

/**
 * Follows one invoice through two processes. The `api` process, otherwise idle, creates the invoice and serves its page with everything
 * that the page loads. The `watcher` and `webhooks` process sees its payment and notifies the shop. Network, payer, shop and database run
 * outside these processes. Takes half a minute on an idle machine.
 */
export async function measureFlows(): Promise<Flows> {
  const stops: (() => Promise<unknown>)[] = [];
  const limit = setTimeout(() => stopAll(stops), LIMIT_MS);
  try {
    return await run(stops);
  } finally {
    clearTimeout(limit);
    await stopAll(stops);
  }
}

async function stopAll(stops: (() => Promise<unknown>)[]): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop();
}

async function run(stops: (() => Promise<unknown>)[]): Promise<Flows> {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  stops.push(() => devnet.stop());
  devnet.mineUntilSolid();
  const shop = await startShop();
  stops.push(shop.stop);
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: await startPostgres(stops),
    QUITTANCE_PORT: '0',
    QUITTANCE_METRICS_PORT: '0',
    QUITTANCE_DEVNET_NODES: devnet.url,
    QUITTANCE_DEVNET_USDT: devnet.usdtContract,
    QUITTANCE_MASTER_KEY: createMasterKey().bytes.toString('base64'),
    QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
  };
  const api = await startCovered({ ...env, QUITTANCE_ROLES: 'api' }, stops);
  const apiKey = await createProject(env, shop.url);
  const watcher = await startCovered({ ...env, QUITTANCE_ROLES: 'watcher,webhooks' }, stops);
  await untilReady(api.url);

  await api.take();
  const invoice = await createInvoice(api.url, apiKey);
  const create = await api.take();
  await openPage(invoice.checkoutUrl);
  const page = await api.take();
  const payment = await readPayment(api.url, apiKey, invoice.invoiceId);
  const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  await payer.transfer({ contract: devnet.usdtContract, ...payment });
  await watcher.take();
  devnet.mineUntilSolid();
  await shop.paid;
  return { create, page, 'block to webhook': await watcher.take() };
}

async function startPostgres(stops: (() => Promise<unknown>)[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-flows-'));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  // When started by root, PostgreSQL runs as another user, who couldn't enter mkdtemp's directory with mode 0700.
  await chmod(folder, 0o711);
  const log = createLogger({ level: 'warn' });
  const sharedDir = join(folder, 'shared');
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), sharedDir, log, isDurable: false });
  stops.push(() => postgres.stop());
  const { host, port, user, password, database } = postgres.owner;
  return `postgres://${user}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`;
}

/** Receives webhooks. `paid` resolves with the first `invoice.paid`. */
async function startShop(): Promise<{ url: string; paid: Promise<void>; stop(): Promise<void> }> {
  let onPaid: () => void = () => undefined;
  const paid = new Promise<void>((resolve) => {
    onPaid = resolve;
  });
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    response.writeHead(204).end(() => JSON.parse(body).type === 'invoice.paid' && onPaid());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await promisify(server.close.bind(server))();
  };
  return { url: `http://127.0.0.1:${port}/`, paid, stop };
}

type Covered = { url: string; take(): Promise<string[]> };

async function startCovered(env: NodeJS.ProcessEnv, stops: (() => Promise<unknown>)[]): Promise<Covered> {
  const child = fork(join(import.meta.dirname, 'covered-service.ts'), [], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    execArgv: ['--conditions=@quittance/source', '--import', 'ts-blank-space/register'],
    env,
    cwd: ROOT,
  });
  const ended = once(child, 'exit');
  stops.push(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  const failed = ended.then(([code]) => Promise.reject(new Error(`the service ended with ${code}`)));
  failed.catch(() => undefined);
  const url = await Promise.race([readyUrl(child), failed]);
  const take = async () => {
    const answered = once(child, 'message');
    child.send({});
    const [{ paths }] = (await Promise.race([answered, failed])) as [Called];
    return paths;
  };
  return { url, take };
}

/** {"level":"info","time":"…","url":"http://127.0.0.1:40123","metricsUrl":null,"roles":["api"],"msg":"ready"} */
function readyUrl({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    if (stdout === null) return;
    createInterface(stdout).on('line', (line) => {
      const { msg, url } = JSON.parse(line) as { msg: string; url?: string | null };
      if (msg === 'ready') resolve(url ?? '');
    });
  });
}

/** Creates a project with an address and an endpoint, and returns its API key. */
async function createProject(env: NodeJS.ProcessEnv, endpointUrl: string): Promise<string> {
  const quittance = async (...args: string[]) => {
    const command = [join(ROOT, 'bin/quittance.js'), ...args, '--json'];
    return JSON.parse((await promisify(execFile)(process.execPath, command, { env, cwd: ROOT })).stdout);
  };
  const project = await quittance('project', 'create', '--name', 'Measured', '--network', 'devnet');
  const key = await quittance('key', 'create', '--project', project.projectId, '--name', 'measured');
  await quittance('address', 'add', 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH');
  await quittance('webhook', 'add', '--url', endpointUrl);
  return key.apiKey;
}

async function untilReady(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/readyz`);
    await response.body?.cancel();
    if (response.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function createInvoice(url: string, apiKey: string): Promise<{ invoiceId: string; checkoutUrl: string }> {
  const headers = { 'x-api-key': apiKey, 'idempotency-key': randomUUID(), 'content-type': 'application/json' };
  const body = JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: 'order-1' });
  const response = await fetch(`${url}/v1/invoices`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`no invoice: ${response.status} ${await response.text()}`);
  return (await response.json()) as { invoiceId: string; checkoutUrl: string };
}

/** Loads the page and our own files that it refers to. */
async function openPage(url: string): Promise<void> {
  const response = await fetch(url, { headers: { accept: 'text/html' } });
  const html = await response.text();
  if (!response.ok) throw new Error(`no page: ${response.status} ${html}`);
  for (const [, path = ''] of html.matchAll(/(?:src|href)="(\/[^"]+\.(?:css|js|svg|png))"/g)) {
    await (await fetch(new URL(path, url))).arrayBuffer();
  }
}

async function readPayment(url: string, apiKey: string, id: string): Promise<{ to: string; amountMicro: bigint }> {
  const response = await fetch(`${url}/v1/invoices/${id}?expand=payment`, { headers: { 'x-api-key': apiKey } });
  const { payment } = (await response.json()) as { payment: { address: string; payableAmount: string } };
  return { to: payment.address, amountMicro: BigInt(payment.payableAmount.replace('.', '')) };
}
