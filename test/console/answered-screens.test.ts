import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { openInvitation } from '../../src/faces/operator/subjects/sign-in.ts';
import { START_TIMEOUT_MS } from '../browser/checkout.ts';
import { FITS, findViolations, measureLayout } from '../browser/measure-layout.ts';
import { codeOf, HOUR_MS, joinByPassword, PASSWORD } from '../people/desk.ts';
import { launchChromium } from '../support/chromium.ts';
import { openTestDatabase } from '../support/postgres.ts';
import { actorNamed, openConsole as openOver, startTestConsole, type TestConsole, tokenIn } from './console.ts';
import { openConsole } from './open-console.ts';
import { cookieOf, send, sendWithCode } from './settings/ask-again.ts';

let console_: TestConsole;
let browser: Browser;
let context: BrowserContext;
beforeAll(async () => {
  [console_, browser] = await Promise.all([startTestConsole(), launchChromium()]);
  context = await browser.newContext({ extraHTTPHeaders: { 'x-actor': 'ana' } });
  console_.actors['nora'] = actorNamed('Nora', { role: 'viewer', projects: [] });
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await console_.stop();
});

/** Returns the path of the first endpoint. */
const endpoint = async () => `/webhooks/${/whe_[0-9a-z]{26}/.exec((await console_.get('/webhooks')).text)?.[0]}`;

async function sendForm(path: string, form: Record<string, string>, at = path): Promise<string> {
  return (await console_.post(path, { ...form, token: tokenIn(await console_.get(at), path) })).text;
}

async function whileAway(): Promise<string> {
  const nowhere = { host: '127.0.0.1', port: 9, user: 'quittance', password: '', database: 'none' };
  const db = openTestDatabase({ connection: nowhere });
  const away = await openOver({ db, now: () => unixMs(Date.now()), publicUrl: () => '' });
  const { text } = await away.get('/');
  await away.stop();
  await db.close();
  return text;
}

async function invitation(): Promise<{ shown: string; taken: string }> {
  const desk = await openConsole();
  const token = await desk.invite('ann');
  const path = `/invitation/${token}`;
  const { text: shown } = await desk.ask(path);
  const secret = (await openInvitation(desk.deps, token))?.totp.secret ?? '';
  const { text: taken } = await desk.ask(path, { form: { password: PASSWORD, code: codeOf(secret, desk.deps.now()) } });
  return { shown, taken };
}

/** Returns the page that asks for a proof of identity before an invitation, possibly after a wrong code. */
async function proof(code?: string): Promise<string> {
  const desk = await openConsole();
  const { token } = await joinByPassword(desk, 'ann');
  // A new session counts as a proof for some minutes.
  desk.pass(HOUR_MS);
  const cookie = cookieOf(token);
  const filled = { login: 'otto', role: 'viewer' };
  const reply =
    code === undefined
      ? await send({ ...desk, cookie }, '/settings/people/new', filled)
      : await sendWithCode({ ...desk, cookie }, '/settings/people/new', code, filled);
  return reply.text;
}

/** Pages without a URL of their own: answers to forms, and errors. */
const SCREENS: [title: string, text: () => Promise<string>][] = [
  ['Welcome', async () => (await console_.get('/', { 'x-actor': 'nora' })).text],
  ['Your role does not allow this', async () => (await console_.get('/settings/people', { 'x-actor': 'vera' })).text],
  ['Not found', async () => (await console_.get('/nowhere')).text],
  ['The database is not responding', whileAway],
  ['The test arrived', async () => sendForm(`${await endpoint()}/test`, {}, await endpoint())],
  ['Copy this key now', () => sendForm('/settings/keys/new', { name: 'shop', read: 'yes' })],
  ['Confirm this change', () => proof()],
  ['That code is wrong', () => proof('000000')],
  ['Create passkey', async () => (await invitation()).shown],
  ['Save these recovery codes', async () => (await invitation()).taken],
];

test.each(SCREENS)('“%s”: axe finds nothing, and everything fits, light and dark', async (title, text) => {
  const html = await text();
  expect(html).toContain(title);
  const page = await context.newPage();
  // Loads the page as the server sent it, at its origin, where its style and script are.
  await page.route('**/as-it-was-sent', (route) =>
    route.fulfill({ body: html, contentType: 'text/html; charset=utf-8' }),
  );
  await page.goto(`${console_.url}/as-it-was-sent`);
  for (const width of [320, 768, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      const only = colorScheme === 'dark' || width === 768 ? 'colours' : undefined;
      expect(await findViolations(page, only), `${width} ${colorScheme}`).toEqual([]);
    }
    expect(await measureLayout(page), `${width}`).toEqual(FITS);
  }
  await page.close();
});

test('a page of another origin that frames the console shows nothing of it', async () => {
  const evil = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    if (request.url === '/own') return response.end('<p>a page that may be framed</p>');
    return response.end(
      `<iframe name="own" src="/own"></iframe><iframe name="theirs" src="${console_.url}/"></iframe>`,
    );
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void evil.close());
  await new Promise((resolve) => evil.once('listening', resolve));
  const page = await context.newPage();
  const said: string[] = [];
  page.on('console', (message) => void said.push(message.text()));
  await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
  const textIn = (name: string) => page.frame({ name })?.locator('body').innerText();
  expect(await textIn('own')).toContain('may be framed');
  expect(await textIn('theirs')).not.toMatch(/Quittance|Today|Ana/);
  expect(said.join('\n')).toContain('frame-ancestors');
  // Without a frame, the same browser shows the whole page.
  await page.goto(console_.url);
  expect(await page.locator('body').innerText()).toMatch(/Quittance[\s\S]*Today/);
  await page.close();
});
