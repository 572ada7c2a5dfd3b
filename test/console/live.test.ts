import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { newAddress } from '../addresses/shop.ts';
import { START_TIMEOUT_MS } from '../browser/checkout.ts';
import { launchChromium } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { eventually } from '../support/service.ts';
import {
  newInvoice,
  payInFull,
  refusedRequest,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  unmatchedIds,
} from './console.ts';

let console_: TestConsole;
let browser: Browser;
beforeAll(async () => {
  [console_, browser] = await Promise.all([startTestConsole(), launchChromium()]);
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await console_.stop();
});

/** Submits a page's form as Ana. */
async function submit(path: string, form: Record<string, string>, at = path): Promise<void> {
  const reply = await console_.post(path, { ...form, token: tokenIn(await console_.get(at), path) });
  expect(reply.status, reply.text).toBeLessThan(400);
}

async function openPage(path: string): Promise<Page> {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-actor': 'ana' } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(console_.url + path);
  return page;
}

test('an invoice that is paid while its page is open turns paid there, and what was focused stays', async () => {
  const invoice = await newInvoice(console_.service, 'seen live');
  const page = await openPage(`/invoices/${invoice.invoiceId}`);
  await page.evaluate(`window.isTheSame = true`);
  await page.getByRole('link', { name: 'Open as the payer' }).focus();
  await payInFull(console_.service, invoice);
  await page.locator('#state').getByText('paid', { exact: false }).waitFor();
  await page.locator('#events').getByText('invoice.paid').first().waitFor();
  expect(await page.evaluate('window.isTheSame')).toBe(true);
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Open as the payer');
  expect(await page.locator('#verdict').getAttribute('aria-live')).toBe('polite');
});

test('a list changes rows where they stand, and says how many are new instead of moving them', async () => {
  const invoice = await newInvoice(console_.service, 'stands still');
  const page = await openPage('/invoices');
  const top = await page.locator('a.row').first().textContent();
  await newInvoice(console_.service, 'comes later');
  await payInFull(console_.service, invoice);
  await page.getByRole('link', { name: '1 new: show' }).waitFor();
  await page.locator('tr', { hasText: 'stands still' }).getByText('Paid', { exact: false }).first().waitFor();
  expect(await page.locator('a.row').first().textContent()).toBe(top);
  await page.getByRole('link', { name: '1 new: show' }).click();
  await page.locator('a.row').first().getByText('comes later').waitFor();
});

test('the first row of an empty list is announced, and shown by one click', async () => {
  const page = await openPage('/unmatched');
  await page.getByRole('heading', { name: 'No open transfers' }).waitFor();
  const { address: to } = await newInvoice(console_.service, 'paid too little');
  await send(console_.service, { to, amountMicro: 3_000_000n });
  await page.getByRole('link', { name: '1 new: show' }).click();
  await page.locator('a.row').first().getByText('3').waitFor();
});

test('each screen shows by itself what happens while it is open', async () => {
  const { db } = console_.service;
  const { text } = await console_.get('/webhooks');
  const endpoint = `/webhooks/${/whe_[0-9a-z]{26}/.exec(text)?.[0]}`;
  const event = `/events/${/evt_[0-9a-z]{26}/.exec((await console_.get(endpoint)).text)?.[0]}`;
  const transfer = `/unmatched/${encodeId('trf', (await unmatchedIds(console_.service))[0] ?? '')}`;
  const screens: [path: string, region: string, says: RegExp][] = [
    ['/chain', '#warnings', /seen live/],
    ['/addresses', '#additions', /These addresses are not in use yet/],
    ['/requests?status=4xx', '#news', /1 new: show/],
    ['/webhooks', '#rows', /Disabled/],
    [endpoint, '#state', /Disabled/],
    [event, '#deliveries', /Attempt 2/],
    ['/reports', '#report', /by 3 paid invoices/],
    [transfer, '#decisions', /Kept/],
  ];
  const pages = await Promise.all(screens.map(([path]) => openPage(path)));
  await raiseAlarm(db, 'devnet', { id: randomUUID(), kind: 'unproven-block', subject: 'x', detail: 'seen live' });
  const ending = newAddress().address;
  await submit('/addresses/add', {
    ...{ list: ending, firstEnding: ending.slice(-6), lastEnding: ending.slice(-6) },
  });
  await refusedRequest(console_, 'seen live');
  await submit(`${event}/replay`, {}, event);
  await eventually(
    () => console_.get(event),
    ({ text }) => text.includes('Attempt 2'),
  );
  await submit(`${endpoint}/disable`, { reason: 'seen live' });
  await payInFull(console_.service, await newInvoice(console_.service, 'reported live'));
  await submit(transfer, { resolution: 'ignored', seenAt: 'never', note: '' });
  await Promise.all(
    screens.map(([, region, says], index) =>
      pages[index]?.locator(region).getByText(says).first().waitFor({ state: 'attached' }),
    ),
  );
});

test.each([
  ['/', 'that is kept up to date'],
  ['/settings/people', 'that is not'],
  ['/settings/keys/new', 'with a form'],
])(
  'the page %s, one %s, says as of when it is when its connection is lost, and no more when it is back',
  async (path) => {
    const page = await openPage(path);
    await page.context().setOffline(true);
    await console_.app.server.closeAllConnections();
    const banner = page.getByText(/Not connected: as of \d\d:\d\d:\d\d UTC/);
    await banner.waitFor();
    await page.context().setOffline(false);
    await banner.waitFor({ state: 'hidden' });
  },
);

test('nobody hears anything without a session, and there is a bound to how many do, who keep no page from being answered', async () => {
  const ask = (headers: Record<string, string>) => fetch(`${console_.url}/live`, { headers });
  expect((await ask({})).status).toBe(204);
  const countRefused = async () => {
    const streams = await Promise.all(Array.from({ length: 202 }, () => ask({ 'x-actor': 'vera' })));
    expect((await console_.get('/')).status).toBe(200);
    await Promise.all(streams.map(({ body }) => body?.cancel()));
    return streams.filter(({ status }) => status === 503).length;
  };
  // The server may not have noticed yet that a previous test's browser has closed its streams.
  await eventually(countRefused, (refused) => refused === 2);
});
