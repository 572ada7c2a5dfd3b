import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPayer, type Payer } from '@quittance/devnet/payer';
import { runInSandbox, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';

/** A sandbox with an address in its project whose key the test knows, so that it can send money back. */
export type QuittanceWorld = {
  url: string;
  apiKey: string;
  projectId: string;
  secret: string;
  shopPort: number;
  /** The API as the shop reaches it, through a proxy that can fail. */
  apiUrl: string;
  /** Lets the shop's requests whose path contains `part` fail with this error, after the first `passes`, until the returned function is called. */
  fail(part: string, status: number, code: string, passes?: number): () => void;
  /** Pays like `POST /sandbox/pay`. */
  pay(checkoutUrl: string, scenario: string): Promise<Json>;
  expireAll(): Promise<void>;
  read(invoiceId: string): Promise<Json>;
  events(): Promise<Json[]>;
  run(...args: string[]): Promise<Json>;
  /** Sends a transfer back to the payer and links the two. */
  refund(transfer: { transferId: string; amount: string }): Promise<void>;
  /** Disables the webhooks, until the returned function is called. */
  stopWebhooks(): Promise<() => Promise<void>>;
  stop(): Promise<void>;
};

/** Enough for the energy of a transfer, and for the money to send back. */
const FEE_SUN = 100_000_000n;
const PURSE_MICRO = 1_000_000_000n;

/** Starts it with a webhook endpoint at `hookPath`, on a port that the shop must use. */
export async function startQuittanceWorld(hookPath: string): Promise<QuittanceWorld> {
  const dataDir = await mkdtemp(join(tmpdir(), 'quittance-plugin-'));
  await chmod(dataDir, 0o711);
  // With this many producers, a block can be orphaned for a second, even on a busy machine.
  const sandbox = await startSandboxProcess(dataDir, { QUITTANCE_DEVNET_PRODUCERS: '9' });
  const run = (...args: string[]) => runInSandbox(dataDir, ...args);
  const payer = createPayer({ nodeUrl: sandbox.file.nodeUrl, privateKey: sandbox.file.payer.privateKey });
  const merchant = payer.withKey(randomBytes(32).toString('hex'));
  const { projectId, apiKey, usdtContract: contract } = sandbox.file;
  await run('address', 'add', '--project', projectId, merchant.address);
  const shopPort = await findSteadyPort();
  const url = `http://127.0.0.1:${shopPort}${hookPath}`;
  const { endpointId, secret } = await run('webhook', 'add', '--project', projectId, '--url', url);
  const proxy = await startProxy(sandbox.file.baseUrl);
  const ask = async (path: string, body?: object) => {
    const answer = await call(sandbox.file.baseUrl + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  // The money that it sends back later.
  await payer.sendTrx({ to: merchant.address, amountSun: FEE_SUN });
  const filled = await payer.transfer({ contract, to: merchant.address, amountMicro: PURSE_MICRO });
  await eventually(
    () => readFeed(ask),
    (events) => events.some(({ data }) => data.txId === filled),
  );
  return {
    ...{ url: sandbox.file.baseUrl, apiKey, projectId, secret, shopPort, run },
    ...{ apiUrl: proxy.url, fail: proxy.fail },
    pay: (invoice, scenario) =>
      // Only the command reports whether the payment was seen before its block was orphaned.
      scenario === 'orphaned'
        ? run('sandbox', 'pay', invoice, '--scenario', scenario)
        : ask('/sandbox/pay', { invoice, scenario }),
    expireAll: () => ask('/sandbox/advance', { seconds: 86_400 }),
    read: (id) => ask(`/v1/invoices/${id}?expand=payment`),
    events: () => readFeed(ask),
    refund: (transfer) => refund({ run, payer, merchant, contract }, transfer),
    stopWebhooks: async () => {
      await run('webhook', 'disable', endpointId);
      return () => run('webhook', 'enable', endpointId);
    },
    stop: async () => {
      proxy.stop();
      await stop(sandbox, dataDir);
    },
  };
}

/** Starts a proxy of the API at `target` that can fail. */
export async function startProxy(target: string): Promise<{ url: string; fail: QuittanceWorld['fail']; stop(): void }> {
  const failures = new Map<string, { status: number; code: string; passes: number }>();
  const server = createServer(async (request, response) => {
    const { method = 'GET', url: path = '' } = request;
    const failure = [...failures].find(([part]) => path.includes(part))?.[1];
    const answerWith = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    if (failure !== undefined && failure.passes-- <= 0) {
      request.resume();
      answerWith(failure.status, JSON.stringify({ code: failure.code, detail: 'as the test wants it' }));
      return;
    }
    const chunks = await request.toArray();
    const names = ['x-api-key', 'content-type', 'idempotency-key'] as const;
    const headers = names.flatMap((name) => (request.headers[name] ? [[name, String(request.headers[name])]] : []));
    const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
    const answer = await fetch(target + path, { method, headers: headers as [string, string][], ...body });
    answerWith(answer.status, await answer.text());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fail: (part, status, code, passes = 0) => {
      failures.set(part, { status, code, passes });
      return () => failures.delete(part);
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function readFeed(ask: (path: string) => Promise<Json>): Promise<Json[]> {
  const all: Json[] = [];
  for (let query = ''; ; query = `&after=${all.at(-1).id}`) {
    const { data, hasMore } = await ask(`/v1/events?limit=100${query}`);
    all.push(...data);
    if (!hasMore) return all;
  }
}

async function refund(
  { run, payer, merchant, contract }: { run: QuittanceWorld['run']; payer: Payer; merchant: Payer; contract: string },
  { transferId, amount }: { transferId: string; amount: string },
): Promise<void> {
  const amountMicro = BigInt(amount.replace('.', ''));
  const tx = await merchant.transfer({ contract, to: payer.address, amountMicro });
  // It's on the chain before it's in the ledger.
  await eventually(
    () =>
      run('transfers', 'refund', transferId, '--tx', tx).then(
        () => 'tied',
        ({ stdout }) => String(stdout),
      ),
    (said) => said === 'tied',
  );
}

async function stop(sandbox: SandboxProcess, dataDir: string): Promise<void> {
  await sandbox.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
}
