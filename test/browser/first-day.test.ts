import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPayer } from '@quittance/devnet/payer';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../../src/core/domain/money.ts';
import { launchChromium } from '../support/chromium.ts';
import { SOURCE_COMMAND } from '../support/command.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { runWith, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';
import { START_TIMEOUT_MS } from './checkout.ts';

let dataDir: string;
let sandbox: SandboxProcess;
let browser: Browser;
let receiver: Server;
let url: string;
/** The types of the events that the shop received. */
const heard: string[] = [];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-first-day-'));
  await chmod(dataDir, 0o711);
  const port = await findSteadyPort();
  url = `http://localhost:${port}`;
  const env = { QUITTANCE_CONSOLE_PORT: String(port), QUITTANCE_CONSOLE_URL: url };
  [sandbox, browser] = await Promise.all([startSandboxProcess(dataDir, env, SOURCE_COMMAND), launchChromium()]);
  // The console starts last, and then prints its link.
  await eventually(sandbox.output, (output) => output.includes(`${url}/sandbox/`));
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      heard.push(String((JSON.parse(body) as { type: string }).type));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser?.close();
  receiver?.close();
  await sandbox?.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
});

const quittance = (...args: string[]) => runWith({ QUITTANCE_DATA_DIR: dataDir, QUITTANCE_CONSOLE_URL: url }, ...args);

/** Opens a page for a person whose browser has a passkey. */
async function openPage(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  return page;
}

/** Presses a button and, if the console asks, proves the person's identity again. */
async function submit(page: Page, button: string, then: string | RegExp): Promise<void> {
  await page.getByRole('button', { name: button, exact: true }).click();
  const done = page.getByRole('heading', { level: 1, name: then });
  const asked = page.getByRole('button', { name: 'Confirm with a passkey' });
  await done.or(asked).first().waitFor();
  if (await asked.isVisible()) await asked.click();
  await done.waitFor();
}

const micro = (text: string) => BigInt(text.replace('.', ''));
const idIn = (text: string, kind: string) => new RegExp(`${kind}_[0-9a-z]{26}`).exec(text)?.[0] ?? '';

test('a merchant’s first day: from the invitation to the books', async () => {
  const page = await openPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => void problems.push(String(error)));
  const { link } = await quittance('user', 'invite', '--role', 'owner', 'ann@example.com');
  await page.goto(link);
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await page.getByRole('heading', { level: 1, name: 'Today' }).waitFor();

  await page.goto(`${url}/settings/projects/new`);
  await page.getByLabel('Name').fill('Ann’s tea');
  await page.getByLabel('Network').selectOption('devnet');
  await submit(page, 'Create project', 'Today');
  const projectId = idIn(page.url(), 'prj');
  const open = (path: string) => page.goto(`${url}${path}?project=${projectId}`);

  await open('/addresses/add');
  const address = accountToAddress(randomBytes(20).toString('hex') as AccountHex);
  await page.getByLabel('Addresses from your wallet').fill(address);
  await page.getByLabel('Last six characters of the first address').fill(address.slice(-6));
  await page.getByLabel('Last six characters of the last address').fill(address.slice(-6));
  await submit(page, 'Add addresses', /added|Added/);

  await open('/settings/keys/new');
  await page.getByLabel('Name').fill('shop');
  await submit(page, 'Create key', /key/i);
  const [apiKey = ''] = /qt_test_[\w-]+/.exec(await page.locator('main').innerText()) ?? [];

  await open('/webhooks/add');
  await page.getByLabel('URL').fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`);
  await submit(page, 'Add', 'Endpoint added');
  await page.getByRole('link', { name: 'Continue: send a test' }).click();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByRole('heading', { level: 1, name: 'The test arrived' }).waitFor();

  const invoice = (
    await call(`${sandbox.file.baseUrl}/v1/invoices`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': 'first' },
      body: JSON.stringify({
        ...{ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: '1001-A' },
        metadata: { customer: 'anna@example.com' },
      }),
    })
  ).body;
  await page.goto(`${url}/invoices/${invoice.invoiceId}`);
  const payer = createPayer({ nodeUrl: sandbox.file.nodeUrl, privateKey: sandbox.file.payer.privateKey });
  const { payableAmount } = (await quittance('explain', invoice.invoiceId)).subject;
  const { usdtContract: contract } = sandbox.file;
  const pay = () => payer.transfer({ contract, to: address, amountMicro: micro(payableAmount) });
  await pay();
  // The page updates without being reloaded.
  await page.locator('#state').getByText('paid').waitFor();
  await eventually(
    async () => heard,
    (types) => types.includes('invoice.paid'),
  );

  await pay();
  await eventually(
    () => quittance('transfers', 'list', '--project', projectId),
    ({ data }: Json) => data.length === 1,
  );
  await open('/unmatched');
  await page.locator('a.row').first().click();
  await page.getByLabel('Fulfilled manually').check();
  await page.getByLabel('Note (optional)').fill('a second pot');
  await page.getByRole('button', { name: 'Save decision' }).click();
  await page.getByText('The decision was recorded.').waitFor();
  await open('/unmatched');
  await page.getByRole('heading', { name: 'No open transfers' }).waitFor();

  const short = formatAmount(microUsdt(micro(payableAmount) - 1_000_000n));
  await payer.transfer({ contract, to: address, amountMicro: micro(short) });
  const { data: waiting } = await eventually(
    () => quittance('transfers', 'list', '--project', projectId),
    ({ data }: Json) => data.some(({ amount }: Json) => amount === short),
  );
  const { transferId, txId: shortTxId } = waiting.find(({ amount }: Json) => amount === short);
  /** Searches for a text. Returns whether this leads to the page, or to a list that links to it. */
  const leadsTo = async (typed: string, path: string): Promise<boolean> => {
    await page.goto(url);
    await page.getByRole('searchbox').fill(typed);
    await page.getByRole('searchbox').press('Enter');
    await page.waitForURL((now) => now.pathname !== '/');
    return new URL(page.url()).pathname === path || (await page.locator(`main a[href="${path}"]`).count()) > 0;
  };
  const { timeline } = await quittance('explain', invoice.invoiceId);
  const { eventId } = timeline.find(({ kind }: Json) => kind === 'event');
  await page.goto(`${url}/invoices/${invoice.invoiceId}`);
  const printed = await page.locator('dl.tiles a[href^="/find?q="]').innerText();
  expect(printed).toMatch(/^[0-9a-f]{8}…$/);
  const ofInvoice = ['1001-A', '1001-a', '1001', '#1001', '1001–A', '25,00', '$25', 'Anna@example.com'];
  const missed = [];
  for (const typed of [...ofInvoice, String(invoice.checkoutUrl).split('/').at(-1) ?? '']) {
    if (!(await leadsTo(typed, `/invoices/${invoice.invoiceId}`))) missed.push(typed);
  }
  if (!(await leadsTo(eventId, `/events/${eventId}`))) missed.push(eventId);
  expect(missed).toEqual([]);
  for (const [typed, says] of [
    [printed, 'and paid 1001-A'],
    [short, `(${transferId}), but it pays no invoice`],
    [`${shortTxId.slice(0, 8)}…`, `(${transferId}), but it pays no invoice`],
    [`${address.slice(0, 5)}…${address.slice(-5)}`, `${address} is an address of Ann’s tea`],
  ] as const) {
    await page.getByRole('searchbox').fill(typed);
    await page.getByRole('searchbox').press('Enter');
    await page.getByText(says).first().waitFor();
  }

  await open('/reports');
  const [csv] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()]);
  const [head = '', ...rows] = (await readFile(await csv.path(), 'utf8')).trimEnd().split('\r\n');
  const sum = (name: string) =>
    rows.reduce((total, row) => total + micro(row.split(',')[head.split(',').indexOf(name)] ?? ''), 0n);
  const booked = sum('received') + sum('duplicate') + sum('unmatched') - sum('out');
  const { data } = await quittance('reconcile', '--address', address);
  expect(data).toMatchObject([{ status: 'good' }]);
  expect(booked).toBe(micro(data[0].balance));
  expect(booked).toBeGreaterThan(50_000_000n);
  expect(problems).toEqual([]);
});
