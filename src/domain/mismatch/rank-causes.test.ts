import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRandom } from '../../../test/simulation/chain.ts';
import { factsAbout } from '../../../test/support/mismatch-corpus.ts';
import { addInvoice, makeShop, randomAddress, type Shop } from '../../../test/support/mismatch-shops.ts';
import type { Cause } from '../mismatch.ts';
import { unixMs } from '../time.ts';
import type { MismatchFacts } from './facts.ts';
import { rankCauses, rankDuplicate } from './rank-causes.ts';
import { sumsOfInvoices } from './whole-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const SENDER = `T${'s'.repeat(33)}`;

/** A shop with one invoice of 25.00, to be paid with 25.000137. */
function oneInvoice(ageMs = MINUTE_MS, paidAgoMs: number | null = null): Shop {
  const random = createRandom(1);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  addInvoice(random, shop, 25_000_000n, ageMs, paidAgoMs, 25_000_137n);
  return shop;
}

function factsOf(amountMicro: bigint, more: Partial<MismatchFacts> = {}, shop = oneInvoice()): MismatchFacts {
  const { siblings = [], sender } = more;
  const to = shop.addresses[0] ?? '';
  return factsAbout(shop, { amountMicro, to, from: SENDER, siblings: [...siblings], ...(sender ? { sender } : {}) });
}

function firstOf(facts: MismatchFacts): Cause | undefined {
  return rankCauses(facts)[0];
}

test.each([
  [24_000_137n, 'FEE_DEDUCTED', { fee: '1.000000' }],
  [24_875_136n, 'FEE_DEDUCTED', { feePercent: '0.5 %' }],
  [24_000_000n, 'FEE_DEDUCTED', { fee: '1.000000', paidFrom: '25.000000' }],
  [26_000_137n, 'OVERPAID', { surplus: '1.000000' }],
  [26_000_000n, 'ROUNDED', { decimals: 0 }],
  [25_000_140n, 'ROUNDED', { decimals: 5 }],
  [25_000_100n, 'ROUNDED', { decimals: 4 }],
  [25_000_130n, 'TRUNCATED', { decimals: 5 }],
  [25_000_000n, 'REQUESTED_AMOUNT', { requestedAmount: '25.000000' }],
  [25_000_187n, 'ONE_DIGIT_WRONG', { typed: '8', expected: '3', place: 'at decimal 5' }],
  [95_000_137n, 'ONE_DIGIT_WRONG', { typed: '9', expected: '2', place: 'at digit 2 before the point' }],
  [52_000_137n, 'DIGITS_SWAPPED', { typed: '52', expected: '25' }],
  [25_000_317n, 'DIGITS_SWAPPED', { typed: '31', expected: '13' }],
  [20_500_137n, 'DIGITS_SWAPPED', { typed: '05', expected: '50' }],
  [25_001_370n, 'DIGIT_MISSING', { missing: '0' }],
  [5_000_137n, 'DIGIT_MISSING', { missing: '2' }],
  [255_000_137n, 'DIGIT_ADDED', { added: '5' }],
  [25_000_013n, 'DIGIT_ADDED', { added: '0' }],
  [250_001_370n, 'POINT_MISPLACED', { places: 1 }],
  [2_500_013n, 'POINT_MISPLACED', { places: -1 }],
  [25_000_137_000_000n, 'POINT_MISPLACED', { places: 6 }],
  [50_000_274n, 'PAID_TWICE', { times: 2 }],
  [50_000_000n, 'PAID_TWICE', { requestedAmount: '25.000000' }],
  [12_500_068n, 'PART_OF_INVOICE', { part: '1/2' }],
  [9n, 'DUST', {}],
] as const)('%i micro-USDT for an invoice of 25.000137 is %s', (amountMicro, code, evidence) => {
  expect(firstOf(factsOf(amountMicro))).toMatchObject({ code, evidence });
});

test('a sentence gives the figures and the invoice', () => {
  expect(firstOf(factsOf(24_000_137n))).toEqual({
    code: 'FEE_DEDUCTED',
    confidence: 'high',
    explanation:
      "24.000137 arrived: 1.000000 less than invoice order-1's 25.000137; exchanges often take a withdrawal fee of 1 USDT out of the amount.",
    evidence: { fee: '1.000000', paidFrom: '25.000137' },
    invoices: [
      {
        id: '00000000-0000-7000-8000-000000000001',
        externalId: 'order-1',
        status: 'PENDING',
        payableMicro: 25_000_137n,
        differenceMicro: -1_000_000n,
      },
    ],
  });
});

test('of invoices that fit equally well the nearest are listed, nearest first, and how many there are is said', () => {
  const random = createRandom(4);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  for (const offMicro of [4_515n, 48n, 1_984n, 1_199n, 4_323n, 1_828n, 2_700n]) {
    addInvoice(random, shop, 25_000_000n, MINUTE_MS, null, 25_010_000n - offMicro);
  }
  const first = firstOf(factsOf(25_010_000n, {}, shop));
  expect(first?.explanation).toMatch(/; 6 other invoices fit about as well, of which the nearest 4 are listed\.$/);
  expect(first?.invoices.map(({ differenceMicro }) => differenceMicro)).toEqual([48n, 1_199n, 1_828n, 1_984n, 2_700n]);
});

test('a sentence says that its invoice was paid before the transfer, or since', () => {
  const explain = (shop: Shop) => firstOf({ ...factsOf(24_000_137n, {}, shop), invoices: shop.invoices })?.explanation;
  expect(explain(oneInvoice(20 * MINUTE_MS, 10 * MINUTE_MS))).toMatch(/; order-1 was paid before\.$/);
  expect(explain(oneInvoice(20 * MINUTE_MS, -10 * MINUTE_MS))).toMatch(/; order-1 was paid since\.$/);
});

test('a digit too many behind the point is told with all that was typed', () => {
  const shop = shopOfPayable(25_008_172n);
  expect(firstOf(factsOf(25_008_017n, {}, shop))?.explanation).toBe(
    "25.008017 arrived: this is invoice order-1's 25.008172 with a 0 too many: 25.0080172, of which six decimals are left.",
  );
  const typo = shopOfPayable(25_008_172n, 25_008_016n);
  expect(firstOf(factsOf(25_008_017n, {}, typo))).toMatchObject({ code: 'ONE_DIGIT_WRONG', confidence: 'high' });
});

function shopOfPayable(...amounts: bigint[]): Shop {
  const random = createRandom(5);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  for (const amountMicro of amounts) addInvoice(random, shop, 25_000_000n, MINUTE_MS, null, amountMicro);
  return shop;
}

test('two causes that explain an amount about as well are both told, and neither with high confidence', () => {
  const [first, second] = rankCauses(factsOf(25_000_130n));
  expect(first).toMatchObject({ code: 'TRUNCATED', confidence: 'medium' });
  expect(second).toMatchObject({ code: 'ONE_DIGIT_WRONG', confidence: 'low' });
});

test('a second transfer of the same sender that makes up the rest is a part; from long ago it is not', () => {
  const ago = (ms: number) => ({ siblings: [{ amountMicro: 24_000_137n, at: unixMs(oneInvoice().now - ms) }] });
  expect(firstOf(factsOf(1_000_000n, ago(MINUTE_MS)))).toMatchObject({
    code: 'PART_OF_INVOICE',
    evidence: { otherParts: '24.000137', sum: '25.000137' },
  });
  expect(firstOf(factsOf(1_000_000n, ago(5 * 86_400_000)))?.code).not.toBe('PART_OF_INVOICE');
});

test('an invoice that was paid long before is a far worse explanation than one that was open', () => {
  const random = createRandom(2);
  const shop = oneInvoice(3 * 86_400_000, 2 * 86_400_000);
  addInvoice(random, shop, 26_000_000n, MINUTE_MS, null, 26_000_137n);
  const facts = factsAbout(shop, { amountMicro: 24_000_137n, to: shop.addresses[0] ?? '', from: SENDER });
  expect(firstOf(facts)).toMatchObject({ evidence: { fee: '2.000000' }, invoices: [{ externalId: 'order-2' }] });
});

test.each([
  ['a sender that received money before may be the merchant or a refunded customer', { hasReceived: true }, 'medium'],
  [
    'a sender of an own deposit may deposit again, or be an exchange that sends for many',
    { hasDeposited: true },
    'medium',
  ],
  ['one of our own addresses is no customer', { isOurs: true }, 'high'],
] as const)('%s', (_name, known, confidence) => {
  const sender = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null, ...known };
  expect(firstOf(factsOf(777_000_000n, { sender }))).toMatchObject({ code: 'OWN_DEPOSIT', confidence });
});

test('a customer of the exchange from which the merchant deposited once is told by the slip', () => {
  const sender = { isOurs: false, hasReceived: false, hasDeposited: true, resembles: null };
  expect(firstOf(factsOf(25_000_000n, { sender }))).toMatchObject({ code: 'REQUESTED_AMOUNT' });
  expect(firstOf(factsOf(24_000_000n, { sender }))).toMatchObject({ code: 'FEE_DEDUCTED' });
});

test('a refunded customer who pays with a slip is told by the slip', () => {
  const sender = { isOurs: false, hasReceived: true, hasDeposited: false, resembles: null };
  expect(firstOf(factsOf(24_000_137n, { sender }))).toMatchObject({ code: 'FEE_DEDUCTED' });
});

test('a look-alike sender outweighs every amount, and is less sure with more money', () => {
  const sender = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: `Tsss${'k'.repeat(26)}ssss` };
  expect(firstOf(factsOf(100n, { sender }))).toMatchObject({ code: 'LOOK_ALIKE_SENDER', confidence: 'high' });
  expect(firstOf(factsOf(24_000_137n, { sender }))).toMatchObject({ code: 'LOOK_ALIKE_SENDER', confidence: 'medium' });
});

test('a duplicate names the invoice that it repeats; a round amount of another sender is less sure', () => {
  const shop = oneInvoice(20 * MINUTE_MS, 10 * MINUTE_MS);
  const [paid] = shop.invoices;
  if (paid === undefined) throw new Error('the shop has no invoice');
  const facts = factsOf(25_000_137n, {}, shop);
  expect(rankDuplicate(facts, paid)).toMatchObject([
    { code: 'PAID_TWICE', confidence: 'high', invoices: [{ externalId: 'order-1', differenceMicro: 0n }] },
  ]);
  const round = { ...paid, requestedMicro: paid.payableMicro };
  expect(rankDuplicate(facts, round)).toMatchObject([{ confidence: 'medium' }]);
  const fromPayer = { ...facts, transfer: { ...facts.transfer, from: paid.paid?.from ?? '' } };
  expect(rankDuplicate(fromPayer, round)).toMatchObject([{ confidence: 'high' }]);
  const nextMonth = { ...fromPayer, transfer: { ...fromPayer.transfer, at: unixMs(facts.transfer.at + 30 * DAY_MS) } };
  expect(rankDuplicate(nextMonth, round)).toMatchObject([{ confidence: 'medium' }]);
});

/** A shop of policy `exact` whose open invoices ask for these amounts, all at one address. */
function exactShop(amounts: readonly bigint[], ageMs = MINUTE_MS, paidAgoMs: number | null = null): Shop {
  const random = createRandom(1);
  const shop: Shop = { ...makeShop(random, 'one invoice'), policy: 'exact', invoices: [] };
  for (const amountMicro of amounts) addInvoice(random, shop, amountMicro, ageMs, paidAgoMs, amountMicro);
  return shop;
}

test.each([
  ['the requested amount of an invoice that was paid a month ago', 25_000_000n, oneInvoice(31 * DAY_MS, 30 * DAY_MS)],
  ['the requested amount of an invoice that expired a month ago', 25_000_000n, oneInvoice(31 * DAY_MS)],
  ['1 less than a round amount that expired a month ago', 24_000_000n, exactShop([25_000_000n], 31 * DAY_MS)],
  ['the sum of two round amounts', 40_000_000n, exactShop([15_000_000n, 25_000_000n])],
  ['twice a round amount', 50_000_000n, exactShop([25_000_000n])],
  ['a whole figure above the amount', 26_000_000n, oneInvoice()],
  ['a hundred times the amount', 1_000_000n, exactShop([10_009n])],
  ['a thousandth of the amount, which poisoners send, too', 1_000n, exactShop([1_000_000n])],
])('%s may come by chance: nothing is said with high confidence', (_name, amountMicro, shop) => {
  const causes = rankCauses(factsOf(amountMicro, {}, shop));
  expect(causes.map(({ confidence }) => confidence)).not.toContain('high');
});

test('two round parts of one sender may belong to two customers of an exchange', () => {
  const siblings = [{ amountMicro: 30_000_000n, at: unixMs(oneInvoice().now - DAY_MS) }];
  expect(firstOf(factsOf(20_000_000n, { siblings }, exactShop([50_000_000n])))).toMatchObject({
    code: 'PART_OF_INVOICE',
    confidence: 'medium',
  });
});

test('when no invoice was open, a round amount is rather unknown than meant for a paid one', () => {
  const shop = exactShop([25_000_000n], 31 * DAY_MS, 30 * DAY_MS);
  expect(firstOf(factsOf(24_000_000n, {}, shop))).toMatchObject({ code: 'UNKNOWN' });
});

test('of thousands of sums that lead to one amount 200 are made, and twice one amount is none', () => {
  const random = createRandom(3);
  const shop: Shop = { ...makeShop(random, 'one invoice'), policy: 'exact', invoices: [] };
  shop.addresses = Array.from({ length: 200 }, () => randomAddress(random));
  for (const _ of shop.addresses) addInvoice(random, shop, 25_000_000n, MINUTE_MS, null, 25_000_000n);
  const weighed = shop.invoices.map((invoice) => ({ invoice, share: 1 / 200 }));
  expect(sumsOfInvoices(weighed, 75_000_000n)).toHaveLength(200);
  expect(sumsOfInvoices(weighed, 50_000_000n)).toEqual([]);
});

test('any amount of a 256-bit integer gets 1 to 5 causes', () => {
  fc.assert(
    fc.property(fc.oneof(fc.bigInt(1n, 10n ** 10n), fc.bigInt(1n, 2n ** 256n - 1n)), (amountMicro) => {
      const causes = rankCauses(factsOf(amountMicro));
      expect(causes.length).toBeGreaterThan(0);
      expect(causes.length).toBeLessThanOrEqual(5);
    }),
  );
});
