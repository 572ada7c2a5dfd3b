import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { factsAbout } from '../../../../test/support/mismatch-corpus.ts';
import { addInvoice, makeShop, type Shop } from '../../../../test/support/mismatch-shops.ts';
import { CREATED_AT, suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { createRandom } from '../../../../test/support/random.ts';
import type { Cause } from '../mismatch.ts';
import { unixMs } from '../time.ts';
import type { Finding, MismatchFacts, Sender } from './finding.ts';
import {
  alreadyPaid,
  confidenceOf,
  type Fit,
  findingsOf,
  fitInvoice,
  otherInvoices,
  plausibility,
  rankCauses,
  rankDuplicate,
  senderCauses,
  sum,
  toNear,
  unknown,
} from './rank-causes.ts';

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
      "24.000137 arrived: 1.000000 less than invoice order-1's 25.000137; exchanges often deduct a withdrawal fee of 1 USDT from the amount.",
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
  expect(first?.explanation).toMatch(/; 6 other invoices fit about as well \(the closest 4 are listed\)\.$/);
  expect(first?.invoices.map(({ differenceMicro }) => differenceMicro)).toEqual([48n, 1_199n, 1_828n, 1_984n, 2_700n]);
});

test('a sentence says that its invoice was paid before the transfer, or since', () => {
  const explain = (shop: Shop) => firstOf({ ...factsOf(24_000_137n, {}, shop), invoices: shop.invoices })?.explanation;
  expect(explain(oneInvoice(20 * MINUTE_MS, 10 * MINUTE_MS))).toMatch(/; order-1 was paid earlier\.$/);
  expect(explain(oneInvoice(20 * MINUTE_MS, -10 * MINUTE_MS))).toMatch(/; order-1 was paid later\.$/);
});

test('a digit too many behind the point is told with all that was typed', () => {
  const shop = shopOfPayable(25_008_172n);
  expect(firstOf(factsOf(25_008_017n, {}, shop))?.explanation).toBe(
    "25.008017 arrived: this is invoice order-1's 25.008172 with an extra 0: 25.0080172, truncated to six decimals.",
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

test('of an amount that many mistakes explain five are told at most', () => {
  const random = createRandom(6);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  for (const payable of [25_000_137n, 23_000_000n, 42_000_000n, 12_000_000n, 48_000_000n, 240_000_000n, 23_999_800n]) {
    addInvoice(random, shop, payable - (payable % 1_000_000n), MINUTE_MS, null, payable);
  }
  const facts = { ...factsOf(24_000_000n, {}, shop), invoices: shop.invoices };
  const findings = findingsOf(facts);
  const shareOf = (code: string) => sum(findings.filter((each) => each.code === code)) / sum(findings);
  const codes = new Set(findings.map(({ code }) => code));
  expect([...codes].filter((code) => shareOf(code) >= 0.01).length).toBeGreaterThan(5);
  expect(rankCauses(facts)).toHaveLength(5);
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

test('any amount of a 256-bit integer gets 1 to 5 causes', () => {
  fc.assert(
    fc.property(fc.oneof(fc.bigInt(1n, 10n ** 10n), fc.bigInt(1n, 2n ** 256n - 1n)), (amountMicro) => {
      const causes = rankCauses(factsOf(amountMicro));
      expect(causes.length).toBeGreaterThan(0);
      expect(causes.length).toBeLessThanOrEqual(5);
    }),
  );
});

const finding = (weight: number, atMost?: 'medium' | 'low'): Finding => ({
  code: 'ROUNDED',
  weight,
  invoices: [],
  evidence: {},
  explanation: '',
  ...(atMost === undefined ? {} : { atMost }),
});

test.each([
  [0.97, 0.92, 'high'],
  [0.969, 1, 'medium'],
  [1, 0.919, 'medium'],
  [0.5, 0.15, 'medium'],
  [0.499, 1, 'low'],
  [1, 0.149, 'low'],
] as const)('a cause with %d of all, whose best invoice has %d of it, is %s', (causeShare, bestShare, confidence) => {
  expect(confidenceOf(finding(1), causeShare, bestShare)).toBe(confidence);
  expect(confidenceOf(finding(1, 'medium'), causeShare, bestShare)).toBe(confidence === 'high' ? 'medium' : confidence);
  expect(confidenceOf(finding(1, 'low'), causeShare, bestShare)).toBe('low');
});

test('other invoices are counted up to 50', () => {
  expect([1, 2, 50, 51, 500].map(otherInvoices)).toEqual([
    '1 other invoice',
    '2 other invoices',
    '50 other invoices',
    'more than 50 other invoices',
    'more than 50 other invoices',
  ]);
});

test('which of its invoices were paid, before the transfer and since, is told by their names', () => {
  const paidAt = (externalId: string, ms: number | null) => {
    const paid = ms === null ? null : { at: unixMs(CREATED_AT + ms), from: 'TPayer' };
    return suspectOf(1n, 1n, { externalId, paid });
  };
  const describe = (...times: (number | null)[]) => {
    const invoices = times.map((ms, index) => paidAt('abcd'.charAt(index), ms));
    return alreadyPaid({ invoices }, CREATED_AT);
  };
  expect(describe(null)).toBe('');
  expect(describe(0)).toBe('; a was paid earlier');
  expect(describe(1, null)).toBe('; a was paid later');
  expect(describe(1, -1, 0, 2)).toBe('; b and c were paid earlier; a and d were paid later');
});

test('weights add up, and an invoice is told with what arrived more or less', () => {
  expect(sum([finding(1), finding(0.5)])).toBe(1.5);
  expect(toNear(suspectOf(25_000_000n, 25_000_137n), 24_000_000n)).toEqual({
    id: '00000000-0000-7000-8000-000000000001',
    externalId: 'order-1',
    status: 'PENDING',
    payableMicro: 25_000_137n,
    differenceMicro: -1_000_137n,
  });
});

describe('a duplicate', () => {
  const transfer = { amountMicro: 25_000_000n, from: 'TPayer', to: 'THere', at: CREATED_AT };
  const sender = { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null };
  const facts = { transfer, policy: 'exact', invoices: [], siblings: [], sender } as const;
  const paidAgo = (ms: number, from = 'TPayer') =>
    suspectOf(25_000_000n, 25_000_000n, { paid: { at: unixMs(CREATED_AT - ms), from } });

  test('of a round amount is sure for a day, from the same sender', () => {
    const confidence = (ms: number, from?: string) => rankDuplicate(facts, paidAgo(ms, from))[0]?.confidence;
    expect([confidence(DAY_MS - 1), confidence(DAY_MS), confidence(0, 'TOther')]).toEqual(['high', 'medium', 'medium']);
  });

  test('of a payment that was annulled is no second payment', () => {
    const invoice = suspectOf(25_000_000n, 25_000_000n);
    expect(rankDuplicate(facts, invoice)).toMatchObject([{ code: 'UNKNOWN', confidence: 'low', invoices: [{}] }]);
  });

  test('is told with its invoice, and with the sender where it is the same', () => {
    expect(rankDuplicate(facts, paidAgo(0))).toEqual([
      {
        code: 'PAID_TWICE',
        confidence: 'high',
        explanation:
          '25.000000 arrived: exactly the amount of invoice order-1, which another transfer had already paid, from the same sender.',
        evidence: { times: 2, payableAmount: '25.000000', sender: 'TPayer' },
        invoices: [toNear(paidAgo(0), 25_000_000n)],
      },
    ]);
    const [other] = rankDuplicate(facts, paidAgo(0, 'TOther'));
    expect(other?.explanation).toBe(
      '25.000000 arrived: exactly the amount of invoice order-1, which another transfer had already paid.',
    );
    expect(other?.evidence).toEqual({ times: 2, payableAmount: '25.000000' });
  });

  test('may be the merchant or an imitator as well, and dust is not told of it', () => {
    const known = { ...facts, transfer: { ...transfer, amountMicro: 5_000n }, sender: { ...sender, isOurs: true } };
    const [first, second, ...more] = rankDuplicate(known, paidAgo(0));
    expect(more).toEqual([]);
    expect(first?.code).toBe('PAID_TWICE');
    expect(second).toMatchObject({ code: 'OWN_DEPOSIT', confidence: 'low', invoices: [] });
    expect(second?.explanation).toMatch(/an address of this project\.$/);
  });
});

test('one address of the same project has its invoices told, with the right address', () => {
  const facts = {
    ...factsOf(25_000_137n),
    invoices: [
      suspectOf(25_000_000n, 25_000_137n, {
        createdAt: unixMs(oneInvoice().now - MINUTE_MS),
        expiresAt: unixMs(oneInvoice().now + MINUTE_MS),
      }),
    ],
  };
  expect(rankCauses(facts)[0]).toMatchObject({ code: 'OTHER_ADDRESS', evidence: { expectedAddress: 'THere' } });
});

test('causes that have less than a hundredth of all are left out, and never the first', () => {
  // 25.000130 is cut off, and with a twentieth of that a wrong digit; all else is far below.
  expect(rankCauses(factsOf(25_000_130n)).map(({ code }) => code)).toEqual(['TRUNCATED', 'ONE_DIGIT_WRONG']);
  expect(rankCauses(factsOf(777_000_000n)).map(({ code }) => code)).toEqual(['UNKNOWN']);
});

describe('what explains a transfer', () => {
  const at = unixMs(CREATED_AT + 3_600_000);
  const expired = suspectOf(25_000_000n, 25_000_137n);
  const open = suspectOf(25_000_000n, 25_000_245n, { id: 'open', expiresAt: at });
  const future = suspectOf(25_000_000n, 25_000_356n, { id: 'future', createdAt: unixMs(at + DAY_MS) });
  const factsWith = (...invoices: MismatchFacts['invoices'][number][]): MismatchFacts => ({
    transfer: { amountMicro: 25_000_000n, from: 'TSender', to: 'THere', at },
    policy: 'tail',
    invoices,
    siblings: [],
    sender: { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null },
  });
  const weights = (facts: MismatchFacts) =>
    findingsOf(facts).map(({ code, invoices, weight }) => [code, invoices[0]?.id ?? null, weight]);

  test('is weighed by how plausible each invoice is, which together are one at most', () => {
    const [first, second, unknown, ...more] = weights(factsWith(expired, open, future));
    expect(more).toEqual([]);
    expect(first).toEqual(['REQUESTED_AMOUNT', expired.id, expect.closeTo((0.22 * 0.4) / 1.4, 12)]);
    expect(second).toEqual(['REQUESTED_AMOUNT', 'open', expect.closeTo(0.22 / 1.4, 12)]);
    expect(unknown).toEqual(['UNKNOWN', null, expect.closeTo(0.02 * 0.0005, 12)]);
  });

  test('may be nothing that is known, the more so the less plausible all invoices are', () => {
    expect(weights(factsWith(expired))).toEqual([
      ['REQUESTED_AMOUNT', expired.id, expect.closeTo(0.22 * 0.4, 12)],
      ['UNKNOWN', null, expect.closeTo((0.02 + 0.6) * 0.0005, 12)],
    ]);
    expect(weights(factsWith(future))).toEqual([['UNKNOWN', null, expect.closeTo(1.02 * 0.0005, 12)]]);
  });

  test('is told with how many invoices fit alike', () => {
    const another = suspectOf(25_000_000n, 25_000_137n, { expiresAt: at });
    const [cause] = rankCauses(factsWith(another, open));
    expect(cause?.evidence).toMatchObject({ equallyNear: 2 });
    expect(cause?.explanation).toMatch(/25\.000137; 1 other invoice fits about as well\.$/);
    expect(cause?.invoices.map(({ differenceMicro }) => differenceMicro)).toEqual([-137n, -245n]);
    const [alone] = rankCauses(factsWith(expired, open));
    expect(alone?.evidence).not.toHaveProperty('equallyNear');
    expect(alone?.explanation).toMatch(/25\.000245\.$/);
    expect(alone?.invoices).toHaveLength(1);
  });
});

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

const HOUR_MS = 60 * MINUTE_MS;

/** How plausible an invoice is to a transfer so long after it was made. */
const after = (ms: number, expiresMs = 30 * MINUTE_MS) =>
  plausibility(
    suspectOf(25_000_000n, 25_000_137n, { expiresAt: unixMs(CREATED_AT + expiresMs) }),
    unixMs(CREATED_AT + ms),
  );
/** The same of one that was paid so long before the transfer. */
const paidBefore = (ms: number) => {
  const at = unixMs(CREATED_AT + 10 * 24 * HOUR_MS);
  return plausibility(suspectOf(1n, 1n, { paid: { at: unixMs(at - ms), from: 'TPayer' } }), at);
};

test('an invoice that a transfer came before cannot be meant', () => {
  expect([-3001, -3000, -2999, 0].map((ms) => after(ms))).toEqual([0, 0, 1, 1]);
});

test('most pay at once: an open invoice is less plausible after 3 hours, and less again after 2 days', () => {
  const open = (ms: number) => after(ms, 1000 * HOUR_MS);
  expect([3 * HOUR_MS - 1, 3 * HOUR_MS, 48 * HOUR_MS - 1, 48 * HOUR_MS].map(open)).toEqual([1, 0.6, 0.6, 0.3]);
});

test('one that has expired is less plausible the longer it has', () => {
  const overdue = (ms: number) => after(30 * MINUTE_MS + ms);
  expect([0, 1, 2 * HOUR_MS - 1, 2 * HOUR_MS, 48 * HOUR_MS - 1, 48 * HOUR_MS].map(overdue)).toEqual([
    1, 0.4, 0.4, 0.1, 0.1, 0.01,
  ]);
});

test('one that was paid before is hardly meant, and after a day even less', () => {
  expect([0, 24 * HOUR_MS - 1, 24 * HOUR_MS].map(paidBefore)).toEqual([0.03, 0.03, 0.003]);
  // Paid since, with something else, it was open when this transfer came; but it had expired nine days before.
  expect(paidBefore(-1)).toBe(0.01);
});

function causesOf(amountMicro: bigint, known: Partial<Sender> = {}) {
  const facts: MismatchFacts = {
    transfer: { amountMicro, from: 'TSender', to: 'THere', at: CREATED_AT },
    policy: 'tail',
    invoices: [],
    siblings: [],
    sender: { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null, ...known },
  };
  return senderCauses(facts);
}

test('an unknown sender of an amount worth something explains nothing', () => {
  expect(causesOf(100_000n)).toEqual([]);
});

test.each([
  [1n, 0.5 / 100],
  [42n, 0.5 / 100],
  [100n, 0.5 / 100],
  [101n, 0.4 / 10_000],
  [900n, 0.5 / 100],
  [9_999n, 0.4 / 10_000],
  [10_000n, 0.5 / 100],
  [10_001n, 0.1 / 100_000],
  [20_000n, 0.5 / 100],
  [99_999n, 0.1 / 100_000],
])('%i micro-USDT is dust', (amountMicro, chance) => {
  const [dust, ...more] = causesOf(amountMicro);
  expect(more).toEqual([]);
  expect(dust).toMatchObject({ code: 'DUST', invoices: [], evidence: {} });
  expect(dust?.weight).toBeCloseTo(0.3 * chance, 15);
  expect(dust?.explanation).toMatch(/^0\.0[0-9]{5} arrived: such small amounts are sent as advertising, or to plant/);
  expect(dust?.atMost).toBe(amountMicro < 10_000n ? undefined : 'medium');
  expect('atMost' in (dust ?? {})).toBe(amountMicro >= 10_000n);
});

test.each([
  [9_999n, 1e-2, false],
  [10_000n, 1e-4, false],
  [999_999n, 1e-4, false],
  [1_000_000n, 1e-5, true],
])('of a look-alike sender the likelier, the less it sent: %i', (amountMicro, chance, isUnsure) => {
  const found = causesOf(amountMicro, { resembles: 'TSenxxxxnder' }).find(({ code }) => code === 'LOOK_ALIKE_SENDER');
  expect(found).toMatchObject({ invoices: [], evidence: { sender: 'TSender', resembles: 'TSenxxxxnder' } });
  expect(found?.weight).toBeCloseTo(0.02 * 1e9 * chance, 6);
  expect(found?.explanation).toMatch(
    /^[0-9.]+ arrived from TSender, which begins and ends like TSenxxxxnder but is a different address; scammers create such addresses so that people copy the wrong address$/,
  );
  expect('atMost' in (found ?? {})).toBe(isUnsure);
  expect(found?.atMost).toBe(isUnsure ? 'medium' : undefined);
});

test.each([
  [{ isOurs: true, hasDeposited: true, hasReceived: true }, 1e12, 'own-address', /, an address of this project$/],
  [
    { hasDeposited: true, hasReceived: true },
    1e3,
    'earlier-deposit',
    /, from which an earlier transfer was resolved as the merchant's own deposit$/,
  ],
  [
    { hasReceived: true },
    1e2,
    'received-before',
    /, to which this project has sent money before; the sender may be the merchant's own wallet, or a customer who received a refund$/,
  ],
] as const)('a sender with %j may be the merchant', (known, ratio, reason, says) => {
  for (const [amountMicro, chance] of [
    [777_000_000n, 0.5 / 1_000],
    [777_010_000n, 0.3 / 100_000],
    [777_000_001n, 0.2 / 1_000_000_000],
  ] as const) {
    const [found, ...more] = causesOf(amountMicro, known);
    expect(more).toEqual([]);
    expect(found).toMatchObject({ code: 'OWN_DEPOSIT', invoices: [], evidence: { sender: 'TSender', reason } });
    expect(found?.weight).toBeCloseTo(0.05 * ratio * chance, 12);
    expect(found?.explanation).toMatch(/^777\.0[0-9]+ arrived from TSender, /);
    expect(found?.explanation).toMatch(says);
    expect('atMost' in (found ?? {})).toBe(reason !== 'own-address');
    if (reason !== 'own-address') expect(found?.atMost).toBe('medium');
  }
});

test('what nothing explains is unknown, the likelier the rounder and the fewer invoices could be meant', () => {
  expect(unknown(777_000_000n, 0.5)).toEqual({
    code: 'UNKNOWN',
    weight: 0.52 * (0.5 / 1_000),
    invoices: [],
    evidence: {},
    explanation:
      '777.000000 arrived: no invoice from that time has an amount that a common mistake would turn into this amount',
    atMost: 'low',
  });
  expect(unknown(777_120_000n, 0).weight).toBeCloseTo(0.02 * (0.3 / 100_000), 18);
  expect(unknown(777_123_000n, 1).weight).toBeCloseTo(1.02 * (0.2 / 1_000_000_000), 20);
});
