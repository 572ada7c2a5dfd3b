import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPayer } from '../../src/devnet/payer.ts';
import { parseAmount } from '../../src/domain/money.ts';
import { isAlive, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';

let dataDir: string;
let sandbox: SandboxProcess;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-crash-'));
  // As root, PostgreSQL runs as another user, who must be able to pass through.
  await chmod(dataDir, 0o711);
  sandbox = await startSandboxProcess(dataDir);
});
afterEach(async () => {
  await sandbox.end('SIGKILL');
  await eventually(
    () => isAlive(sandbox.postgresPid),
    (alive) => !alive,
  );
  await rm(dataDir, { recursive: true, force: true });
});

async function crashAndRestart(): Promise<void> {
  await sandbox.end('SIGKILL');
  sandbox = await startSandboxProcess(dataDir);
}

const headers = () => ({ 'x-api-key': sandbox.file.apiKey, 'content-type': 'application/json' });

function create(externalId: string): Promise<Json> {
  return call(`${sandbox.file.baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers(), 'idempotency-key': `key-${externalId}` },
    body: JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId }),
  });
}

async function read(id: string): Promise<Json> {
  const { body } = await call(`${sandbox.file.baseUrl}/v1/invoices/${id}?expand=payment`, { headers: headers() });
  return body;
}

async function pay(id: string): Promise<string> {
  const { payment } = await read(id);
  const amount = parseAmount(payment.payableAmount);
  if (amount.kind !== 'ok') throw new Error(amount.reason);
  const { nodeUrl, usdtContract, payer } = sandbox.file;
  const wallet = createPayer({ nodeUrl, privateKey: payer.privateKey });
  return wallet.transfer({ contract: usdtContract, to: payment.address, amountMicro: amount.amountMicro });
}

async function webhooksOf(id: string): Promise<Json[]> {
  return (await call(`${sandbox.file.inboxUrl}?invoiceId=${id}`)).body.data;
}

/** Waits until the network has put a transaction into a block; only then is it the network's to keep. */
async function untilMined(txId: string): Promise<void> {
  await eventually(
    () =>
      call(`${sandbox.file.nodeUrl}/wallet/gettransactioninfobyid`, {
        method: 'POST',
        body: JSON.stringify({ value: txId }),
      }),
    ({ body }) => body.id === txId,
  );
}

const untilStatus = (id: string, status: string) =>
  eventually(
    () => read(id),
    (seen) => seen.status === status,
    20_000,
  );

/** One `invoice.paid`, verified, and the invoice's events numbered from 1 without a gap. */
async function expectPaidOnce(id: string): Promise<void> {
  await untilStatus(id, 'PAID');
  const webhooks = await eventually(
    () => webhooksOf(id),
    (all) => all.some(({ type }) => type === 'invoice.paid'),
    // A delivery that was under way at the kill is sent again when its lease of 20 s has run out.
    40_000,
  );
  expect(webhooks.filter(({ type }) => type === 'invoice.paid')).toHaveLength(1);
  expect(webhooks.every(({ verified }) => verified)).toBe(true);
  expect(webhooks.map(({ body }) => body.sequence)).toEqual(webhooks.map((_, index) => index + 1));
}

test('kill -9 right after each stage loses nothing and does nothing twice', async () => {
  const created = (await create('order-1')).body;
  await crashAndRestart();
  const replay = await create('order-1');
  expect(replay.status).toBe(201);
  expect(replay.headers['idempotent-replayed']).toBe('true');
  expect(replay.body.invoiceId).toBe(created.invoiceId);

  await untilMined(await pay(created.invoiceId));
  await crashAndRestart();
  await eventually(
    () => read(created.invoiceId),
    ({ status }) => status !== 'PENDING',
  );
  await crashAndRestart();
  await untilStatus(created.invoiceId, 'PAID');
  await crashAndRestart();
  await expectPaidOnce(created.invoiceId);
}, 120_000);

test('kill -9 at arbitrary moments while payments flow loses nothing and does nothing twice', async () => {
  const ids: string[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 3; i++) {
      const { body } = await create(`order-${round}-${i}-${randomUUID()}`);
      ids.push(body.invoiceId);
      await untilMined(await pay(body.invoiceId));
    }
    await crashAndRestart();
  }
  for (const id of ids) await expectPaidOnce(id);
}, 120_000);

test('after kill -9 no process of ours is left', async () => {
  const { postgresPid } = sandbox;
  await sandbox.end('SIGKILL');
  await eventually(
    () => isAlive(postgresPid),
    (alive) => !alive,
    10_000,
  );
});

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s stops everything within 10 s, and the next start goes on',
  async (signal) => {
    const { body } = await create('order-1');
    const { code, elapsedMs } = await sandbox.end(signal);
    expect(code).toBe(0);
    expect(elapsedMs).toBeLessThan(10_000);
    expect(isAlive(sandbox.postgresPid)).toBe(false);
    sandbox = await startSandboxProcess(dataDir);
    expect((await read(body.invoiceId)).status).toBe('PENDING');
  },
  60_000,
);
