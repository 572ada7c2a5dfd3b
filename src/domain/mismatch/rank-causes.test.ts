import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRandom } from '../../../test/simulation/chain.ts';
import { factsAbout } from '../../../test/support/mismatch-corpus.ts';
import { addInvoice, makeShop, type Shop } from '../../../test/support/mismatch-shops.ts';
import type { Cause } from '../mismatch.ts';
import { unixMs } from '../time.ts';
import type { MismatchFacts } from './facts.ts';
import { rankCauses, rankDuplicate } from './rank-causes.ts';

const MINUTE_MS = 60_000;
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
  ['a sender whose transfer was resolved as own deposit deposits again', { hasDeposited: true }, 'high'],
  ['one of our own addresses is no customer', { isOurs: true }, 'high'],
] as const)('%s', (_name, known, confidence) => {
  const sender = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null, ...known };
  expect(firstOf(factsOf(777_000_000n, { sender }))).toMatchObject({ code: 'OWN_DEPOSIT', confidence });
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
