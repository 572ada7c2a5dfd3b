import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { convertedPriceOf, formatOptions } from './invoice-options.ts';
import { type MicroUsdt, microUsdt, parseAmount } from './money.ts';
import {
  convertPrice,
  describePrice,
  formatPrice,
  isCurrentRate,
  originOf,
  type RateSource,
  rateInForce,
  readRate,
  readRateSource,
} from './price.ts';
import { toIso, unixMs } from './time.ts';

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

const NOW = unixMs(Date.UTC(2026, 8, 1, 12));
const SOURCE: RateSource = {
  ...{ url: 'https://rates.example/', path: '/tether/cny', timePath: null, min: '6.5', max: '8', maxAgeMs: 1_800_000 },
};

const read = (answer: string, source: Partial<RateSource> = {}) => readRate(answer, { ...SOURCE, ...source }, NOW);
const rateOf = (answer: string, source: Partial<RateSource> = {}) => {
  const found = read(answer, source);
  return found.kind === 'ok' ? found.rateMicro : found.reason;
};

test('a rate is the text of its number, as a number or in quotes, without what is beyond six decimals', () => {
  const cny = (number: string) => rateOf(`{"tether":{"usd":1e400,"cny":${number}}}`);
  expect(['7.19', '"7.19"', '7', ' 7.1900000000000001 ', '7.123456999999'].map(cny)).toEqual([
    ...[7_190_000n, 7_190_000n, 7_000_000n, 7_190_000n, 7_123_456n],
  ]);
  expect(rateOf('[{"a~b":{"/":"7.2"}},7]', { path: '/0/a~0b/~1' })).toBe(7_200_000n);
  expect(rateOf('\n{"\\u0061":6.5}', { path: '/a' })).toBe(6_500_000n);
  // The text of a name or value is no number.
  expect(rateOf('{"7.1":"\\"8.1,","x":7.3}', { path: '/x' })).toBe(7_300_000n);
});

test('the exact number is read at any size and precision, and never more than it', () => {
  const digits = fc.nat({ max: 999_999 });
  fc.assert(
    fc.property(digits, fc.stringMatching(/^[0-9]{1,30}$/), (whole, fraction) => {
      const bounds = { min: '0.000001', max: '999999999999' };
      const exact = BigInt(whole + fraction.padEnd(6, '0').slice(0, 6));
      const found = rateOf(`{"r":${whole}.${fraction}}`, { ...bounds, path: '/r' });
      if (exact === 0n) expect(found).toContain('not a rate');
      else expect(found).toBe(exact);
    }),
  );
});

test('a source that somebody wrote to the database leads nowhere, whatever it is', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.json().map((value) => `{"url":${value},"path":${value},"maxAgeMs":${value}}`),
      ),
      (text) => {
        const written = JSON.parse(text) === null ? '{}' : text;
        const source = readRateSource(written);
        expect(originOf(source)).toBeTypeOf('string');
        expect([source.url, source.path, source.min, source.max].every((each) => typeof each === 'string')).toBe(true);
        if (typeof JSON.parse(written).maxAgeMs !== 'number') expect(isCurrentRate(NOW, source, NOW)).toBe(false);
      },
    ),
  );
  expect(readRateSource(JSON.stringify(SOURCE))).toEqual(SOURCE);
});

describe('what gives no rate', () => {
  test.each([
    ['', 'not one JSON object'],
    ['7.19', 'not one JSON object'],
    ['"7.19"', 'not one JSON object'],
    ['null', 'not one JSON object'],
    ['{"tether":{"cny":7.1', 'not one JSON object'],
    ['<html>', 'not one JSON object'],
    ['{}', 'no number at /tether/cny'],
    ['[]', 'no number at /tether/cny'],
    ['{"tether":7.19}', 'no number at /tether/cny'],
    ['{"tether":{"cny":null}}', 'no number at /tether/cny'],
    ['{"tether":{"cny":{"a":7}}}', 'no number at /tether/cny'],
    ['{"tether":{"cny":true}}', 'no number at /tether/cny'],
    ['{"tether":{"cny":7.1e0}}', 'must not have an exponent'],
    ['{"tether":{"cny":-7.1}}', 'must not have a sign'],
    ['{"tether":{"cny":0}}', 'must be greater than 0'],
    ['{"tether":{"cny":"7,19"}}', 'must contain only the digits'],
    ['{"tether":{"cny":"NaN"}}', 'must contain only the digits'],
    ['{"tether":{"cny":" 7.19"}}', 'must not contain whitespace'],
    ['{"tether":{"cny":"٧"}}', 'must contain only the digits'],
    ['{"tether":{"cny":6.499999}}', 'the rate is 6.499999, which is not between 6.5 and 8'],
    ['{"tether":{"cny":8.000001}}', 'the rate is 8.000001, which is not between 6.5 and 8'],
  ])('%s', (answer, reason) => {
    expect(rateOf(answer)).toContain(reason);
  });

  test('a name that every object has is none of the answer', () => {
    for (const path of ['/__proto__', '/constructor/name', '/toString', '/length']) {
      expect(rateOf('{"a":7}', { path })).toContain('no number at');
      expect(rateOf('[7]', { path })).toContain('no number at');
    }
  });

  test('the bounds themselves are within', () => {
    expect([rateOf('{"r":6.5}', { path: '/r' }), rateOf('{"r":8.0}', { path: '/r' })]).toEqual([
      6_500_000n,
      8_000_000n,
    ]);
  });
});

describe('the time of a rate', () => {
  const at = (time: string) => read(`{"r":7,"t":${time}}`, { path: '/r', timePath: '/t' });
  const seconds = NOW / 1000;

  test('is when it was asked for, or what the source says of it', () => {
    expect(read('{"tether":{"cny":7}}')).toMatchObject({ at: NOW });
    const ago = unixMs(NOW - 600_000);
    for (const time of [`${seconds - 600}`, `"${seconds - 600}"`, `${seconds - 600}.25`, `${ago}`, `"${toIso(ago)}"`])
      expect(at(time), time).toMatchObject({ kind: 'ok', at: ago });
    expect(at('"2026-09-01T13:50:00+02:00"')).toMatchObject({ at: ago });
  });

  test('a time that is a little ahead is now; another one of the future, an old one and none are refused', () => {
    expect(at(`${seconds + 60}`)).toMatchObject({ kind: 'ok', at: NOW });
    for (const time of [`${seconds + 61}`, '""', 'null', '17', '"2026-09-01T12:00:00"', '"today"', '9999999999999'])
      expect(at(time), time).toMatchObject({ kind: 'refused', reason: expect.stringContaining('no past time') });
    const old = { kind: 'refused', reason: expect.stringContaining('2026-09-01T11:29:59.000Z, which is too old') };
    expect(at(`${seconds - 1801}`)).toMatchObject(old);
    expect(at(`${seconds - 1800}`)).toMatchObject({ kind: 'ok' });
  });

  test('a rate is current up to its limit, and not where it is of the future', () => {
    const current = (ageMs: number) => isCurrentRate(unixMs(NOW - ageMs), { maxAgeMs: 60_000 }, NOW);
    expect([0, 60_000, 60_001, -60_000, -60_001].map(current)).toEqual([true, true, false, true, false]);
    expect(isCurrentRate(unixMs(NOW + 60_001), { maxAgeMs: 600_000 }, NOW)).toBe(false);
  });
});

test('whatever a source answers, there is a rate within the bounds, or a reason', () => {
  const leaf = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constantFrom('{"r":7.1,"t":1788264000}', '{"r":"7"}', '[7,{"r":7}]'),
  );
  const pointers = fc.constantFrom('/r', '/0', '/1/r', '/~1', '/__proto__/r');
  fc.assert(
    fc.property(leaf, pointers, fc.option(pointers), (answer, path, timePath) => {
      const found = read(answer, { path, timePath });
      if (found.kind === 'refused') expect(found.reason.length).toBeLessThan(300);
      else {
        expect(found.rateMicro >= 6_500_000n && found.rateMicro <= 8_000_000n).toBe(true);
        expect(isCurrentRate(found.at, SOURCE, NOW)).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});
