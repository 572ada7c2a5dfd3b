import { createHash } from 'node:crypto';
import { createPayer } from '@quittance/devnet/payer';
import type { SandboxFile } from '../../src/developer/sandbox/sandbox-file.ts';
import { runInSandbox, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';

/** A sandbox as a shop system sees it: over HTTP, with payers who behave like people. */
export type PluginSandbox = {
  file: SandboxFile;
  get(path: string): Promise<Json>;
  pay(invoice: string, scenario: string): Promise<Json>;
  advance(seconds: number): Promise<void>;
  /** Creates a project for one test, with a key that has every scope. */
  makeProject(): Promise<{ apiKey: string }>;
  /** Registers an endpoint, and returns its secret. */
  listenAt(url: string): Promise<string>;
  /** Sets the rate at which Quittance converts prices. */
  setRate(currency: string, rate: string): Promise<void>;
  /** Waits for a status of an invoice. */
  until(externalId: string, status: string): Promise<Json>;
  /** Returns the unmatched transfers of transactions, once they are irreversible. */
  strays(txIds: readonly string[]): Promise<Json[]>;
  /** Sends a transfer back from the address that received it, and links the two. */
  refund(transfer: Json): Promise<Json>;
  stop(): Promise<void>;
};

/** Its invoices all use one address, which can send money back. */
export async function startPluginSandbox(dataDir: string): Promise<PluginSandbox> {
  const sandbox = await startSandboxProcess(dataDir);
  const { file } = sandbox;
  const payer = createPayer({ nodeUrl: file.nodeUrl, privateKey: file.payer.privateKey });
  const own = payer.withKey(createHash('sha256').update(file.payer.privateKey).digest('hex'));
  await runInSandbox(dataDir, 'address', 'add', own.address, '--fresh');
  await runInSandbox(dataDir, 'address', 'retire', ...file.addresses);
  await payer.sendTrx({ to: own.address, amountSun: 500_000_000n });
  const headers = { 'x-api-key': file.apiKey };
  const get = async (path: string) => (await call(file.baseUrl + path, { headers })).body;
  const post = async (path: string, body: object) => {
    const answer = await call(file.baseUrl + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  return {
    file,
    get,
    pay: (invoice, scenario) => post('/sandbox/pay', { invoice, scenario }),
    advance: async (seconds) => {
      await post('/sandbox/advance', { seconds });
    },
    makeProject: () => post('/sandbox/projects', {}),
    listenAt: async (url) => (await runInSandbox(dataDir, 'webhook', 'add', '--url', url)).secret,
    setRate: async (currency, rate) => {
      await runInSandbox(dataDir, 'adapter', 'enable', '--kind', 'price', '--currency', currency, '--rate', rate);
    },
    until: async (externalId, status) => {
      const read = async () => (await get(`/v1/invoices?externalId=${externalId}`)).data[0];
      const { invoiceId } = await eventually(read, (invoice) => invoice?.status === status);
      return get(`/v1/invoices/${invoiceId}?expand=payment`);
    },
    strays: (txIds) =>
      eventually(
        async () => {
          const { data } = await get('/v1/transfers?limit=100');
          return data.filter(({ txId }: Json) => txIds.includes(txId));
        },
        (found) => found.length > 0,
      ),
    refund: async ({ transferId, from, amount }) => {
      const amountMicro = BigInt(amount.replace('.', ''));
      const txId = await own.transfer({ contract: file.usdtContract, to: from, amountMicro });
      const tie = () =>
        runInSandbox(dataDir, 'transfers', 'refund', transferId, '--tx', txId, '--note', 'sent back').catch(() => null);
      // It's on the chain before it's in the ledger.
      await eventually(tie, (tied) => tied !== null);
      return txId;
    },
    stop: async () => {
      await sandbox.end('SIGTERM');
    },
  };
}
