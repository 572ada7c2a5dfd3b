import { randomBytes, randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { setHalt } from '../../src/core/store/chain/cursor.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { createAdminKeyOperation } from '../../src/faces/operator/subjects/admin-keys.ts';
import { createKey, readNewKey } from '../../src/faces/operator/subjects/keys.ts';
import { archiveProject, updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { newAddress } from '../addresses/shop.ts';
import { START_TIMEOUT_MS } from '../browser/checkout.ts';
import { FITS, findViolations, measureLayout } from '../browser/measure-layout.ts';
import { launchChromium } from '../support/chromium.ts';
import { LOGOS } from '../support/logos.ts';
import { createTestProject, eventually, startTestService } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { nodesOfService } from './chain-nodes.ts';
import {
  type Made,
  newInvoice,
  payInFull,
  refusedRequest,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  unmatchedIds,
  writeHistory,
} from './console.ts';
import { addFailingChannel } from './settings/failing-channel.ts';
import { seatPeople } from './settings/seat-people.ts';

let console_: TestConsole;
let browser: Browser;
let invoice: Made;
let open: string;
let endpoint: string;
let event: string;
let nodes: ReturnType<typeof nodesOfService>;
/** One job that found differences, and one that is running. */
let jobs: { ended: string; running: string };
/** A refused request. */
let refused: string;
let ana: string;
/** A failing notification channel. */
let channel: string;
let change: string;
/** An archived project. */
let closed: string;

beforeAll(async () => {
  const service = await startTestService({ addressCount: 2 });
  nodes = nodesOfService(service);
  [console_, browser] = await Promise.all([startTestConsole(service, { nodes: nodes.nodes }), launchChromium()]);
  await writeHistory(service, service.project, (day) => day % 3);
  invoice = await newInvoice(service, 'قهوة'.repeat(25), '49.90');
  await newInvoice(service, '🧾'.repeat(200));
  await payInFull(service, invoice);
  const { address: to, amountMicro } = invoice;
  await send(service, { to, amountMicro: amountMicro - 1_000_000n }, { to, amountMicro });
  open = encodeId('trf', (await unmatchedIds(service))[0] ?? '');
  const idIn = async (path: string, kind: string) =>
    new RegExp(`${kind}_[0-9a-z]{26}`).exec((await console_.get(path)).text)?.[0] ?? '';
  endpoint = await idIn('/webhooks', 'whe');
  event = await idIn(`/webhooks/${endpoint}`, 'evt');
  jobs = await showChain();
  await fillSettings();
  refused = await refusedRequest(console_, 'قهوة'.repeat(25));
  channel = await addFailingChannel(console_);
  await seatPeople(console_);
  ana = encodeId('usr', console_.sessions['ana']?.person.id ?? '');
  const { address } = newAddress();
  const ending = address.slice(-6);
  const form = { list: address, firstEnding: ending, lastEnding: ending };
  const token = tokenIn(await console_.get('/addresses/add'), '/addresses/add');
  const waits = await console_.post('/addresses/add', { ...form, token });
  const archived = await createTestProject(service.db);
  closed = archived.projectId;
  await archiveProject.run({ ...service, now: () => unixMs(service.clock.now()) }, commandActor('ana'), archived);
  change = /chg_[0-9a-z]{26}/.exec(waits.text)?.[0] ?? '';
}, START_TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await console_.stop();
  await nodes.close();
  await console_.service.stop();
});

/** Makes the Chain screen show a bad day: last month's payments aren't on the chain, which is a difference. */
async function showChain(): Promise<typeof jobs> {
  const { service } = console_;
  const { db, devnet } = service;
  const to = String(devnet.solid().number);
  const start = async () => {
    const token = tokenIn(await console_.get('/chain/verify'), '/chain/verify');
    const reply = await console_.post('/chain/verify', { token, from: '1', to });
    return reply.headers.get('location') ?? '';
  };
  const ended = await start();
  await eventually(
    () => console_.get(ended),
    ({ headers }) => headers.get('refresh') === null,
  );
  nodes.hold(0);
  const running = await start();
  for (const [kind, subject] of [
    ['contract-event', 'قهوة'.repeat(25)],
    ['unproven-block', '🧾'],
    ['balance-differs', 'T'],
  ] as const) {
    await raiseAlarm(db, 'devnet', {
      id: randomUUID(),
      kind,
      subject,
      detail: `${subject} ${'ab'.repeat(32)} `.repeat(9),
    });
  }
  await setHalt(db, 'devnet', `block 7 (${'cd'.repeat(32)}) contradicts the ledger, which has ${'ef'.repeat(32)}`);
  return { ended, running };
}

/** Fills in names and values of the greatest allowed length. */
async function fillSettings(): Promise<void> {
  const { db, clock, project } = console_.service;
  const deps = { db, networks: [], now: () => unixMs(clock.now()), random: (bytes: number) => randomBytes(bytes) };
  const [ana, { projectId }, name] = [console_.actors['ana'] ?? commandActor('ana'), project, 'قهوة'.repeat(25)];
  const allowedIps = ['2001:db8:1234:5678:9abc:def0:1234:5678/128', '192.0.2.0/24', '198.51.100.0/24'];
  const key = readNewKey({ name, expires: '90d', allowedIps }, deps.now());
  await createKey.run(deps, ana, { ...key, projectId });
  await createAdminKeyOperation.run(deps as never, ana, { ...key, role: 'viewer', projects: [projectId] });
  await updateProject.run(deps, ana, {
    ...{ projectId, name, supportContact: 'x'.repeat(200), returnUrl: `https://shop.example/${'x'.repeat(200)}` },
    ...{ accent: '#ffcc00', logo: { type: 'image/png', content: LOGOS.png } },
  });
}

/** Opens a page for Ana, and records problems that must never occur. */
async function openPage(path: string): Promise<{ page: Page; problems: string[]; close(): Promise<void> }> {
  const context = await browser.newContext({
    extraHTTPHeaders: { 'x-actor': 'ana' },
    viewport: { width: 1280, height: 900 },
  });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => void problems.push(message.text()));
  page.on('pageerror', (error) => void problems.push(String(error)));
  page.on('dialog', (dialog) => void problems.push(dialog.message()));
  await page.goto(console_.url + path);
  return { page, problems, close: () => context.close() };
}

const SCREENS: [name: string, path: () => string][] = [
  ['Today', () => '/'],
  ['Invoices', () => '/invoices?status=PAID'],
  ['New invoice', () => '/invoices/new'],
  ['Invoice', () => `/invoices/${invoice.invoiceId}`],
  ['Unmatched transfers', () => '/unmatched'],
  ['Transfer', () => `/unmatched/${open}`],
  ['Webhooks', () => '/webhooks'],
  ['Add an endpoint', () => '/webhooks/add'],
  ['Endpoint', () => `/webhooks/${endpoint}`],
  [
    'Send events again',
    () => `/webhooks/${endpoint}/replay?from=${new Date(Date.now() - 3_600_000).toISOString()}&status=all`,
  ],
  ['New secret', () => `/webhooks/${endpoint}/rotate`],
  ['Event', () => `/events/${event}`],
  ['Reports', () => '/reports'],
  ['Requests', () => '/requests?status=4xx'],
  ['Request', () => `/requests/${refused}`],
  ['Addresses', () => '/addresses?amount=49.90'],
  ['Add addresses', () => '/addresses/add'],
  ['Derive addresses', () => '/addresses/derive'],
  ['Retire an address', () => `/addresses/${invoice.address}/retire`],
  ['Use an address again', () => `/addresses/${invoice.address}/activate`],
  ['Addresses that wait', () => `/addresses/changes/${change}`],
  ['Confirm addresses', () => `/addresses/changes/${change}/confirm`],
  ['Withdraw addresses', () => `/addresses/changes/${change}/withdraw`],
  ['Address', () => `/find?q=${invoice.address}`],
  ['Not found', () => '/find?q=nothing'],
  ['Chain', () => '/chain'],
  ['Producers', () => '/chain/producers'],
  ['Verify blocks', () => '/chain/verify'],
  ['A job that ended', () => jobs.ended],
  ['A job that runs', () => `${jobs.running}?still=1`],
  ['Close an alarm', () => `/chain/alarms/contract-event.${encodeURIComponent('قهوة'.repeat(25))}`],
  ['Resume the watcher', () => '/chain/resume'],
  ['Sign in', () => '/sign-in'],
  ['Settings', () => '/settings'],
  ['Project', () => '/settings/project'],
  ['What payers see', () => '/settings/project/look'],
  ['Invoice settings', () => '/settings/project/rules'],
  ['New project', () => '/settings/projects/new'],
  ['Archive the project', () => '/settings/project/archive'],
  ['Restore the project', () => `/settings/project/unarchive?project=${closed}`],
  ['Project that is archived', () => `/settings/project?project=${closed}`],
  ['Archived projects', () => '/settings/projects'],
  ['API keys', () => '/settings/keys'],
  ['New API key', () => '/settings/keys/new'],
  ['Revoke an API key', () => `/settings/keys/${encodeId('key', console_.service.project.keyId)}/revoke`],
  ['New signing key', () => '/settings/receipt-key'],
  ['Admin keys', () => '/settings/admin-keys'],
  ['New admin key', () => '/settings/admin-keys/new'],
  ['Notifications', () => '/settings/notifications'],
  ['New channel by mail', () => '/settings/notifications/new/email'],
  ['New channel by webhook', () => '/settings/notifications/new/webhook'],
  ['Remove a channel', () => `/settings/notifications/${channel}/remove`],
  ['People', () => '/settings/people'],
  ['Invite a user', () => '/settings/people/new'],
  ['Person', () => `/settings/people/${ana}`],
  ['Role of a person', () => `/settings/people/${ana}/role`],
  ['New link for a person', () => `/settings/people/${ana}/reset`],
  ['Removing a person', () => `/settings/people/${ana}/remove`],
  ['Sessions', () => '/settings/sessions'],
  ['Your account', () => '/settings/me'],
  ['Audit log', () => '/settings/audit'],
  ['Verify the audit log', () => '/settings/audit/verification'],
  ['System', () => '/settings/system'],
  ['Doctor', () => '/settings/doctor'],
];

test.each(someCases(SCREENS, 2))(
  '%s: axe finds nothing and everything fits at 320, 768 and 1280 px, light and dark',
  async (_name, path) => {
    const { page, problems, close } = await openPage(path());
    await page.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true`);
    for (const width of [320, 768, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      if (width !== 768) expect(await findViolations(page), `${width}`).toEqual([]);
      expect(await measureLayout(page), `${width}`).toEqual(FITS);
      const low =
        await page.evaluate(`[...document.querySelectorAll('button, .button, input:not([type=radio], [type=checkbox], [type=hidden]), select, nav a, td > span > a')]
      .filter((element) => element.checkVisibility() && !element.matches('.link') && element.getBoundingClientRect().height < 43.5).map(({ outerHTML }) => outerHTML)`);
      expect(low, `targets of less than 44 px at ${width}`).toEqual([]);
    }
    // Colours don't depend on the width.
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await findViolations(page, 'colours'), 'dark').toEqual([]);
    expect(problems.filter((text) => !text.includes('404'))).toEqual([]);
    await close();
  },
);

test('sums of hundreds of millions fit beside each other on a report', async () => {
  const { page, close } = await openPage('/reports');
  await page.evaluate(
    `for (const sum of document.querySelectorAll('.money')) sum.innerHTML = '123,456,789<wbr><small>.901234</small>'`,
  );
  for (const width of [320, 700, 768, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await measureLayout(page), `${width}`).toEqual(FITS);
  }
  await close();
});

test('a person finds, walks, resolves and copies by keys alone, and can switch the keys off', async () => {
  const { page, problems, close } = await openPage('/');
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  await page.waitForURL('**/unmatched?*');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await page.waitForURL('**/unmatched/trf_*#decide');
  await page.getByLabel('Kept').check();
  await page.getByLabel('Note (optional)').fill('by hand');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/unmatched?resolved=1&*');
  expect(await page.getByRole('status').first().textContent()).toContain('The decision was recorded');
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).toBe('q');
  await page.keyboard.type(`${invoice.invoiceId}\n`);
  await page.waitForURL(`**/invoices/${invoice.invoiceId}`);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy link for the payer' }).click();
  await page.getByRole('button', { name: 'Copy link for the payer' }).getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toContain('/c/');
  await page.getByRole('heading', { level: 1 }).click();
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await findViolations(page)).toEqual([]);
  await page.getByLabel('Single keys are shortcuts').uncheck();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.keyboard.press('/');
  expect(await page.evaluate('document.activeElement.id')).not.toBe('q');
  expect(problems).toEqual([]);
  await close();
});

test.each(['en', 'fa'])(
  'the example of the payer’s page has no flaw and fits a narrow frame in %s',
  async (language) => {
    // Loaded as text, because nothing runs in its sandbox, so it couldn't be measured.
    const { text } = await console_.get('/settings/project/preview', { 'accept-language': language });
    const page = await browser.newPage();
    await page.setContent(text);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await findViolations(page), colorScheme).toEqual([]);
    }
    await page.setViewportSize({ width: 300, height: 900 });
    expect(await measureLayout(page)).toEqual(FITS);
    await page.close();
  },
);

test('a key is made, fits a narrow page, and is copied whole', async () => {
  const { page, problems, close } = await openPage('/settings');
  await page.getByRole('link', { name: 'API keys' }).click();
  await page.getByRole('link', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('shop server');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('heading', { name: 'Copy this key now' }).waitFor();
  await page.setViewportSize({ width: 320, height: 900 });
  expect(await measureLayout(page)).toEqual(FITS);
  expect(await findViolations(page)).toEqual([]);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const button = page.getByRole('button', { name: 'Copy the key' });
  await button.click();
  await button.getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^qt_test_[0-9A-Za-z]{75}$/);
  expect(problems).toEqual([]);
  await close();
});

test('the frame shows what stands in the form, and the form can be saved after that', async () => {
  const { page, problems, close } = await openPage('/settings/project/look');
  const frame = page.frameLocator('iframe[name=preview]');
  await frame.getByText('Waiting for your payment').waitFor();
  await page.getByLabel('Name', { exact: true }).fill('Teahouse Heron');
  await page.getByRole('button', { name: 'Preview' }).click();
  await frame.locator('header').getByText('Teahouse Heron').waitFor();
  await frame.getByRole('link', { name: 'Return to Teahouse Heron' }).waitFor();
  await page.getByLabel('Colour').fill('blue');
  await page.getByRole('button', { name: 'Preview' }).click();
  await frame.getByText('use 3 or 6 hexadecimal digits').waitFor();
  await page.getByLabel('Colour').fill('#a02c5a');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The project was changed.').waitFor();
  await frame.locator('header').getByText('Teahouse Heron').waitFor();
  expect(problems).toEqual([]);
  await close();
});

test('without JavaScript an invoice is made, and nothing is offered that would do nothing', async () => {
  const context = await browser.newContext({ extraHTTPHeaders: { 'x-actor': 'ana' }, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${console_.url}/invoices/new`);
  await page.getByLabel('Amount in USDT').fill('7');
  await page.getByLabel('Order id').fill('without a script');
  await page.getByRole('button', { name: 'Create invoice' }).click();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Invoice created');
  expect(await page.getByRole('img', { name: 'QR code for the link' }).isVisible()).toBe(true);
  expect(await page.getByRole('button').allTextContents()).toEqual(['Find', 'Sign out']);
  await context.close();
});
