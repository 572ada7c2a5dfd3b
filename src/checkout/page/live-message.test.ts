import { expect, test } from 'vitest';
import { checkoutPage, FULL_BRAND, PAGE_STATES, suspendedPage } from '../../../test/support/checkout-page.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { composeMessage, versionOf } from './live-message.ts';
import { PART_NAMES } from './page-parts.ts';
import type { LinkPage } from './page-state.ts';

type Seen = LinkPage & { now: UnixMs };

/** What may be seen of an invoice at one moment. */
function allPages(): Seen[] {
  const states = PAGE_STATES.map((state) => checkoutPage(state, { brand: FULL_BRAND }));
  const [found] = states.filter(({ invoice }) => invoice.status === 'CONFIRMING');
  const { transfer, head } = found?.invoice ?? {};
  if (found === undefined || !transfer || !head) throw new Error('no page has a transfer');
  const built = [1, 2, 18, 19, 20, 500].map((count) => ({ ...head, number: transfer.blockNumber + count - 1 }));
  const moved = { ...transfer, blockNumber: transfer.blockNumber + 2 };
  const others = [
    ...built.map((head) => ({ head })),
    { head: null },
    { transfer: moved },
    { transfer: { ...moved, txId: 'b4'.repeat(32) } },
    { head: { ...head, time: unixMs(head.time - 100_000) } },
    { status: 'PAID' as const, secondTxId: 'c7'.repeat(32) },
  ];
  const prices = [null, { sun: 210, at: found.now }, { sun: 210, at: found.now - 4 * 3_600_000 }].map((energyPrice) =>
    checkoutPage('waiting', { brand: FULL_BRAND, invoice: { energyPrice } }),
  );
  const stopped = [{ isFrozen: true }, { isPaused: true }].map((invoice) =>
    checkoutPage('waiting', { brand: FULL_BRAND, invoice }),
  );
  return [
    ...states,
    ...prices,
    suspendedPage(),
    ...stopped,
    ...others.map((change) => ({ ...found, invoice: { ...found.invoice, ...change } })),
  ];
}

const partsOf = (page: Seen) => composeMessage(null, page).parts;

test('without a page before, a message holds all parts', () => {
  for (const page of allPages()) expect(Object.keys(partsOf(page))).toEqual([...PART_NAMES]);
});

test('of any two pages exactly the parts that differ are sent, and the version differs exactly when one does', () => {
  const pages = allPages();
  for (const before of pages) {
    const old = partsOf(before);
    for (const after of pages) {
      const { parts, version } = composeMessage(before, after);
      const all = partsOf(after);
      expect(Object.keys(parts)).toEqual(PART_NAMES.filter((name) => old[name] !== all[name]));
      expect(parts).toEqual(Object.fromEntries(Object.keys(parts).map((name) => [name, all[name as 'pay']])));
      expect(version === versionOf(before)).toBe(Object.keys(parts).length === 0);
    }
  }
});

test('from every state, the message that payment is suspended takes away how to pay, and the way back brings it again', () => {
  for (const before of allPages()) {
    const suspended = composeMessage(before, suspendedPage());
    const shown = { ...partsOf(before), ...suspended.parts };
    expect(suspended.state).toBe('suspended');
    expect(shown).toEqual(partsOf(suspendedPage()));
    expect(JSON.stringify([shown, suspended.title])).not.toMatch(
      /TPL66VK2g|123456\.99|class=\\"qr|data-copy|data-wallet/,
    );
    expect(shown.status).toContain('Do not pay');
    expect({ ...shown, ...composeMessage(suspendedPage(), before).parts }).toEqual(partsOf(before));
  }
});

test('while only time runs, nothing is sent until the network is not seen any more', () => {
  const page = checkoutPage('waiting');
  const after = (ms: number) => ({ ...page, now: unixMs(page.now + ms) });
  expect(composeMessage(page, after(58_000)).parts).toEqual({});
  expect(Object.keys(composeMessage(page, after(61_000)).parts)).toEqual(['status', 'left', 'rules', 'when']);
});

test('the version can stand in a URL, and does not depend on the language', () => {
  const versions = (['en', 'ar'] as const).map((language) => versionOf(checkoutPage('waiting', { language })));
  expect(versions[0]).toMatch(/^[0-9a-f]{16}$/);
  expect(versions[1]).toBe(versions[0]);
});

test('the title of the window follows the state', () => {
  const titles = PAGE_STATES.map((state) => composeMessage(null, checkoutPage(state)).title);
  expect(titles).toEqual([
    'Pay 123456.990007 USDT to Test shop',
    'Payment found: Test shop',
    'Waiting for your payment to reappear – Test shop',
    'Pay 123456.990007 USDT to Test shop',
    'Pay 123456.990007 USDT to Test shop',
    'Payment request cancelled – Test shop',
    'Settled – Test shop',
    'Paid: Test shop',
  ]);
});
