import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import {
  type CheckoutTest,
  finalise,
  newInvoice,
  payInto,
  START_TIMEOUT_MS,
  startCheckoutTest,
  type TestInvoice,
} from './checkout.ts';

let checkout: CheckoutTest;
let shop: Server;
let port: number;
let link = '';

/** The shop's page has a payment link and a list of the messages it received. */
beforeAll(async () => {
  checkout = await startCheckoutTest();
  shop = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.setHeader(
      'Content-Security-Policy',
      `script-src 'nonce-x' ${origin()}; style-src 'none'; frame-src ${origin()}`,
    );
    response.end(`<!doctype html><script src="${origin()}/assets/embed.js"></script>
<a data-quittance href="${link}">Pay</a><script nonce="x">
window.heard = [];
addEventListener('quittance', ({ detail }) => heard.push(detail));
window.loads = 0;
document.addEventListener('load', ({ target }) => { loads += target.tagName === 'IFRAME'; }, true);
</script>`);
  }).listen(0, '127.0.0.1');
  await once(shop, 'listening');
  ({ port } = shop.address() as AddressInfo);
}, START_TIMEOUT_MS);
afterAll(async () => {
  shop.close();
  await checkout.stop();
});

const origin = () => new URL(checkout.service.url).origin;

async function allow(embedOrigins: string | null): Promise<void> {
  const { service } = checkout;
  const deps = { db: service.db, now: () => unixMs(service.clock.now()) };
  await updateProject.run(deps, commandActor('test'), { projectId: service.project.projectId, embedOrigins });
}

/** Opens the shop's page under one of this machine's two names, with a link to pay. */
async function openShop(host: 'localhost' | '127.0.0.1', invoice: TestInvoice): Promise<Page> {
  link = invoice.url;
  const page = await checkout.browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`http://${host}:${port}/`);
  return page;
}

const headersOf = async (path: string) =>
  (await fetch(new URL(path, checkout.service.url), { redirect: 'manual' })).headers;
const framing = async (path: string) =>
  /frame-ancestors ([^;]+)$/.exec((await headersOf(path)).get('content-security-policy') ?? '')?.[1];

test('a payer pays in a dialog of the shop, whose page hears each state', async () => {
  await allow(`https://other.example http://127.0.0.1:${port}`);
  const invoice = await newInvoice(checkout.service);
  const page = await openShop('127.0.0.1', invoice);
  await page.getByRole('link', { name: 'Pay' }).click();
  const frame = page.frameLocator('dialog iframe');
  expect(await page.getByRole('dialog', { name: 'Pay' }).count()).toBe(1);
  await frame.getByRole('heading', { name: 'Waiting for your payment' }).waitFor();
  const links = frame.locator('a[href*="address"], a[href*="receipt"]');
  for (const each of await links.all()) expect(await each.getAttribute('target')).toBe('_blank');
  await payInto(checkout.service, invoice);
  // Further confirmations aren't a new state.
  await frame.getByText('1 of 19').waitFor();
  checkout.service.devnet.mine(2);
  await frame.getByText('3 of 19').waitFor();
  await finalise(checkout.service, invoice);
  await frame.getByRole('heading', { name: 'Paid' }).waitFor();
  await page.waitForFunction('heard.at(-1) === "paid"');
  expect(await page.evaluate('heard')).toEqual(['waiting', 'confirming', 'paid']);
  expect(await frame.getByRole('link', { name: /Receipt/ }).getAttribute('target')).toBe('_blank');

  // Messages from other windows are ignored.
  const before = await page.evaluate('heard.length');
  await page.evaluate('postMessage({ state: "paid" }, "*")');
  await page.evaluate('new Promise((done) => setTimeout(done))');
  expect(await page.evaluate('heard.length')).toBe(before);

  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.close();
});

test('Escape closes the dialog, also while the focus is in the frame', async () => {
  await allow(`http://127.0.0.1:${port}`);
  const page = await openShop('127.0.0.1', await newInvoice(checkout.service));
  for (const isInFrame of [false, true]) {
    await page.getByRole('link', { name: 'Pay' }).click();
    const frame = page.frameLocator('dialog iframe');
    await frame.getByRole('heading', { name: 'Waiting for your payment' }).waitFor();
    if (isInFrame) await frame.getByRole('button', { name: 'Copy the amount' }).focus();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
  }
  await page.close();
});

test.each(['a site that the operator did not name', 'nobody'])(
  '%s cannot show it: the payer gets to the page itself',
  async (who) => {
    await allow(who === 'nobody' ? null : `http://127.0.0.1:${port}`);
    const invoice = await newInvoice(checkout.service);
    const page = await openShop('localhost', invoice);
    await page.getByRole('link', { name: 'Pay' }).click();
    await page.waitForURL(invoice.url);
    await page.getByRole('heading', { name: 'Waiting for your payment' }).waitFor();
    await page.close();
  },
);

test('where the page may not be framed any more, "Check now" leads to the page itself', async () => {
  await allow(`http://127.0.0.1:${port}`);
  const invoice = await newInvoice(checkout.service);
  const page = await openShop('127.0.0.1', invoice);
  await page.getByRole('link', { name: 'Pay' }).click();
  const frame = page.frameLocator('dialog iframe');
  await frame.getByRole('heading', { name: 'Waiting for your payment' }).waitFor();
  // The page speaks again after its load.
  await payInto(checkout.service, invoice);
  await page.waitForFunction('heard.at(-1) === "confirming"');
  await allow(null);
  await frame.getByRole('link', { name: 'Check now' }).click();
  await page.waitForURL(invoice.url);
  await page.getByRole('heading', { name: 'Payment found' }).waitFor();
  await page.close();
});

/** Opens the dialog, and waits until the frame has loaded, when the shop's page asks whether the payer's page is there. */
async function openDialog(page: Page): Promise<void> {
  const loads = Number(await page.evaluate('loads'));
  await page.getByRole('link', { name: 'Pay' }).click();
  await page.frameLocator('dialog iframe').getByRole('heading', { name: 'Waiting for your payment' }).waitFor();
  await expect.poll(() => page.evaluate('loads')).toBe(loads + 1);
}

/** Lets the time pass in which the page must answer, and checks that the shop's page is still there. */
async function expectShopStays(page: Page): Promise<void> {
  const url = `http://127.0.0.1:${port}/`;
  const left: string[] = [];
  page.on('request', (request) => {
    if (request.isNavigationRequest() && request.frame() === page.mainFrame()) left.push(request.url());
  });
  await page.clock.runFor(5000);
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await openDialog(page);
  expect([left, page.url()]).toEqual([[], url]);
}

test('a page of an older release, which does not answer the question, stays in the dialog', async () => {
  await allow(`http://127.0.0.1:${port}`);
  const page = await openShop('127.0.0.1', await newInvoice(checkout.service));
  await page.clock.install();
  await page.route('**/assets/checkout.js?*', async (route) => {
    const response = await route.fetch();
    const body = await response.text();
    const old = body.replace("addEventListener('message', tellShop);", '');
    expect(old).not.toBe(body);
    // A logo that takes long, so that the page speaks before its load.
    const logo = `document.body.append(Object.assign(new Image(), { src: '/logos/1' }))`;
    await route.fulfill({ response, body: `${old}\n${logo}` });
  });
  await page.route('**/logos/*', async (route) => {
    await expect.poll(() => page.evaluate('heard.length')).toBeGreaterThan(0);
    await route.abort();
  });
  await openDialog(page);
  await expectShopStays(page);
  await page.context().close();
});

test('offline, "Check now" does not replace the shop\'s page', async () => {
  await allow(`http://127.0.0.1:${port}`);
  const invoice = await newInvoice(checkout.service);
  const page = await openShop('127.0.0.1', invoice);
  await page.clock.install();
  await openDialog(page);
  await page.context().setOffline(true);
  // The browser still loads pages from this machine.
  await page.route(invoice.url, (route) => route.abort('internetdisconnected'));
  await page.frameLocator('dialog iframe').getByRole('link', { name: 'Check now' }).click();
  await expect.poll(() => page.evaluate('loads')).toBe(2);
  await page.clock.runFor(5000);
  await page.context().setOffline(false);
  await page.unroute(invoice.url);
  await expectShopStays(page);
  await page.context().close();
});

test('only the page and its answers may be framed: no receipt, no unknown link, no page of another project', async () => {
  const site = `http://127.0.0.1:${port}`;
  await allow(null);
  const { url } = await newInvoice(checkout.service);
  const { pathname } = new URL(url);
  expect(await framing(pathname)).toBe("'none'");
  await allow(site);
  expect(await framing(pathname)).toBe(site);
  const asked = await fetch(new URL(`${pathname}/ask`, url), {
    method: 'POST',
    body: new URLSearchParams({ fee: '1' }),
  });
  expect(asked.headers.get('content-security-policy')).toContain(`frame-ancestors ${site}`);
  for (const path of [`${pathname}/receipt`, `${pathname}/status`, `/c/${'1'.repeat(22)}`, '/c/x'])
    expect(await framing(path), path).toBe("'none'");
});

test('without the script, or with another link or key, a link is a link', async () => {
  await allow(`http://127.0.0.1:${port}`);
  const invoice = await newInvoice(checkout.service);
  const page = await openShop('127.0.0.1', invoice);
  // With a key held, the browser opens a new tab, and the script doesn't prevent that.
  await page.evaluate('addEventListener("click", (event) => { window.prevented = event.defaultPrevented; })');
  await page.getByRole('link', { name: 'Pay' }).click({ modifiers: ['ControlOrMeta'] });
  expect(await page.evaluate('window.prevented')).toBe(false);
  // The shop handles this click itself.
  await page.evaluate('document.querySelector("a").onclick = (event) => event.preventDefault()');
  await page.getByRole('link', { name: 'Pay' }).click();
  await page.evaluate('document.querySelector("a").onclick = null');
  expect(await page.locator('dialog').count()).toBe(0);
  await page.evaluate('document.querySelector("a").href = "/elsewhere"');
  await page.getByRole('link', { name: 'Pay' }).click();
  await page.waitForURL('**/elsewhere');
  await page.context().close();
});

test('what a shop loads is less than 1 KB', async () => {
  const answer = await fetch(`${origin()}/assets/embed.js`);
  expect(answer.headers.get('cross-origin-resource-policy')).toBe('cross-origin');
  expect(gzipSync(await answer.text()).length).toBeLessThan(1024);
});
