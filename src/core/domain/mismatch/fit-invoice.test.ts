import { expect, test } from 'vitest';
import { factsAbout } from '../../../../test/support/mismatch-corpus.ts';
import { addInvoice, makeShop, type Shop } from '../../../../test/support/mismatch-shops.ts';
import { createRandom } from '../../../../test/support/random.ts';
import { type Fit, fitInvoice } from './fit-invoice.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

type Given = { payable: bigint; ageMs?: number; paidAgoMs?: number };

/** A shop of one price at one address. */
function shopOf(...invoices: Given[]): Shop {
  const random = createRandom(1);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  for (const { payable, ageMs = MINUTE_MS, paidAgoMs = null } of invoices) {
    addInvoice(random, shop, 25_000_000n, ageMs, paidAgoMs, payable);
  }
  return shop;
}

function fitOf(shop: Shop, amountMicro: bigint, number: number): Fit | null {
  const facts = factsAbout(shop, { amountMicro, to: shop.addresses[0] ?? '', from: 'TSender' });
  return fitInvoice({ ...facts, invoices: shop.invoices }, shop.invoices[number - 1]?.id ?? '');
}

test('an amount that fits one invoice alone is said of it with high confidence', () => {
  expect(fitOf(shopOf({ payable: 25_000_137n }), 24_000_137n, 1)).toMatchObject({
    rivals: 0,
    cause: {
      code: 'FEE_DEDUCTED',
      confidence: 'high',
      invoices: [{ externalId: 'order-1', differenceMicro: -1_000_000n }],
    },
  });
});

test('of fourteen invoices that were rounded to one amount each is told its own figures, with low confidence', () => {
  const amounts = Array.from({ length: 14 }, (_, index) => 25_009_952n - BigInt(index) * 301n);
  const shop = shopOf(...amounts.map((payable) => ({ payable })));
  for (const [index] of amounts.entries()) {
    const fit = fitOf(shop, 25_010_000n, index + 1);
    expect(fit).toMatchObject({
      rivals: 13,
      cause: { code: 'ROUNDED', confidence: 'low', evidence: { equallyNear: 14 } },
    });
    expect(fit?.cause.invoices.map(({ externalId }) => externalId)).toEqual([`order-${index + 1}`]);
    expect(fit?.cause.explanation).toContain(`invoice order-${index + 1}'s`);
    expect(fit?.cause.explanation).toMatch(/; 13 other invoices fit about as well\.$/);
  }
});

test('an invoice that expired long ago is not passed over because open ones are likelier', () => {
  const shop = shopOf({ payable: 25_000_137n, ageMs: 10 * DAY_MS }, { payable: 25_000_245n }, { payable: 25_000_356n });
  const fit = fitOf(shop, 25_000_000n, 1);
  expect(fit).toMatchObject({ rivals: 2, cause: { code: 'REQUESTED_AMOUNT', confidence: 'low' } });
  expect(fit?.cause.explanation).toContain('2 other invoices fit as well or better');
});

test('the age that does not speak against an invoice is its own', () => {
  const shop = shopOf({ payable: 25_000_245n }, { payable: 25_000_137n, ageMs: 10 * DAY_MS });
  expect(fitOf(shop, 25_000_000n, 2)).toMatchObject({ rivals: 1, cause: { code: 'REQUESTED_AMOUNT' } });
});

test('what was paid only since is judged as what was open', () => {
  const since = { payable: 25_000_137n, ageMs: 10 * DAY_MS, paidAgoMs: -10 * MINUTE_MS };
  expect(fitOf(shopOf(since, { payable: 25_000_245n }), 25_000_000n, 1)?.cause.explanation).toMatch(/was paid later/);
  const now = { payable: 25_000_137n, ageMs: 20 * MINUTE_MS, paidAgoMs: 0 };
  expect(fitOf(shopOf(now, { payable: 25_000_245n }), 25_000_000n, 1)).toBeNull();
});

test('what explains the money without an invoice is no rival', () => {
  const shop = shopOf({ payable: 25_000_137n, ageMs: 10 * DAY_MS }, { payable: 25_000_245n, ageMs: 10 * DAY_MS });
  expect(fitOf(shop, 23_000_000n, 1)?.cause.explanation).toMatch(/; 1 other invoice fits about as well\.$/);
});

test('a cause of another code that explains the money about as well leaves little confidence', () => {
  const shop = shopOf({ payable: 25_000_137n }, { payable: 25_000_310n });
  expect(fitOf(shop, 25_000_130n, 2)?.cause).toMatchObject({ code: 'DIGITS_SWAPPED', confidence: 'low' });
});

test('another cause that explains the same invoice about as well takes from the confidence', () => {
  expect(fitOf(shopOf({ payable: 25_000_137n }), 25_000_130n, 1)?.cause).toMatchObject({
    code: 'TRUNCATED',
    confidence: 'medium',
  });
});

test('what another invoice explains far better, or no usual mistake does, fits not', () => {
  const shop = shopOf({ payable: 25_000_137n }, { payable: 25_004_812n });
  expect(fitOf(shop, 24_004_812n, 1)).toBeNull();
  expect(fitOf(shop, 777_770_000n, 1)).toBeNull();
});

test('an invoice that was paid before is told only if nothing open explains the money, and that it was paid is said', () => {
  const paid = { payable: 25_000_137n, ageMs: 20 * MINUTE_MS, paidAgoMs: 10 * MINUTE_MS };
  expect(fitOf(shopOf(paid), 24_000_137n, 1)?.cause.explanation).toMatch(/; order-1 was paid earlier\.$/);
  expect(fitOf(shopOf(paid, { payable: 25_000_245n }), 25_000_000n, 1)).toBeNull();
});

test('an invoice that is not among the facts fits not', () => {
  expect(fitOf(shopOf({ payable: 25_000_137n }), 24_000_137n, 2)).toBeNull();
});

test('what fits one invoice alone is told without others, and has nearly all of what explains it', () => {
  const fit = fitOf(shopOf({ payable: 25_000_137n }), 24_000_137n, 1);
  expect(fit?.cause).toEqual({
    code: 'FEE_DEDUCTED',
    confidence: 'high',
    explanation:
      "24.000137 arrived: 1.000000 less than invoice order-1's 25.000137; exchanges often deduct a withdrawal fee of 1 USDT from the amount.",
    evidence: { fee: '1.000000', paidFrom: '25.000137' },
    invoices: [expect.objectContaining({ externalId: 'order-1', differenceMicro: -1_000_000n })],
  });
  expect(fit?.share).toBeGreaterThan(0.97);
  expect(fit?.share).toBeLessThanOrEqual(1);
});

test('of two that fit alike each has half, and the other is counted', () => {
  const shop = shopOf({ payable: 25_000_137n }, { payable: 25_000_245n });
  for (const number of [1, 2]) {
    const fit = fitOf(shop, 25_000_000n, number);
    expect(fit?.rivals).toBe(1);
    expect(fit?.cause).toMatchObject({ confidence: 'medium', evidence: { equallyNear: 2 } });
    expect(fit?.cause.explanation).toMatch(/; 1 other invoice fits about as well\.$/);
    expect(fit?.share).toBeCloseTo(0.5, 2);
  }
});

test('of two of which one is open and one has expired, the open one beats the other, and is hardly beaten itself', () => {
  const shop = shopOf({ payable: 25_000_137n, ageMs: 60 * MINUTE_MS }, { payable: 25_000_245n });
  const [expired, open] = [fitOf(shop, 25_000_000n, 1), fitOf(shop, 25_000_000n, 2)];
  expect(expired?.cause.explanation).toMatch(/; 1 other invoice fits as well or better\.$/);
  expect(expired?.share).toBeCloseTo(0.4 / 1.4, 2);
  expect(open?.rivals).toBe(0);
  expect(open?.cause.evidence).not.toHaveProperty('equallyNear');
  expect(open?.cause.explanation).toMatch(/makes its payable amount 25\.000245\.$/);
  expect(open?.share).toBeCloseTo(1 / 1.4, 2);
});
