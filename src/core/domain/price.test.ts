import fc from 'fast-check';
import { expect, test } from 'vitest';
import { convertedPriceOf, formatOptions } from './invoice-options.ts';
import { type MicroUsdt, microUsdt, parseAmount } from './money.ts';
import { convertPrice, describePrice, formatPrice, rateInForce } from './price.ts';
import { unixMs } from './time.ts';

const micro = (text: string): MicroUsdt => {
  const parsed = parseAmount(text);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  return parsed.amountMicro;
};

test.each([
  ['19.99', '0.92', 21_728_261n],
  ['1', '1', 1_000_000n],
  ['100', '7.2', 13_888_889n],
  ['0.000001', '1000000', 1n],
  ['999999999999.999999', '1', 999_999_999_999_999_999n],
])('a price of %s at %s is %i micro-USDT', (amount, rate, converted) => {
  expect(convertPrice(micro(amount), micro(rate))).toBe(converted);
});

test('a price that no invoice can have is none', () => {
  expect(convertPrice(micro('999999999999.999999'), micro('0.999999'))).toBeNull();
  expect(() => convertPrice(micro('1'), 0n)).toThrow(RangeError);
});

test('rounding shifts by less than one micro-USDT: what is asked for is worth the price, and one less is not', () => {
  const amounts = fc.bigInt({ min: 1n, max: 10n ** 15n }).map(microUsdt);
  const rates = fc.bigInt({ min: 1n, max: 10n ** 12n });
  fc.assert(
    fc.property(amounts, rates, (amountMicro, rateMicro) => {
      const converted = convertPrice(amountMicro, rateMicro);
      if (converted === null) {
        expect(amountMicro * 1_000_000n).toBeGreaterThan((10n ** 18n - 1n) * rateMicro);
        return;
      }
      // In millionths of a millionth, so that nothing is rounded here.
      expect(converted * rateMicro).toBeGreaterThanOrEqual(amountMicro * 1_000_000n);
      expect((converted - 1n) * rateMicro).toBeLessThan(amountMicro * 1_000_000n);
    }),
    { numRuns: 2000 },
  );
});

test('a higher price never asks for less', () => {
  const amounts = fc.bigInt({ min: 1n, max: 10n ** 12n });
  fc.assert(
    fc.property(amounts, amounts, fc.bigInt({ min: 10_000n, max: 10n ** 10n }), (one, more, rateMicro) => {
      const [low, high] = [convertPrice(microUsdt(one), rateMicro), convertPrice(microUsdt(one + more), rateMicro)];
      expect((high ?? 0n) >= (low ?? 0n)).toBe(true);
    }),
  );
});

test('a fixed rate is always in force, and one that was read until it is too old, or of the future', () => {
  const source = {
    url: 'https://rates.example/eur?key=1',
    path: '/eur',
    timePath: null,
    min: '0.8',
    max: '1',
    maxAgeMs: 60_000,
  };
  const read = {
    ...{ rateMicro: 900_000n, rateSource: JSON.stringify(source) },
    ...{ readMicro: 921_500n, readAt: unixMs(1_000_000) },
  };
  const inForce = (at: number) => rateInForce(read, unixMs(at));
  expect(rateInForce({ ...read, rateSource: null }, unixMs(9e12))).toEqual({
    ...{ rateMicro: 900_000n, rate: '0.900000', rateAt: null, rateSource: 'fixed' },
  });
  expect(inForce(1_060_000)).toEqual({
    ...{ rateMicro: 921_500n, rate: '0.921500' },
    ...{ rateAt: '1970-01-01T00:16:40.000Z', rateSource: 'https://rates.example' },
  });
  expect([inForce(1_060_001), inForce(900_000)]).toEqual([null, null]);
});

const PRICE = { amount: '25.000000', currency: 'EUR', rate: '0.920000', rateAt: null, rateSource: 'fixed' };
const READ_PRICE = { ...PRICE, rateAt: '2026-09-01T12:00:00.000Z', rateSource: 'https://rates.example' };

test.each([
  ['25.000000', 'EUR', '25.00 EUR'],
  ['25.001000', 'EUR', '25.001 EUR'],
  ['1500.000000', 'JPY', '1500 JPY'],
  ['151.500000', 'JPY', '151.5 JPY'],
  ['1.500000', 'KWD', '1.500 KWD'],
  ['1.000000', 'XQQ', '1.00 XQQ'],
  ['1.000000', 'POINT', '1.00 POINT'],
])('a price of %s %s is shown as %s', (amount, currency, shown) => {
  expect(formatPrice({ amount, currency })).toBe(shown);
});

test('a price is described in one line with its rate and the source of it', () => {
  expect(describePrice(PRICE)).toBe('25.00 EUR at 0.92 EUR for 1 USDT, a fixed rate');
  expect(describePrice({ ...READ_PRICE, rate: '0.921575' })).toBe(
    '25.00 EUR at 0.921575 EUR for 1 USDT, read 2026-09-01T12:00:00.000Z from https://rates.example',
  );
});

test('the price of an invoice is read from its options, and only if it is whole', () => {
  for (const price of [PRICE, READ_PRICE]) expect(convertedPriceOf(formatOptions({ price }))).toEqual(price);
  const options = [
    null,
    formatOptions({ description: 'Tea' }),
    formatOptions({ price: { amount: '1', currency: 'EUR' } }),
  ];
  const written = [
    { ...PRICE, rate: 1 },
    { ...PRICE, rateAt: 1 },
    { ...PRICE, rateSource: null },
    { ...PRICE, amount: 1 },
  ];
  for (const text of [...options, ...written.map((price) => JSON.stringify({ price }))])
    expect(convertedPriceOf(text), String(text)).toBe(null);
});
