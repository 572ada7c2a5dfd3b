import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { MASTER_KEY, startConsoleOver } from '../admin/console-service.ts';
import { runCli } from '../cli/run-cli.ts';
import { codeOf } from '../people/desk.ts';
import { launchChromium } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { FITS, findViolations, measureLayout } from './measure-layout.ts';

let browser: Browser;
let database: TestDatabase;
beforeAll(async () => {
  browser = await launchChromium();
  database = await createTestDatabase();
});
afterAll(async () => {
  await browser.close();
  await database.drop();
});

/** Opens a page with Chromium's virtual authenticator, which always verifies the user. */
async function openPage(): Promise<{ page: Page; context: BrowserContext }> {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
  onTestFinished(() => context.close());
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
  return { page, context };
}

const headingOf = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();

test('an invited owner makes a passkey, is signed in, signs out, and signs in again with nothing but it', async () => {
  const { url } = await startConsoleOver(database.connectionString);
  const env = {
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: MASTER_KEY, QUITTANCE_CONSOLE_URL: url },
  };
  await runCli(['project', 'create', '--name', 'Shop', '--network', 'nile'], { env });
  const invited = await runCli(['user', 'invite', 'anna@example.com', '--role', 'owner', '--json'], { env });
  expect(invited).toMatchObject({ code: 0, json: { link: expect.stringContaining(`${url}/invitation/`) } });
  const { page, context } = await openPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });

  await page.goto(url);
  expect(await headingOf(page)).toBe('Sign in');
  for (const path of [`${url}/sign-in`, invited.json.link]) {
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(path);
      expect(await findViolations(page)).toEqual([]);
      expect(await measureLayout(page)).toMatchObject(FITS);
    }
  }
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await page.waitForURL(`${url}/`);
  expect(await headingOf(page)).toBe('Today');
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ name: 'quittance', httpOnly: true, sameSite: 'Strict', path: '/' });

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(`${url}/sign-in`);
  await page.goBack();
  expect(await headingOf(page)).toBe('Sign in');
  await page.goto(`${url}/invoices?status=PAID`);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.waitForURL(`${url}/invoices?status=PAID`);
  expect(await headingOf(page)).toBe('Invoices');
  expect((await context.cookies())[0]?.value).not.toBe(cookie?.value);

  expect((await page.goto(invited.json.link))?.status()).toBe(404);
  expect(problems.filter((problem) => !problem.includes('404'))).toEqual([]);
  const audit = await runCli(['audit', 'list', '--by', 'anna@example.com', '--json'], { env });
  expect(audit.json.data.map(({ action }: { action: string }) => action)).toEqual([
    'session.started',
    'session.ended',
    'user.joined',
    'session.started',
  ]);
});

test('somebody with a password makes a passkey on the account’s page, and confirms with it what comes next', async () => {
  const { url } = await startConsoleOver(database.connectionString);
  const env = {
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: MASTER_KEY, QUITTANCE_CONSOLE_URL: url },
  };
  const invited = await runCli(['user', 'invite', 'otto', '--role', 'operator', '--json'], { env });
  const { page, context } = await openPage();
  await page.goto(invited.json.link);
  const secret = (await page.locator('.scan code').innerText()).replaceAll(' ', '');
  await page.getByLabel('Password').fill('a heron stands in the reeds');
  await page.getByLabel('Code shown by the app').fill(codeOf(secret, unixMs(Date.now())));
  await page.getByRole('button', { name: 'Set up' }).click();
  const recovery = await page.locator('.codes code').first().innerText();
  await page.getByRole('link', { name: 'I have saved the codes' }).click();
  await page.getByRole('link', { name: 'otto' }).click();
  expect(await headingOf(page)).toBe('Your account');

  await page.getByRole('link', { name: 'Add a passkey' }).click();
  for (const width of [320, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await findViolations(page)).toEqual([]);
    expect(await measureLayout(page)).toMatchObject(FITS);
  }
  await page.getByLabel('Name', { exact: true }).fill('telephone');
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await page.getByLabel('Code from your app, or a recovery code').fill(recovery);
  expect(await findViolations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Confirm with the code' }).click();
  await page.waitForURL(`${url}/settings/me?done=passkey-added`);
  expect(await page.getByRole('cell', { name: 'telephone' }).first().isVisible()).toBe(true);

  await context.clearCookies();
  await page.goto(`${url}/settings/me`);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.waitForURL(`${url}/settings/me`);
  await page.getByRole('link', { name: 'Add a passkey' }).click();
  await page.getByRole('button', { name: 'Create passkey' }).click();
  // The authenticator already has a passkey and creates no second one.
  await page.getByText('No passkey was used').waitFor();
  await page.goto(`${url}/settings/me`);
  await page.getByRole('link', { name: 'Remove the passkey telephone' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('button', { name: 'Confirm with a passkey' }).click();
  await page.waitForURL(`${url}/settings/me?done=passkey-removed`);
  expect(await page.getByRole('heading', { name: 'Sign in with a passkey' }).isVisible()).toBe(true);
});
