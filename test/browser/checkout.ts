import { isDeepStrictEqual } from 'node:util';
import type { Browser, BrowserContextOptions, ConsoleMessage, Dialog, Page, Request } from 'playwright-core';
import { launchChromium } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import {
  createInvoice,
  payableOf,
  startTestService,
  type TestService,
  type TestServiceOptions,
  untilStatus,
} from '../support/service.ts';

export type CheckoutTest = { service: TestService; browser: Browser; stop(): Promise<void> };

export type TestInvoice = { id: string; url: string; address: string; amount: string; amountMicro: bigint };

/** Starts the real service and one browser. */
export async function startCheckoutTest(options: TestServiceOptions = {}): Promise<CheckoutTest> {
  const [service, browser] = await Promise.all([startTestService(options), launchChromium()]);
  return {
    service,
    browser,
    stop: async () => {
      await browser.close();
      await service.stop();
    },
  };
}

/** Unpacking the browser takes a while on a machine under load, so this is as long as any other test may take. */
export const START_TIMEOUT_MS = 300_000;

export async function newInvoice(service: TestService, requested = '25.00'): Promise<TestInvoice> {
  const { body } = await createInvoice(service, { body: { amount: requested } });
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  const digits = amountMicro.toString().padStart(7, '0');
  const amount = `${digits.slice(0, -6)}.${digits.slice(-6)}`;
  return { id: body.invoiceId, url: body.checkoutUrl, address, amount, amountMicro };
}

/** Sends the exact amount and puts it in a block that isn't final yet. */
export async function payInto(service: TestService, { id, address, amountMicro }: TestInvoice): Promise<void> {
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mine();
  await untilStatus(service, id, 'CONFIRMING');
}

export async function finalise(service: TestService, { id }: TestInvoice): Promise<void> {
  service.devnet.mineUntilSolid();
  await untilStatus(service, id, 'PAID');
}

/** Replaces the payment's block by others without it. */
export async function orphan(service: TestService, { id }: TestInvoice): Promise<void> {
  service.devnet.fork({ depth: 1, keepTransactions: false });
  await untilStatus(service, id, 'PENDING');
}

/** Moves both clocks, the chain's and ours, past the deadline. */
export async function expire(service: TestService, { id }: TestInvoice): Promise<void> {
  service.clock.advance(31 * 60_000);
  seeAgain(service);
  await untilStatus(service, id, 'EXPIRED');
}

/** Lets more than a minute pass without a block. */
export function goBlind({ clock, devnet }: TestService): void {
  clock.advance(Math.max(0, devnet.head().timestampMs - clock.now()) + 61_000);
}

/** Makes the block that is due. */
export function seeAgain({ clock, devnet }: TestService): void {
  const due = Math.ceil(clock.now() / 3000) * 3000;
  devnet.mine(1, { timestampMs: Math.max(due, devnet.head().timestampMs + 3000) });
}

export type OpenedPage = {
  page: Page;
  /** Things that must never happen: errors, violations of the Content-Security-Policy, dialogs, requests to other origins. */
  problems: string[];
  close(): Promise<void>;
};

type OpenOptions = BrowserContextOptions & { beforeOpening?: (page: Page) => Promise<unknown> };

const VIEWPORT = { width: 390, height: 844 };

/** Opens a link in a new browser context. */
export async function openPage(browser: Browser, url: string, options: OpenOptions = {}): Promise<OpenedPage> {
  const page = await newPage(browser, options);
  const { problems } = watch(page, url);
  await page.goto(url);
  return { page, problems, close: () => page.context().close() };
}

type Tab = { page: Page; options: OpenOptions };

/** Closed tabs that can be reused. */
const idleTabs = new WeakMap<Browser, Tab[]>();

/**
 * Does the same for a third of the cost, for tests that don't depend on earlier pages: reuses a tab opened with the same options if there
 * is one. Size, media and headers are reset, but a page's stored data remains.
 */
export async function openTab(browser: Browser, url: string, options: OpenOptions = {}): Promise<OpenedPage> {
  const idle = idleTabs.get(browser) ?? [];
  idleTabs.set(browser, idle);
  const { extraHTTPHeaders = {}, ...kept } = options;
  const at = idle.findIndex((tab) => isDeepStrictEqual(tab.options, kept));
  const page = idle.splice(at, at < 0 ? 0 : 1)[0]?.page ?? (await newPage(browser, kept));
  const { viewport, colorScheme = null, forcedColors = null, reducedMotion = null } = kept;
  await page.setViewportSize(viewport ?? VIEWPORT);
  await page.emulateMedia({ media: null, colorScheme, forcedColors, reducedMotion });
  await page.setExtraHTTPHeaders(extraHTTPHeaders);
  const { problems, stop } = watch(page, url);
  await page.goto(url);
  const close = async () => {
    stop();
    idle.push({ page, options: kept });
  };
  return { page, problems, close };
}

async function newPage(browser: Browser, { beforeOpening, ...contextOptions }: OpenOptions): Promise<Page> {
  const context = await browser.newContext({ viewport: VIEWPORT, locale: 'en-GB', ...contextOptions });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await beforeOpening?.(page);
  return page;
}

/** Records things that must never happen, until stopped. */
function watch(page: Page, url: string): { problems: string[]; stop(): void } {
  const problems: string[] = [];
  const onConsole = (message: ConsoleMessage) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  };
  const onError = (error: Error) => void problems.push(String(error));
  const onDialog = (dialog: Dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  };
  const onRequest = (request: Request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && origin !== new URL(url).origin) problems.push(`request to ${request.url()}`);
  };
  page.on('console', onConsole).on('pageerror', onError).on('dialog', onDialog).on('request', onRequest);
  const stop = () => {
    page.off('console', onConsole).off('pageerror', onError).off('dialog', onDialog).off('request', onRequest);
  };
  return { problems, stop };
}

/** Waits until the page shows a heading without being reloaded. */
export async function untilHeading(page: Page, text: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: text, exact: true }).waitFor();
}

/** Returns the visible text of one element. */
export async function textOf(page: Page, selector: string): Promise<string> {
  const texts = await page.locator(selector).allInnerTexts();
  if (texts.length !== 1) throw new Error(`${texts.length} elements match ${selector}`);
  return texts[0] ?? '';
}

/** Returns the selected text. Code that runs in the page is a string, because these files are type-checked as Node.js programs. */
export function selectionOf(page: Page): Promise<string> {
  return page.evaluate('String(getSelection())');
}

/** The clock can be stopped only at a later time, and a busy machine may need long between two commands. */
const BEHIND_MS = 60 * 60_000;

/** Stops the clock of a page that isn't open yet at the device's time, so that the test can move it. */
export async function stopClock(page: Page, time = Date.now()): Promise<void> {
  await page.clock.install({ time: time - BEHIND_MS });
  await page.clock.pauseAt(time);
}

/** Returns the problems except failed and refused requests, which browsers always log. */
export function besidesFailedRequests(problems: readonly string[]): string[] {
  return problems.filter((problem) => !problem.startsWith('Failed to load resource: '));
}

const START_LISTENING = `
  window.heard = [];
  for (const region of document.querySelectorAll('[role=status]')) {
    const isSilent = ({ target }) => (target.closest ? target : target.parentElement).closest('[aria-live=off]');
    const note = (changes) => {
      if (!changes.every(isSilent)) heard.push(region.innerText.replace(/\\s+/g, ' ').trim());
    };
    new MutationObserver(note).observe(region, { childList: true, characterData: true, subtree: true });
  }`;

/** Records everything that a screen reader would announce from now on; the returned function reads it. Reloading the page clears it. */
export async function listenTo(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(START_LISTENING);
  return () => page.evaluate('heard');
}
