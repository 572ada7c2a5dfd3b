import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startConsoleOver } from '../admin/console-service.ts';
import { launchChromium } from '../support/chromium.ts';
import { startDatabaseLink } from '../support/database-link.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { createTestProject } from '../support/service.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

const SANDBOX = 's'.repeat(43);

/** Starts a console process, a person's page that shows Today, and a breakable link between the process and its database. */
async function openToday() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const db = openTestDatabase(database);
  await createTestProject(db);
  await db.close();
  const link = await startDatabaseLink(database.connection);
  onTestFinished(() => link.stop());
  const { user, password, host, port, database: name } = link.connection;
  const { url } = await startConsoleOver(`postgres://${user}:${password}@${host}:${port}/${name}?sslmode=disable`, {
    sandboxToken: SANDBOX,
  });
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page: Page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${url}/sandbox/${SANDBOX}`);
  await page.getByRole('heading', { level: 1, name: 'Today' }).waitFor();
  return { link, page, url };
}

const NOT_CONNECTED = /Not connected: as of \d\d:\d\d:\d\d UTC/;

test.each(['refuse', 'hang'] as const)(
  'while the database is away (%s) an open page says as of when it is, one that is opened says what is wrong, and both come back by themselves',
  async (mode) => {
    const { link, page, url } = await openToday();
    const other = await page.context().newPage();
    other.setDefaultTimeout(PATIENCE_MS);
    link.setMode(mode);
    await page.getByText(NOT_CONNECTED).waitFor();
    const answer = await other.goto(`${url}/invoices`, { timeout: PATIENCE_MS });
    expect(answer?.status()).toBe(503);
    expect(await other.getByRole('heading', { level: 1 }).textContent()).toBe('The database is not responding');
    link.setMode('open');
    await other.getByRole('heading', { level: 1, name: 'Invoices' }).waitFor();
    await page.getByText(NOT_CONNECTED).waitFor({ state: 'hidden' });
  },
);
