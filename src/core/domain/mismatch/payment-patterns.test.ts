import { describe, expect, test } from 'vitest';
import { CREATED_AT, suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { unixMs } from '../time.ts';
import {
  fractionOfInvoice,
  otherAddress,
  paidTwice,
  partWithSiblings,
  siblingSums,
  sumsOfInvoices,
} from './payment-patterns.ts';

const INVOICE = suspectOf(25_000_000n, 25_000_137n);
const ROUND = suspectOf(25_000_000n, 25_000_000n);
const HOUR_MS = 3_600_000;

test('the payable amount at another address is told with the right one', () => {
  expect(otherAddress(INVOICE, 25_000_137n)).toEqual([
    {
      code: 'OTHER_ADDRESS',
      weight: 0.05,
      evidence: { expectedAddress: 'THere' },
      explanation: "25.000137 arrived: exactly invoice order-1's 25.000137, but that invoice must be paid to THere",
    },
  ]);
  expect(otherAddress(INVOICE, 25_000_000n)).toEqual([]);
});

test('twice an amount in one transfer; of a round one it is less sure', () => {
  const twice = {
    code: 'PAID_TWICE',
    weight: 0.04,
    evidence: { times: 2, payableAmount: '25.000137' },
    explanation: "50.000274 arrived: twice invoice order-1's 25.000137 in one transfer",
  };
  expect(paidTwice(INVOICE, 50_000_274n)).toEqual([twice]);
  expect(paidTwice(ROUND, 50_000_000n)).toEqual([
    {
      ...twice,
      evidence: { times: 2, payableAmount: '25.000000' },
      explanation: "50.000000 arrived: twice invoice order-1's 25.000000 in one transfer",
      atMost: 'medium',
    },
  ]);
  expect(paidTwice(INVOICE, 50_000_000n)).toEqual([
    {
      code: 'PAID_TWICE',
      weight: 0.04 * 0.3,
      evidence: { times: 2, requestedAmount: '25.000000' },
      explanation: '50.000000 arrived: twice the requested 25 of invoice order-1',
      atMost: 'medium',
    },
  ]);
  expect(paidTwice(INVOICE, 50_000_137n)).toEqual([]);
});

test.each([
  [2n, 'half', 0.6, [12_500_068n, 12_500_069n], [12_500_067n, 12_500_070n], 12_500_000n],
  [4n, 'a quarter', 0.2, [6_250_034n, 6_250_035n], [6_250_033n, 6_250_036n], 6_250_000n],
] as const)('one of %i parts, to the micro-USDT', (parts, name, weight, right, wrong, ofRequested) => {
  for (const paid of right) {
    expect(fractionOfInvoice(INVOICE, paid)).toEqual([
      {
        code: 'PART_OF_INVOICE',
        weight: 0.02 * weight,
        evidence: { part: `1/${parts}` },
        explanation: `${(Number(paid) / 1e6).toFixed(6)} arrived: ${name} of invoice order-1's 25.000137`,
        atMost: 'medium',
      },
    ]);
  }
  for (const paid of wrong) expect(fractionOfInvoice(INVOICE, paid)).toEqual([]);
  expect(fractionOfInvoice(INVOICE, ofRequested)).toEqual([
    {
      code: 'PART_OF_INVOICE',
      weight: 0.02 * weight * 0.3,
      evidence: { part: `1/${parts}` },
      explanation: `${(Number(ofRequested) / 1e6).toFixed(6)} arrived: ${name} of the requested 25 of invoice order-1`,
      atMost: 'low',
    },
  ]);
});

test('a third is one exactly where the amount can be divided', () => {
  expect(fractionOfInvoice(suspectOf(30_000_000n, 30_000_141n), 10_000_047n)).toMatchObject([
    { weight: 0.02 * 0.2, evidence: { part: '1/3' }, atMost: 'medium' },
  ]);
  expect(fractionOfInvoice(suspectOf(30_000_000n, 30_000_141n), 10_000_048n)).toEqual([]);
  expect(fractionOfInvoice(suspectOf(30_000_000n, 30_000_141n), 10_000_000n)).toMatchObject([
    { explanation: '10.000000 arrived: a third of the requested 30 of invoice order-1', atMost: 'low' },
  ]);
});

describe('other transfers of the same sender', () => {
  const at = CREATED_AT;
  const sibling = (amountMicro: bigint, agoMs = HOUR_MS) => ({ amountMicro, at: unixMs(at - agoMs) });

  test('count alone and in pairs, within two days before and after', () => {
    const near = [sibling(1n, 48 * HOUR_MS), sibling(20n, -48 * HOUR_MS), sibling(300n)];
    const far = [sibling(4_000n, 48 * HOUR_MS + 1), sibling(50_000n, -48 * HOUR_MS - 1)];
    expect(siblingSums([...near, ...far], at)).toEqual([
      { totalMicro: 1n, parts: [1n], weight: 1 / 3 },
      { totalMicro: 20n, parts: [20n], weight: 1 / 3 },
      { totalMicro: 300n, parts: [300n], weight: 1 / 3 },
      { totalMicro: 21n, parts: [1n, 20n], weight: (1 / 3) * 0.2 },
      { totalMicro: 301n, parts: [1n, 300n], weight: (1 / 3) * 0.2 },
      { totalMicro: 320n, parts: [20n, 300n], weight: (1 / 3) * 0.2 },
    ]);
    expect(siblingSums([], at)).toEqual([]);
  });

  test('are paired among the first ten only', () => {
    const many = Array.from({ length: 30 }, (_, index) => sibling(BigInt(index + 1)));
    expect(siblingSums(many, at)).toHaveLength(30 + 45);
  });

  test('that make up the rest of an amount are parts of it', () => {
    const sums = siblingSums([sibling(20_000_000n), sibling(3_000_000n)], at);
    expect(partWithSiblings(INVOICE, 5_000_137n, sums)).toEqual([
      {
        code: 'PART_OF_INVOICE',
        weight: 0.06 * 0.5,
        evidence: { otherParts: '20.000000', sum: '25.000137' },
        explanation: "5.000137 arrived: together with 20.000000 from the same sender it is invoice order-1's 25.000137",
      },
    ]);
    expect(partWithSiblings(INVOICE, 2_000_137n, sums)).toEqual([
      {
        code: 'PART_OF_INVOICE',
        weight: 0.06 * (0.5 * 0.2),
        evidence: { otherParts: '20.000000 + 3.000000', sum: '25.000137' },
        explanation:
          "2.000137 arrived: together with 20.000000 and 3.000000 from the same sender it is invoice order-1's 25.000137",
      },
    ]);
    expect(partWithSiblings(INVOICE, 5_000_000n, sums)).toEqual([
      {
        code: 'PART_OF_INVOICE',
        weight: 0.06 * 0.5 * 0.3,
        evidence: { otherParts: '20.000000', sum: '25.000000' },
        explanation:
          '5.000000 arrived: together with 20.000000 from the same sender it is the requested 25 of invoice order-1',
        atMost: 'medium',
      },
    ]);
    expect(partWithSiblings(ROUND, 5_000_000n, sums)).toMatchObject([{ weight: 0.06 * 0.5, atMost: 'medium' }]);
    expect(partWithSiblings(INVOICE, 5_000_001n, sums)).toEqual([]);
  });

  test('of several ways the likeliest is told', () => {
    const sums = siblingSums([sibling(12_000_000n), sibling(8_000_000n), sibling(20_000_000n)], at);
    const reversed = sums.toReversed();
    for (const list of [sums, reversed]) {
      const [slip] = partWithSiblings(INVOICE, 5_000_137n, list);
      expect(slip?.evidence).toEqual({ otherParts: '20.000000', sum: '25.000137' });
      expect(slip?.weight).toBeCloseTo(0.06 / 3, 12);
    }
  });
});

describe('the sum of several invoices in one transfer', () => {
  const weighed = (payable: bigint, share = 0.25, agoMs = 0, requested = payable - 7n) => ({
    invoice: suspectOf(requested, payable, {
      id: `id-${payable}`,
      externalId: `order-${payable}`,
      createdAt: unixMs(CREATED_AT - agoMs),
    }),
    share,
  });

  test('of two is told with both, the likelier first', () => {
    expect(sumsOfInvoices([weighed(10_000_107n, 0.25), weighed(20_000_207n, 0.5)], 30_000_314n)).toEqual([
      {
        code: 'SUM_OF_INVOICES',
        weight: 0.04 * 2 * (0.5 * 0.25),
        invoices: [20_000_207n, 10_000_107n].map((payable) => weighed(payable).invoice),
        evidence: { parts: '20.000207 + 10.000107' },
        explanation:
          "30.000314 arrived: the sum of invoice order-20000207's 20.000207 and invoice order-10000107's 10.000107 in one transfer",
      },
    ]);
  });

  test('of three is less likely, and so is one of invoices that were made more than an hour apart', () => {
    const three = [weighed(1_000_017n), weighed(2_000_027n), weighed(4_000_047n)];
    const [sum, ...more] = sumsOfInvoices(three, 7_000_091n);
    expect(more).toEqual([]);
    expect(sum?.weight).toBeCloseTo(0.04 * 2 * 0.25 ** 3 * (0.3 * 3), 12);
    expect(sum?.evidence).toEqual({ parts: '1.000017 + 2.000027 + 4.000047' });
    const apart = (ms: number) => sumsOfInvoices([weighed(10n, 0.5), weighed(20n, 0.5, ms)], 30n)[0]?.weight;
    expect(apart(HOUR_MS)).toBeCloseTo(0.04 * 2 * 0.25, 12);
    expect(apart(HOUR_MS + 1)).toBeCloseTo(0.04 * 2 * 0.25 * 0.2, 12);
  });

  test('of round amounts alone is less sure', () => {
    const round = (payable: bigint) => weighed(payable, 0.5, 0, payable);
    expect(sumsOfInvoices([round(10n), round(20n)], 30n)).toMatchObject([{ atMost: 'medium' }]);
    expect(sumsOfInvoices([round(10n), weighed(20n)], 30n)[0]).not.toHaveProperty('atMost');
  });

  test('takes each invoice once, and none that is as large as the sum', () => {
    expect(sumsOfInvoices([weighed(10n)], 20n)).toEqual([]);
    expect(sumsOfInvoices([weighed(10n), weighed(30n)], 30n)).toEqual([]);
    expect(sumsOfInvoices([weighed(10n), weighed(20n), weighed(20n)], 30n)).toHaveLength(2);
    // Twice 10 and 10 more are three invoices of one amount.
    expect(sumsOfInvoices([weighed(10n), weighed(10n), weighed(10n)], 30n)).toHaveLength(1);
    expect(sumsOfInvoices([weighed(10n), weighed(20n)], 31n)).toEqual([]);
  });

  test('is told 200 times at most, and is no sum where it is twice one amount', () => {
    const many = Array.from({ length: 200 }, () => weighed(25_000_000n, 1 / 200));
    expect(sumsOfInvoices(many, 75_000_000n)).toHaveLength(200);
    expect(sumsOfInvoices(many, 50_000_000n)).toEqual([]);
  });

  test('is looked for among the 200 likeliest invoices in pairs, and the 40 likeliest in threes', () => {
    // Powers of 3 apart, so that no two sums of so few of them are the same.
    const amounts = Array.from(
      { length: 210 },
      (_, index) => 10n ** 12n + BigInt(index) ** 3n * 1_000_003n + BigInt(index),
    );
    const all = amounts.map((payable, index) => weighed(payable, 1 / (index + 10)));
    const isFound = (...chosen: number[]) => {
      const total = chosen.reduce((sum, index) => sum + (amounts[index] ?? 0n), 0n);
      return sumsOfInvoices(all.toReversed(), total).some(({ invoices }) => invoices.length === chosen.length);
    };
    expect([isFound(0, 199), isFound(0, 200), isFound(198, 199)]).toEqual([true, false, true]);
    expect([isFound(0, 39, 199), isFound(0, 40, 41), isFound(38, 39, 60)]).toEqual([true, false, true]);
  });
});
