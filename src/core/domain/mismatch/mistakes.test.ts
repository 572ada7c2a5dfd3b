import { expect, test } from 'vitest';
import { CREATED_AT, suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { likelyMistake } from '../lookup/lookup.ts';
import { CAUSES, type Cause } from '../mismatch.ts';
import { microUsdt } from '../money.ts';
import { FIXED_FEES } from './fee-errors.ts';
import { MISTAKES, type Mistake } from './mistakes.ts';
import { rankCauses } from './rank-causes.ts';

/** Prices in whole cents, each with a payable amount: with a tail, and without one. */
const INVOICES = [1_000_000n, 9_990_000n, 25_000_000n, 77_770_000n, 130_000_000n, 1_234_560_000n].flatMap((requested) =>
  [0n, 137n, 4_131n, 9_909n].map((tail) => suspectOf(requested, requested + tail)),
);
type Invoice = (typeof INVOICES)[number];

function operatorNames(invoice: Invoice, amountMicro: bigint): Cause[] {
  return rankCauses({
    transfer: { amountMicro, from: 'TSender', to: invoice.address, at: CREATED_AT },
    policy: 'tail',
    invoices: [invoice],
    siblings: [],
    sender: { isOurs: false, hasReceived: false, hasDeposited: false, resembles: null },
  });
}

function payerIsTold(invoice: Invoice, amountMicro: bigint): string | null {
  return likelyMistake({ ...invoice, arrivedMicro: microUsdt(amountMicro) })?.kind ?? null;
}

/** The payer's word for the operator's likeliest cause, where that is told at all. */
function payerShouldBeTold(invoice: Invoice, amountMicro: bigint): string | null {
  const [cause] = operatorNames(invoice, amountMicro);
  return cause === undefined || cause.confidence === 'low' ? null : (CAUSES[cause.code].payer ?? null);
}

/** The wrong amounts that a mistake makes of an invoice's; all are above nothing. */
function arrivals(mistake: Mistake, { payableMicro }: Invoice): bigint[] {
  const amounts = mistake.of({ amount: payableMicro, decimals: 6 });
  return [...new Set(amounts)].filter((amount) => amount > 0n && amount !== payableMicro);
}

const CASES = MISTAKES.map((mistake) => ({ name: mistake.name, mistake }));

/** Those of many wrong amounts of which payer and operator are told otherwise: one assertion for all, because each takes as long as the rest. */
function toldOtherwise(arrivalsOf: (invoice: Invoice) => readonly bigint[]): string[] {
  return INVOICES.flatMap((invoice) =>
    arrivalsOf(invoice)
      .filter((amountMicro) => payerIsTold(invoice, amountMicro) !== payerShouldBeTold(invoice, amountMicro))
      .map((amountMicro) => `${invoice.payableMicro} → ${amountMicro}`),
  );
}

test.each(CASES)('$name: the payer and the operator are told the same cause', ({ mistake }) => {
  expect(toldOtherwise((invoice) => arrivals(mistake, invoice))).toEqual([]);
});

test.each(FIXED_FEES)('a fee of %i micro-USDT: the payer and the operator are told the same cause', (fee) => {
  const arrived = ({ payableMicro }: Invoice) => [payableMicro - fee, payableMicro + fee].filter((micro) => micro > 0n);
  expect(toldOtherwise(arrived)).toEqual([]);
});

test.each([
  ['0.01', 24_990_137n, 'FEE_DEDUCTED', 'fee'],
  ['0.1', 24_900_137n, 'FEE_DEDUCTED', 'fee'],
  ['0.7', 24_300_137n, 'FEE_DEDUCTED', 'fee'],
  ['4', 21_000_137n, 'ONE_DIGIT_WRONG', 'one_digit'],
  ['6', 19_000_137n, 'FEE_DEDUCTED', 'fee'],
])('25.000137 less %s is one cause to both', (_fee, amountMicro, code, kind) => {
  const invoice = suspectOf(25_000_000n, 25_000_137n);
  expect(operatorNames(invoice, amountMicro)[0]?.code).toBe(code);
  expect(payerIsTold(invoice, amountMicro)).toBe(kind);
});

test.each([
  ['POINT_MISPLACED', 250_001_370n],
  ['PAID_TWICE', 50_000_274n],
  ['PART_OF_INVOICE', 12_500_068n],
  ['DUST', 9n],
  ['UNKNOWN', 777_000_000n],
])('the page has no words for %s', (code, amountMicro) => {
  const invoice = suspectOf(25_000_000n, 25_000_137n);
  expect(operatorNames(invoice, amountMicro)[0]?.code).toBe(code);
  expect(payerIsTold(invoice, amountMicro)).toBeNull();
});

test.each(CASES)('$name: its cause is the likeliest for an amount that it makes', ({ mistake }) => {
  const invoice = suspectOf(25_000_000n, 25_379_159n);
  const likeliest = arrivals(mistake, invoice).map((amountMicro) => operatorNames(invoice, amountMicro)[0]?.code);
  expect(likeliest).toContain(mistake.cause);
});

function arrivedAfter(name: string, amount: bigint, decimals = 6): bigint[] {
  const mistake = MISTAKES.find((each) => each.name === name);
  if (mistake === undefined) throw new Error(`there is no mistake ${name}`);
  return mistake.of({ amount, decimals });
}

test('what arrives is what a payer would make of 25.000137', () => {
  expect(arrivedAfter('rounded to 2 decimals', 25_000_137n)).toEqual([25_000_000n]);
  expect(arrivedAfter('rounded to 0 … 5 decimals', 25_379_156n)).toEqual([
    ...[25_000_000n, 25_400_000n, 25_380_000n, 25_379_000n, 25_379_200n, 25_379_160n],
  ]);
  expect(arrivedAfter('truncated to 2 decimals', 25_379_156n)).toEqual([25_370_000n]);
  expect(arrivedAfter('truncated to 0 … 5 decimals', 25_379_156n)).toEqual([
    ...[25_000_000n, 25_300_000n, 25_370_000n, 25_379_000n, 25_379_100n, 25_379_150n],
  ]);
  expect(arrivedAfter('point one place too far right', 25_000_137n)).toEqual([250_001_370n]);
  expect(arrivedAfter('point one place too far left, cut to 6 decimals', 25_000_137n)).toEqual([2_500_013n]);
  expect(arrivedAfter('doubled', 25_000_137n)).toEqual([50_000_274n]);
  expect(arrivedAfter('decimal point forgotten', 25_000_137n)).toEqual([25_000_137_000_000n]);
  expect(arrivedAfter('decimal point forgotten', 25_030_000n, 2)).toEqual([2_503_000_000n]);
  expect(arrivedAfter('a fee of 0.8 deducted', 25_000_137n)).toEqual([24_200_137n]);
  expect(arrivedAfter('1 % less, cut to 6 decimals', 25_000_137n)).toEqual([24_750_135n]);
  expect(arrivedAfter('a decimal digit left out', 25_000_137n)).toContain(25_001_370n);
  expect(arrivedAfter('a digit before the point left out', 25_000_137n)).toEqual([5_000_137n, 2_000_137n]);
  expect(arrivedAfter('a digit before the point inserted', 25_000_137n)).toContain(255_000_137n);
  expect(arrivedAfter('a decimal digit inserted, cut to 6', 25_000_137n)).toContain(25_000_913n);
  expect(arrivedAfter('neighbouring digits swapped', 25_030_000n, 2)).toEqual([52_030_000n, 20_530_000n, 25_300_000n]);
  expect(arrivedAfter('one wrong digit', 25_030_000n, 2)).toContain(5_030_000n);
});
