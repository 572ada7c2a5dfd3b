import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAddress } from '@quittance/tron/address';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { canonicalJson } from '../../src/core/domain/receipt/receipt.ts';
import { createMasterKey, type MasterKey } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { startService } from '../../src/server/service.ts';
import { runCli } from '../cli/run-cli.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  call,
  createInvoice,
  type Json,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

const KEYS_PATH = '/.well-known/quittance-receipt-keys.json';
const FIRST = TEST_KEY_RING.current();

let service: TestService;
let folder: string;
/** The link of an invoice that is paid before the tests, and ids that its receipt must not reveal. */
let link: string;
let txId: string;
let ids: string[];
let payment: { address: string; amount: string; blockTime: string };
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quittance-receipts-'));
  service = await startTestService();
  const { body } = await createInvoice(service);
  const invoice = await payableOf(service, body.invoiceId);
  const { usdtContract, fakeUsdtContract, multisendContract } = service.devnet;
  const contracts = { usdt: usdtContract, fakeUsdt: fakeUsdtContract, multisend: multisendContract };
  const { txIds } = await payScenario(service.payer, { scenario: 'exact', contracts, invoice });
  service.devnet.mineUntilSolid();
  const paid = await untilStatus(service, body.invoiceId, 'PAID');
  link = body.checkoutUrl;
  txId = txIds[0] ?? '';
  ids = [body.invoiceId, body.externalId, link.split('/').at(-1) ?? ''];
  const { payableAmount: amount, transaction } = paid.payment;
  payment = { address: invoice.address, amount, blockTime: transaction.blockTime };
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function get(url: string) {
  const response = await fetch(url, { redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const readKeys = async (): Promise<Json[]> => (await call(service.url + KEYS_PATH)).body.keys;

/** Verifies a signature like any JOSE library. */
function isSignedBy(file: string, keys: readonly JsonWebKey[]): boolean {
  const { receipt, signature } = JSON.parse(file);
  const [header, , proof] = signature.split('.');
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString());
  const jwk = keys.find((key) => key['kid'] === kid);
  if (jwk === undefined) return false;
  const content = Buffer.from(`${header}.${Buffer.from(canonicalJson(receipt)).toString('base64url')}`);
  return verify(null, content, createPublicKey({ key: jwk, format: 'jwk' }), Buffer.from(proof, 'base64url'));
}

function save(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function cli(masterKeys: readonly MasterKey[], ...args: string[]) {
  const keys = masterKeys.map(({ bytes }) => bytes.toString('base64')).join();
  return runCli(args, { env: { DATABASE_URL: service.connectionString, QUITTANCE_MASTER_KEY: keys } });
}

test('before it is paid an invoice has no receipt, and an unknown link has what it has everywhere', async () => {
  const { body } = await createInvoice(service);
  const page = await get(`${body.checkoutUrl}/receipt?lang=fr`);
  expect(page.status).toBe(303);
  expect(page.headers.get('location')).toBe(`${new URL(body.checkoutUrl).pathname}?lang=fr`);
  expect(await call(`${body.checkoutUrl}/receipt.json`)).toMatchObject({
    status: 404,
    body: { error: expect.stringContaining('not paid yet') },
  });
  const [first = '', ...rest] = ids[2] ?? '';
  for (const token of [[first === '1' ? '2' : '1', ...rest].join(''), 'x', '%00']) {
    const unknown = await get(`${service.url}/c/${token}/receipt`);
    const nowhere = await get(`${service.url}/c/${token}`);
    const withoutNonce = ({ status, text }: typeof unknown) => ({
      status,
      text: text.replaceAll(/nonce="[^"]*"/g, ''),
    });
    expect(withoutNonce(unknown)).toEqual({ ...withoutNonce(nowhere), status: 404 });
    expect(await call(`${service.url}/c/${token}/receipt.json`)).toMatchObject(
      await call(`${service.url}/c/${token}/status`).then(({ status, body }) => ({ status, body })),
    );
  }
});

test('a paid invoice has a receipt for people, which keeps the language and leads back', async () => {
  const { status, headers, text } = await get(`${link}/receipt`);
  expect(status).toBe(200);
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(headers.get('cache-control')).toBe('no-store');
  for (const shown of [
    `${payment.amount} USDT`,
    payment.address,
    service.payer.address,
    txId,
    'Test shop',
    'Test payment',
    `${payment.blockTime.slice(0, 19).replace('T', ' ')} UTC`,
  ]) {
    expect(text).toContain(shown);
  }
  const path = new URL(link).pathname;
  for (const href of [path, `${path}/receipt.json`, '?lang=fr']) expect(text).toContain(`href="${href}"`);
});

test('its signed receipt is the same at every download, says what was paid, and nothing that leads to the invoice', async () => {
  const first = await get(`${link}/receipt.json`);
  expect((await get(`${link}/receipt.json`)).text).toBe(first.text);
  expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(first.headers.get('content-disposition')).toBe(`attachment; filename="receipt-${txId.slice(0, 16)}.json"`);
  for (const id of ids) expect(first.text).not.toContain(id);
  expect(JSON.parse(first.text).receipt).toEqual({
    version: 1,
    issuer: service.url,
    merchant: 'Test shop',
    network: 'TRON',
    chain: 'devnet',
    asset: 'USDT',
    contract: service.devnet.usdtContract,
    amount: payment.amount,
    from: service.payer.address,
    to: payment.address,
    transaction: {
      txId,
      logIndex: 0,
      blockNumber: expect.any(Number),
      blockId: expect.stringMatching(/^[0-9a-f]{64}$/),
      blockTime: expect.stringMatching(/Z$/),
    },
  });
  const keys = await call(service.url + KEYS_PATH);
  expect(keys.headers).toMatchObject({ 'cache-control': 'public, max-age=300' });
  expect(isSignedBy(first.text, keys.body.keys)).toBe(true);
  expect(isSignedBy(first.text.replace(`"amount": "${payment.amount}"`, '"amount": "1.000000"'), keys.body.keys)).toBe(
    false,
  );
});

test('the command says offline what a receipt proves, and what it does not', async () => {
  const { text } = await get(`${link}/receipt.json`);
  const [file, keys] = [save('receipt.json', text), save('keys.json', (await get(service.url + KEYS_PATH)).text)];
  const [{ kid }] = await readKeys();
  const alone = await runCli(['receipt', 'verify', file]);
  expect(alone).toMatchObject({ code: 0, stderr: '' });
  for (const shown of [kid, `${payment.amount} USDT`, txId, 'no real money', KEYS_PATH]) {
    expect(alone.stdout).toContain(shown);
  }
  const [proven = '', open = ''] = alone.stdout.split('Not proven here:');
  expect(proven).toContain('they have not been changed since');
  expect(open).toContain('that the key belongs to the issuer');
  expect(open).toContain('that the transaction is on the chain');

  const known = await runCli(['receipt', 'verify', '-', '--keys', keys, '--json'], { stdin: text });
  expect(known).toMatchObject({ code: 0, json: { valid: true, keyId: kid, isIssuerKnown: true } });
  expect((await runCli(['receipt', 'verify', file, '--keys', keys])).stdout).not.toContain(
    'that the key belongs to the issuer',
  );
});

test('the command refuses what was changed, what another key signed, and what is no receipt', async () => {
  const { text } = await get(`${link}/receipt.json`);
  const verifyText = (stdin: string, ...options: string[]) =>
    runCli(['receipt', 'verify', '-', ...options, '--json'], { stdin });
  expect(await verifyText(text.replace('Test shop', 'Best shop'))).toMatchObject({
    code: 1,
    json: { valid: false, problem: 'changed', message: expect.stringContaining('does not match') },
  });
  expect(await verifyText(text.slice(10))).toMatchObject({ code: 1, json: { valid: false, problem: 'unreadable' } });
  expect(await verifyText(text.padEnd(70_000))).toMatchObject({
    code: 1,
    json: { valid: false, problem: 'unreadable' },
  });
  const [jwk] = await readKeys();
  const other = save('other.json', JSON.stringify({ keys: [{ ...jwk, x: 'A'.repeat(43) }] }));
  expect(await verifyText(text, '--keys', other)).toMatchObject({
    code: 1,
    json: { valid: false, problem: 'other-key', message: expect.stringContaining(jwk.kid) },
  });
  expect(await verifyText(text, '--keys', save('empty.json', '{}'))).toMatchObject({
    code: 2,
    json: { error: { code: 'INVALID_ARGUMENT' } },
  });
  expect(await runCli(['receipt', 'verify', join(folder, 'none.json'), '--json'])).toMatchObject({
    code: 3,
    json: { error: { code: 'NOT_FOUND' } },
  });
  expect(await runCli(['receipt', 'verify', folder, '--json'])).toMatchObject({
    code: 2,
    json: { error: { message: expect.stringContaining('EISDIR') } },
  });
});

test('a process without a master key shows pages and receipts, signs none, and tells its log once', async () => {
  const lines: string[] = [];
  const usdt = parseAddress(service.devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const api = await startService({
    config: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: 'https://pay.example',
      databasePoolSize: 2,
      roles: ['api'],
      networks: { devnet: { nodes: [unlimitedNode(service.devnet.url)], usdt: usdt.account, agreement: 1 } },
      metrics: null,
      trustProxy: [],
      rateLimit: { perSecond: 100, burst: 100 },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    keyRing: null,
    connection: service.connectionString,
    log: createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
  });
  onTestFinished(() => api.stop());
  const url = `${api.url}${new URL(link).pathname}`;
  expect((await get(url)).status).toBe(200);
  const page = await get(`${url}/receipt`);
  expect(page).toMatchObject({ status: 200, text: expect.stringContaining(txId) });
  expect(page.text).not.toContain('receipt.json');
  expect(await call(`${url}/receipt.json`)).toMatchObject({
    status: 503,
    body: { code: 'UNAVAILABLE', detail: expect.stringContaining('QUITTANCE_MASTER_KEY') },
  });
  expect((await call(api.url + KEYS_PATH)).body.keys).toEqual(await readKeys());
  expect(lines.filter((line) => line.includes('QUITTANCE_MASTER_KEY'))).toHaveLength(1);
});

test('the signing key follows the master key, and a master key that seals it is not said to be droppable', async () => {
  const second = createMasterKey();
  const { text } = await get(`${link}/receipt.json`);
  const status = await cli([second, FIRST], 'master-key', 'status', '--json');
  expect(status.json.keys).toEqual([
    expect.objectContaining({ keyId: second.id, sealsReceiptKey: false, canBeDropped: false }),
    expect.objectContaining({ keyId: FIRST.id, sealsReceiptKey: true, canBeDropped: false }),
  ]);
  // The webhook secret and the receipt key.
  expect(await cli([second, FIRST], 'master-key', 'rotate', '--json')).toMatchObject({
    code: 0,
    json: { resealed: 2, droppable: [FIRST.id], isReceiptKeyLost: false },
  });
  expect((await cli([second, FIRST], 'master-key', 'status', '--json')).json.keys).toEqual([
    expect.objectContaining({ keyId: second.id, sealsReceiptKey: true }),
    expect.objectContaining({ keyId: FIRST.id, sealsReceiptKey: false, canBeDropped: true }),
  ]);
  expect((await get(`${link}/receipt.json`)).text).toBe(text);
  expect(await cli([FIRST, second], 'master-key', 'rotate', '--json')).toMatchObject({ json: { resealed: 2 } });
});

test('a new signing key signs from the next receipt on, and what the former one signed stays valid', async () => {
  const before = await get(`${link}/receipt.json`);
  const [former] = await readKeys();
  const rotated = await cli([FIRST], 'receipt', 'rotate', '--json');
  expect(rotated).toMatchObject({ code: 0, json: { formerKeyId: former.kid } });
  const after = await get(`${link}/receipt.json`);
  const keys = await readKeys();
  expect(keys.map(({ kid }) => kid)).toEqual([rotated.json.keyId, former.kid]);
  expect(after.text).not.toBe(before.text);
  expect(isSignedBy(after.text, keys.slice(0, 1))).toBe(true);
  expect(isSignedBy(before.text, keys)).toBe(true);
});

test('a signing key whose master key is lost stops receipts alone, is named, and is replaced only on purpose', async () => {
  const lost = createMasterKey();
  expect(await cli([lost, FIRST], 'receipt', 'rotate')).toMatchObject({ code: 0 });
  // The service has only the first master key.
  expect(await call(`${link}/receipt.json`)).toMatchObject({ status: 503 });
  expect((await get(`${link}/receipt`)).text).not.toContain('receipt.json');
  expect((await get(link)).status).toBe(200);
  const status = await cli([FIRST], 'master-key', 'status');
  expect(status).toMatchObject({ code: 1, stderr: expect.stringContaining(lost.id) });
  expect(await cli([FIRST], 'master-key', 'rotate', '--json')).toMatchObject({
    code: 1,
    json: { lostEndpoints: [], isReceiptKeyLost: true },
  });
  expect(await cli([FIRST], 'receipt', 'rotate', '--json')).toMatchObject({
    code: 2,
    json: { error: { code: 'CONFIG_INVALID', message: expect.stringContaining('--key-is-lost') } },
  });
  expect(await cli([FIRST], 'receipt', 'rotate', '--key-is-lost')).toMatchObject({ code: 0 });
  const { status: healed, text } = await get(`${link}/receipt.json`);
  expect(healed).toBe(200);
  const keys = await readKeys();
  expect(keys).toHaveLength(4);
  expect(isSignedBy(text, keys)).toBe(true);
});

test('a payment that the chain denies has no receipt any more, and its page leads to none', async () => {
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  expect((await get(`${body.checkoutUrl}/receipt.json`)).status).toBe(200);
  expect((await get(body.checkoutUrl)).text).toContain('/receipt"');
  const client = new pg.Client(service.ownerString);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(
    `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason)
     select id, project_id, invoice_id, block_id, now(), 'somebody', 'the nodes lied' from transfers
     where kind = 'matched' and amount_micro = $1`,
    [amountMicro],
  );
  const refused = await get(`${body.checkoutUrl}/receipt.json`);
  expect([refused.status, refused.text]).toEqual([404, expect.stringContaining('is not on the chain')]);
  const page = await get(`${body.checkoutUrl}/receipt`);
  expect([page.status, page.headers.get('location')]).toEqual([303, expect.stringContaining('/c/')]);
  expect((await get(body.checkoutUrl)).text).not.toContain('/receipt"');
});
