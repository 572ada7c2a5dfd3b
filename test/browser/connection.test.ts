import type { Locator, Page, Request, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { untilHeadIsExamined } from '../support/fault-flow.ts';
import { eventually } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import {
  besidesFailedRequests,
  type CheckoutTest,
  finalise,
  goBlind,
  listenTo,
  newInvoice,
  openPage,
  orphan,
  payInto,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
  stopClock,
  textOf,
  untilHeading,
} from './checkout.ts';

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

const DAY_MS = 24 * 60 * 60_000;
/** The interval between two attempts of a page without a connection. */
const LONGEST_PAUSE_MS = 30_000;

/** How long a page may need to read a response that has arrived. */
const READING_MS = 1000;

/**
 * Advances the page's clock from one request to the next until it shows this. Waits until the page has read each response,
 * because otherwise the page abandons the request.
 */
async function passUntil(shown: Locator, stepMs = LONGEST_PAUSE_MS): Promise<void> {
  const page = shown.page();
  const asked = new Set<Request>();
  let endedMs = Number.NEGATIVE_INFINITY;
  const begin = (request: Request) => void (/\/parts\?/.test(request.url()) && asked.add(request));
  const end = (request: Request) => {
    if (asked.delete(request)) endedMs = performance.now();
  };
  page.on('request', begin).on('requestfinished', end).on('requestfailed', end);
  await eventually(
    async () => {
      if (asked.size === 0 && performance.now() - endedMs >= READING_MS) await page.clock.fastForward(stepMs);
      return shown.waitFor({ timeout: READING_MS }).then(
        () => true,
        () => false,
      );
    },
    (shown) => shown,
  );
  page.off('request', begin).off('requestfinished', end).off('requestfailed', end);
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });

const noConnection = (page: Page) => page.locator('#check', { hasText: 'No connection. Trying again…' });

/** Returns the next stream that the browser opens, once the service has answered it. */
const nextStream = (page: Page) => page.waitForResponse(/\/live\?/);

/** Blocks streams, like a proxy that buffers them. */
const silenceStreams = (page: Page) => page.route('**/live?*', () => undefined);

const stoppedAndSilent = {
  beforeOpening: async (page: Page) => {
    await stopClock(page);
    await silenceStreams(page);
  },
};

/** Lets time pass for a page whose stream is silent while each poll is answered. */
async function pollFor(page: Page, ms: number): Promise<void> {
  const stepMs = 11_000;
  for (let passed = 0; passed + stepMs <= ms; passed += stepMs) {
    const answered = page.waitForResponse(/\/parts\?/);
    await page.clock.fastForward(stepMs);
    await (await answered).finished();
    expect(await page.getByText('Checking…').count()).toBe(0);
  }
}

const refusals: { how: string; refuse(route: Route): Promise<void> | undefined }[] = [
  { how: 'refused by a proxy', refuse: (route) => route.fulfill({ status: 503 }) },
  { how: 'cut', refuse: (route) => route.abort() },
];

test.each(someCases(refusals, 2))('where streams are $how, the page polls, and goes on to paid', async ({ refuse }) => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, {
    beforeOpening: async (page) => {
      await stopClock(page);
      await page.route('**/live?*', refuse);
    },
  });
  await payInto(service, invoice);
  await passUntil(heading(page, 'Payment found'), 3000);
  // Before a silent stream is given up.
  expect(await page.evaluate('performance.now()')).toBeLessThan(10_000);
  await finalise(service, invoice);
  await passUntil(heading(page, 'Paid'), 3000);
  expect(besidesFailedRequests(problems)).toEqual([]);
  await close();
});

test('by polling, too, only what changes is replaced and announced', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, stoppedAndSilent);
  const heard = await listenTo(page);
  await page.getByText('Paying from an exchange?').click();
  const fee = page.getByLabel('Exchange fee in USDT');
  await fee.fill('1.5');
  goBlind(service);
  await passUntil(page.getByText('We cannot see the TRON network'));
  expect(await fee.inputValue()).toBe('1.5');
  expect(await fee.evaluate('document.activeElement.id')).toBe('fee-field');
  seeAgain(service);
  await payInto(service, invoice);
  await passUntil(page.getByText('1 of 19'));
  service.devnet.mine();
  await passUntil(page.getByText('2 of 19'));
  expect(await heard()).toEqual([
    expect.stringContaining('We cannot see the TRON network'),
    'Payment found Do not send again. You can close this page.',
  ]);
  expect(problems).toEqual([]);
  await close();
});

test('where a stream stays silent, as behind a proxy that holds it back, the page polls', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, stoppedAndSilent);
  await payInto(service, invoice);
  await passUntil(heading(page, 'Payment found'));
  await finalise(service, invoice);
  await passUntil(heading(page, 'Paid'));
  expect(problems).toEqual([]);
  await close();
});

test('what a newer release of the service tells of does not stop the page, which shows all that it knows', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  let reported = 0;
  const { page, problems, close } = await openPage(browser, invoice.url, {
    beforeOpening: async (page) => {
      await stoppedAndSilent.beforeOpening(page);
      await page.route('**/parts?*', async (route) => {
        const response = await route.fetch();
        if (response.status() !== 200) return route.fulfill({ response });
        const { parts, ...message } = await response.json();
        const novel = `<p>${++reported}</p>`;
        return route.fulfill({ response, json: { ...message, novel, parts: { novel, ...parts } } });
      });
    },
  });
  await payInto(service, invoice);
  await passUntil(heading(page, 'Payment found'));
  expect(await page.locator('#address').count()).toBe(0);
  expect(await page.title()).toMatch(/^Payment found/);
  await finalise(service, invoice);
  await passUntil(heading(page, 'Paid'));
  expect(problems).toEqual([]);
  await close();
});

test('without a connection the page says so, keeps what it shows, and catches up at once when it is back', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, stoppedAndSilent);
  expect(await textOf(page, '#check span')).toBe('This page updates automatically.');
  const heard = await listenTo(page);
  await page.context().setOffline(true);
  await noConnection(page).waitFor();
  await page.clock.runFor(100);
  expect(await textOf(page, '#said')).toBe('No connection. Trying again…');
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  await payInto(service, invoice);
  // No timer has to run: the browser's event is enough.
  await page.context().setOffline(false);
  await untilHeading(page, 'Payment found');
  expect(await textOf(page, '#check span')).toBe('This page updates automatically.');
  expect(await heard()).toContain('Payment found Do not send again. You can close this page.');
  expect(besidesFailedRequests(problems)).toEqual([]);
  await close();
});

test('a page outlives a restart of the service: it says that there is no connection, and catches up by itself', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, { beforeOpening: (page) => stopClock(page) });
  await service.stopService();
  await passUntil(noConnection(page), 3000);
  expect(await textOf(page, '#amount')).toBe(invoice.amount);
  await service.restart();
  await payInto(service, invoice);
  const stream = nextStream(page);
  await passUntil(heading(page, 'Payment found'));
  expect(await textOf(page, '#check span')).toBe('This page updates automatically.');
  // The page is live again.
  await stream;
  await finalise(service, invoice);
  await untilHeading(page, 'Paid');
  expect(besidesFailedRequests(problems)).toEqual([]);
  await close();
});

test('coming back to the page looks at once, also past a stream and a request that never end', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  let held = 0;
  const hold = (route: Route) => (held++ === 0 ? undefined : route.continue());
  const { page, problems, close } = await openPage(browser, invoice.url, {
    beforeOpening: async (page) => {
      await stopClock(page);
      await silenceStreams(page);
      await page.route('**/parts?*', hold);
    },
  });
  await payInto(service, invoice);
  const wakeUp = () => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await wakeUp();
  await eventually(
    () => held,
    (count) => count === 1,
  );
  await wakeUp();
  await untilHeading(page, 'Payment found');
  expect(held).toBeGreaterThan(1);
  await finalise(service, invoice);
  await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`);
  await untilHeading(page, 'Paid');
  expect(problems).toEqual([]);
  await close();
});

const TEN_MINUTES_MS = 10 * 60_000;

/** Sets the device's clock. Timers and elapsed time don't change, as while a device sleeps. */
const setClock = (page: Page, byMs: number) =>
  page.evaluate('Date.now()').then((now) => page.clock.setSystemTime(Number(now) + byMs));

const SILENCES: { how: string; pass(page: Page): Promise<unknown> }[] = [
  { how: 'has heard nothing for a minute', pass: (page) => page.clock.fastForward(61_000) },
  {
    how: 'is looked at again after ten minutes',
    pass: async (page) => {
      await setClock(page, TEN_MINUTES_MS);
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    },
  },
  {
    how: 'comes back from where browsers keep pages aside',
    pass: async (page) => {
      await setClock(page, TEN_MINUTES_MS);
      await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`);
    },
  },
  {
    how: 'is on a device that slept with its lid open',
    pass: async (page) => {
      await setClock(page, TEN_MINUTES_MS);
      await page.clock.runFor(1000);
    },
  },
  {
    how: 'is copied from before it has noticed a sleep',
    pass: async (page) => {
      await setClock(page, TEN_MINUTES_MS);
      await page.getByRole('button', { name: 'Copy the address' }).click();
    },
  },
  {
    how: 'cannot tell how long, because the clock was set back',
    pass: async (page) => {
      await setClock(page, -60 * 60_000);
      await page.clock.runFor(1000);
    },
  },
];

test.each(someCases(SILENCES, 2))(
  'a page that $how shows neither amount nor address nor code, until the service answers',
  async ({ pass }) => {
    const { service, browser } = checkout;
    const invoice = await newInvoice(service);
    let isAway = true;
    const answer = (route: Route) => (isAway ? route.abort() : route.continue());
    const { page, close } = await openPage(browser, invoice.url, {
      permissions: ['clipboard-read', 'clipboard-write'],
      beforeOpening: async (page) => {
        await stopClock(page);
        await page.route('**/parts?*', answer);
        await page.route('**/live?*', (route) => route.abort());
      },
    });
    await page.evaluate(`navigator.clipboard.writeText('before')`);
    await page.locator('#help summary').first().click();
    const howToPay = ['#amount', '#address', '.qr', '#fee-field'].map((selector) => page.locator(selector));
    for (const part of howToPay) expect(await part.isVisible()).toBe(true);
    expect(await page.title()).toContain(invoice.amount);
    const heard = await listenTo(page);
    await pass(page);
    await page.getByText('Checking… Do not pay until').first().waitFor();
    for (const part of howToPay) expect(await part.isVisible()).toBe(false);
    expect(await page.getByRole('button', { name: /Copy/ }).count()).toBe(0);
    expect(await textOf(page, 'main')).not.toMatch(new RegExp(`${invoice.amount}|${invoice.address.slice(4, 17)}`));
    expect(await page.title()).not.toContain(invoice.amount);
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('before');
    await page.clock.runFor(100);
    expect(await heard()).toContain('Checking… Do not pay until the amount and the address are shown again.');
    // It stays hidden as long as nothing arrives.
    await page.clock.fastForward(TEN_MINUTES_MS);
    expect(await page.locator('#amount').isVisible()).toBe(false);
    isAway = false;
    await passUntil(page.locator('#amount'));
    for (const part of howToPay) expect(await part.isVisible()).toBe(true);
    expect(await page.getByText('Checking…').count()).toBe(0);
    expect(await page.title()).toContain(invoice.amount);
    await page.clock.runFor(100);
    expect((await heard()).at(-1)).toBe(await page.title());
    await close();
  },
);

test('a page that polls, and is answered that nothing changed, goes on showing how to pay', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, stoppedAndSilent);
  await pollFor(page, 3 * 60_000);
  expect(await page.locator('#amount').isVisible()).toBe(true);
  expect(problems).toEqual([]);
  await close();
});

test('where there is nothing to pay, silence hides nothing', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  await payInto(service, invoice);
  const { page, close } = await openPage(browser, invoice.url, {
    beforeOpening: async (page) => {
      await stopClock(page);
      await page.route(/\/(live|parts)\?/, (route) => route.abort());
    },
  });
  await passUntil(noConnection(page));
  await page.clock.fastForward(TEN_MINUTES_MS);
  expect(await page.getByText('Checking…').count()).toBe(0);
  expect(await textOf(page, '#found')).toContain(invoice.amount);
  await close();
});

test('going back to the page shows the present state, and that a payment was seen is remembered', async () => {
  const { service, browser } = checkout;
  const [invoice, other] = [await newInvoice(service), await newInvoice(service)];
  const { page, problems, close } = await openPage(browser, invoice.url);
  await untilHeading(page, 'Waiting for your payment');
  await page.goto(other.url);
  await payInto(service, invoice);
  await page.goBack();
  await untilHeading(page, 'Payment found');
  await page.goto(other.url);
  await orphan(service, invoice);
  await page.goBack();
  await untilHeading(page, 'Waiting for your payment to reappear');
  await page.goto(other.url);
  await payInto(service, invoice);
  await finalise(service, invoice);
  await page.goBack();
  await untilHeading(page, 'Paid');
  await page.goForward();
  await untilHeading(page, 'Waiting for your payment');
  expect(problems).toEqual([]);
  await close();
});

test.each(
  someCases(
    [
      { clock: 'a day slow', offsetMs: -DAY_MS },
      { clock: 'a day fast', offsetMs: DAY_MS },
    ],
    2,
  ),
)('on a device whose clock is $clock the minutes left are those of the service', async ({ offsetMs }) => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, problems, close } = await openPage(browser, invoice.url, {
    timezoneId: 'Asia/Tokyo',
    beforeOpening: async (page) => {
      await stopClock(page, service.clock.now() + offsetMs);
      await silenceStreams(page);
    },
  });
  const expiresAt = (await page.locator('#when time').getAttribute('datetime')) ?? '';
  const local = new Intl.DateTimeFormat('en-GB', {
    timeStyle: 'short',
    timeZone: 'Asia/Tokyo',
  }).format(new Date(expiresAt));
  expect(await textOf(page, '#when')).toBe(`Pay by ${local}\nA later payment still counts.`);
  expect(await textOf(page, '#left')).toMatch(/^(29|30) min left$/);
  // The countdown follows the elapsed time, whatever the clock shows.
  await page.clock.fastForward(5 * 60_000);
  expect(await textOf(page, '#left')).toMatch(/(24|25) min left/);
  expect(problems).toEqual([]);
  await close();
});

/** Replaces the header Date, like nginx. */
const replaceDate = (page: Page) =>
  page.route('**/parts?*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), date: new Date(0).toUTCString() } });
  });

test.each([
  { how: 'a stream', options: { beforeOpening: (page: Page) => stopClock(page) } },
  {
    how: 'polling through a proxy',
    options: {
      beforeOpening: async (page: Page) => {
        await stoppedAndSilent.beforeOpening(page);
        await replaceDate(page);
      },
    },
  },
])('after a sleep the minutes left are those of the service again, by $how', async ({ options }) => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  // The page's own time stops, as on a sleeping computer.
  const { page, problems, close } = await openPage(browser, invoice.url, options);
  await page.locator('#left', { hasText: /(29|30) min left/ }).waitFor();
  // Only the time changes, so the page isn't notified of anything.
  service.devnet.mine(1, { timestampMs: Math.ceil(service.clock.now() / 3000) * 3000 + 20 * 60_000 });
  await untilHeadIsExamined(service);
  service.clock.advance(20 * 60_000);
  const polled = page.waitForResponse(/\/parts\?/);
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await (await polled).finished();
  // The countdown is written every five seconds, and the first time perhaps before the page has read the answer.
  await eventually(
    async () => {
      await page.clock.runFor(5000);
      return textOf(page, '#left');
    },
    (left) => /\b(9|10) min left/.test(left),
  );
  expect(problems).toEqual([]);
  await close();
});

test('the minutes that pass are shown and not announced', async () => {
  const { service, browser } = checkout;
  const invoice = await newInvoice(service);
  const { page, close } = await openPage(browser, invoice.url, stoppedAndSilent);
  const heard = await listenTo(page);
  // The service's own clock is frozen, so any update from it would reset the minutes.
  await page.route(/\/parts\?/, (route) => route.fulfill({ status: 204 }));
  await pollFor(page, 3 * 60_000);
  expect(await textOf(page, '#left')).toMatch(/(26|27) min left/);
  // Announcements are made with the next frame.
  await page.clock.runFor(100);
  expect(await heard()).toEqual([]);
  await close();
});
