import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type CheckoutTest,
  expire,
  finalise,
  goBlind,
  newInvoice,
  openPage,
  orphan,
  payInto,
  START_TIMEOUT_MS,
  startCheckoutTest,
  type TestInvoice,
} from './checkout.ts';

let checkout: CheckoutTest;
let invoice: TestInvoice;
beforeAll(async () => {
  checkout = await startCheckoutTest();
  // As wide as amounts can be.
  invoice = await newInvoice(checkout.service, '123456.99');
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

const VIEWPORTS = [
  { width: 320, height: 640 },
  { width: 1280, height: 900 },
];

/** The steps lead one invoice, and so the one chain, from state to state. */
const steps: { state: string; reach(): Promise<void>; path?: string }[] = [
  { state: 'waiting', reach: async () => undefined },
  { state: 'confirming', reach: () => payInto(checkout.service, invoice) },
  { state: 'gone', reach: () => orphan(checkout.service, invoice), path: '?seen=payment' },
  { state: 'expired', reach: () => expire(checkout.service, invoice) },
  { state: 'blind', reach: async () => goBlind(checkout.service) },
  {
    state: 'paid',
    reach: async () => {
      await payInto(checkout.service, invoice);
      await finalise(checkout.service, invoice);
    },
  },
  { state: 'not found', reach: async () => undefined, path: 'x' },
];

test.each(steps)(
  '$state: no violation of axe and no sideways scrolling, light and dark, narrow and wide',
  async (step) => {
    await step.reach();
    const url = `${invoice.url}${step.path ?? ''}`;
    const { page, problems, close } = await openPage(checkout.browser, url);
    await page.evaluate(axe.source);
    for (const viewport of VIEWPORTS) {
      await page.setViewportSize(viewport);
      expect(await sidewaysPixels(page), `${viewport.width} px`).toBe(0);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await findViolations(page), `${viewport.width} px, ${colorScheme}`).toEqual([]);
      }
    }
    expect(problems.filter((problem) => !problem.includes('404'))).toEqual([]);
    await close();
  },
);

const sidewaysPixels = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

const findViolations = (page: Page): Promise<string[]> =>
  page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))",
  );

test('text at 200 % and the widest amount still fit 320 px', async () => {
  const wide = await newInvoice(checkout.service, '999999999999.99');
  const { page, close } = await openPage(checkout.browser, wide.url, { viewport: { width: 320, height: 640 } });
  expect(await sidewaysPixels(page)).toBe(0);
  await page.evaluate(`document.documentElement.style.fontSize = '200%'`);
  expect(await sidewaysPixels(page)).toBe(0);
  await close();
});

const READ_FOCUS = `(() => {
  const element = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  return { name: element.textContent, outlineStyle, outlineWidth, isLarge: element.getBoundingClientRect().height >= 24 };
})()`;

test('every control is reached with the keyboard, in order, with a visible focus, and works', async () => {
  const { page, close } = await openPage(checkout.browser, (await newInvoice(checkout.service)).url, {
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const reached: string[] = [];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('Tab');
    const focus = (await page.evaluate(READ_FOCUS)) as { name: string };
    expect(focus).toMatchObject({ outlineStyle: 'solid', outlineWidth: '3px', isLarge: true });
    reached.push(focus.name);
  }
  expect(reached).toEqual(['Copy the amount', 'Copy the address', 'Check now']);
  await page.getByRole('button', { name: 'Copy the amount' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#said', { hasText: 'Copied: 25.' }).waitFor();
  await close();
});

test('nothing moves while the page loads, when something is copied, or when the connection is lost', async () => {
  const { page, close } = await openPage(checkout.browser, (await newInvoice(checkout.service)).url, {
    permissions: ['clipboard-read', 'clipboard-write'],
    beforeOpening: async (page) => {
      await page.clock.install();
      await page.addInitScript(`
        window.shifts = [];
        const note = (list) => shifts.push(...list.getEntries().map(({ value }) => value));
        new PerformanceObserver(note).observe({ type: 'layout-shift', buffered: true });`);
    },
  });
  await page.getByRole('button', { name: 'Copy the amount' }).click();
  await page.getByRole('button', { name: 'Copied the amount' }).waitFor();
  await page.clock.runFor(2600);
  await page.getByRole('button', { name: 'Copy the amount' }).waitFor();
  await page.context().setOffline(true);
  await page.clock.runFor(3000);
  await page.clock.runFor(6000);
  await page.locator('#check', { hasText: 'No connection' }).waitFor();
  // Drawing makes the browser tell its observer.
  await page.screenshot();
  const shifts = (await page.evaluate('shifts')) as number[];
  // The words on a button stand in its middle, so their letters move when they change: 0.00006 each time.
  expect(shifts.filter((value) => value > 0.0005)).toEqual([]);
  await close();
});

test('colours that the reader forces keep every control and the emphasis', async () => {
  const { page, close } = await openPage(checkout.browser, (await newInvoice(checkout.service)).url, {
    forcedColors: 'active',
  });
  await page.evaluate(axe.source);
  expect(await findViolations(page)).toEqual([]);
  expect(await page.evaluate(`getComputedStyle(document.querySelector('#amount b')).fontWeight`)).toBe('700');
  await close();
});
