import { expect, test } from 'vitest';
import {
  checkoutPage,
  FULL_BRAND,
  PAGE_VIEWS,
  type PageView,
  suspendedPage,
} from '../../../../test/support/checkout-page.ts';
import { microUsdt } from '../../../core/domain/money.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { CheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import { composeMessage, PART_NAMES, versionOf } from './page.ts';
import { type LinkPage, PAGE_STATES, type PageState, shopStateOf, stateOf, statusOf } from './page-state.ts';

type Seen = LinkPage & { now: UnixMs };

/** Every combination of content that a page of an invoice can show. */
function allPages(): Seen[] {
  const states = PAGE_VIEWS.map((state) => checkoutPage(state, { brand: FULL_BRAND }));
  const [found] = states.filter(({ invoice }) => invoice.status === 'CONFIRMING');
  const { transfer, head } = found?.invoice ?? {};
  if (found === undefined || !transfer || !head) throw new Error('no page has a transfer');
  const built = [1, 2, 18, 19, 20, 500].map((count) => ({ ...head, number: transfer.blockNumber + count - 1 }));
  const moved = { ...transfer, blockNumber: transfer.blockNumber + 2 };
  const others = [
    ...built.map((head) => ({ head })),
    { head: null },
    { transfer: null },
    { transfer: moved },
    { transfer: { ...moved, txId: 'b4'.repeat(32) } },
    { head: { ...head, time: unixMs(head.time - 100_000) } },
    { status: 'PAID' as const, secondTxId: 'c7'.repeat(32) },
  ];
  const prices = [null, { sun: 210, at: found.now }, { sun: 210, at: found.now - 4 * 3_600_000 }].map((energyPrice) =>
    checkoutPage('waiting', { brand: FULL_BRAND, invoice: { energyPrice } }),
  );
  return [
    ...states,
    ...prices,
    suspendedPage(),
    checkoutPage('replaced', { brand: FULL_BRAND, invoice: { status: 'EXPIRED' } }),
    ...others.map((change) => ({ ...found, invoice: { ...found.invoice, ...change } })),
  ];
}

const partsOf = (page: Seen) => composeMessage(null, page).parts;

test('without a page before, a message holds all parts', () => {
  for (const page of allPages()) expect(Object.keys(partsOf(page))).toEqual([...PART_NAMES]);
});

test('of any two pages exactly the parts that differ are sent, and the version differs exactly when one of them or the state for shops does', () => {
  const pages = allPages();
  for (const before of pages) {
    const old = partsOf(before);
    for (const after of pages) {
      const { parts, version, shopState } = composeMessage(before, after);
      const all = partsOf(after);
      expect(Object.keys(parts)).toEqual(PART_NAMES.filter((name) => old[name] !== all[name]));
      expect(parts).toEqual(Object.fromEntries(Object.keys(parts).map((name) => [name, all[name as 'pay']])));
      expect(version === versionOf(before)).toBe(Object.keys(parts).length === 0 && shopState === shopStateOf(before));
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

test.each<[PageView, PageState, ReturnType<typeof shopStateOf>, string]>([
  ['waiting', 'waiting', 'waiting', 'Pay 123456.990007 USDT to Test shop'],
  ['seen', 'seen', 'confirming', 'Payment found: Test shop'],
  ['replaced', 'replaced', 'confirming', 'Waiting for your payment to reappear – Test shop'],
  ['paid', 'paid', 'paid', 'Paid: Test shop'],
  ['expired', 'expired', 'expired', 'Pay 123456.990007 USDT to Test shop'],
  ['withdrawn', 'withdrawn', 'withdrawn', 'Payment request cancelled – Test shop'],
  ['settled', 'settled', 'settled', 'Settled – Test shop'],
  ['claimed', 'claimed', 'claimed', 'We have your 123455.990007 USDT – Test shop'],
  ['suspended', 'suspended', 'suspended', 'Payment is suspended. Do not pay – Test shop'],
  ['blind', 'blind', 'waiting', 'Pay 123456.990007 USDT to Test shop'],
  ['second payment', 'paid', 'paid', 'Paid: Test shop'],
  ['second payment, not final', 'seen', 'confirming', 'Payment found: Test shop'],
  ['expired and blind', 'blind', 'expired', 'Pay 123456.990007 USDT to Test shop'],
  ['seen and blind', 'seen', 'confirming', 'Payment found: Test shop'],
  ['replaced and blind', 'replaced', 'confirming', 'Waiting for your payment to reappear – Test shop'],
  ['withdrawn and blind', 'withdrawn', 'withdrawn', 'Payment request cancelled – Test shop'],
  ['claimed, withdrawn and expired', 'claimed', 'claimed', 'We have your 123455.990007 USDT – Test shop'],
  ['paused', 'suspended', 'suspended', 'USDT transfers are paused. Please wait – Test shop'],
])('%s is the state %s, for shops %s, in a window "%s"', (view, state, shopState, title) => {
  const page = checkoutPage(view);
  expect([stateOf(page), shopStateOf(page), statusOf(page).state]).toEqual([state, shopState, shopState]);
  expect(composeMessage(null, page)).toMatchObject({ state, shopState, title });
});

test('if a payment has not reappeared by the deadline, shops hear that the invoice is expired, also from an open page', () => {
  const [before, after] = [checkoutPage('replaced'), checkoutPage('replaced', { invoice: { status: 'EXPIRED' } })];
  expect(statusOf(after)).toMatchObject({ state: 'expired', amount: null, address: null });
  const message = composeMessage(before, after);
  expect(message).toMatchObject({ state: 'replaced', shopState: 'expired', parts: {} });
  expect(message.version).not.toBe(versionOf(before));
});

test('everything that a payer can see is in one of the states, and each state is seen', () => {
  expect(new Set(PAGE_VIEWS.map((view) => stateOf(checkoutPage(view))))).toEqual(new Set(PAGE_STATES));
});

// Facts may be combined in any way. The state of an earlier fact in this list wins.
const FACTS: [Partial<CheckoutInvoice>, PageState][] = [
  [{ status: 'PAID' }, 'paid'],
  [{ status: 'CONFIRMING' }, 'seen'],
  [{ isSettled: true }, 'settled'],
  [{ claimedMicro: microUsdt(1n) }, 'claimed'],
  [{ withdrawnAt: unixMs(0) }, 'withdrawn'],
  [{ isPaused: true }, 'suspended'],
  [{ hadPayment: true }, 'replaced'],
  [{ head: null }, 'blind'],
  [{ status: 'EXPIRED' }, 'expired'],
];

test.each(FACTS.map(([fact, state], index) => ({ state, fact, others: FACTS.slice(index + 1) })))(
  'all that follows from $state is shown, whatever else is so',
  ({ state, fact, others }) => {
    for (let mask = 0; mask < 2 ** others.length; mask += 1) {
      const invoice = others.filter((_other, index) => mask & (1 << index)).map(([other]) => other);
      const page = checkoutPage('waiting', { invoice: Object.assign({}, ...invoice, fact) });
      expect(stateOf(page)).toBe(state);
      const { amount, address } = statusOf(page);
      const asks = ['waiting', 'blind', 'expired'].includes(state);
      // In the state replaced, the page shows how to pay only after one more click.
      const hasPay = asks || state === 'replaced';
      expect([amount !== null, address !== null, partsOf(page).pay !== '']).toEqual([asks, asks, hasPay]);
    }
  },
);
