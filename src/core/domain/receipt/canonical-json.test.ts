import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from './canonical-json.ts';

test('members are in the order of RFC 8785, section 3.2.3', () => {
  const value = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  const order = [...canonicalJson(value).matchAll(/:"(.*?)"/g)].map(([, text]) => text);
  expect(order).toEqual([
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ]);
});

test('texts are written as in RFC 8785, section 3.2.2', () => {
  expect(canonicalJson('\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
  expect(() => canonicalJson('\ud83d')).toThrow('a text contains an unpaired surrogate');
  expect(() => canonicalJson({ '\udead': 1 })).toThrow('surrogate');
});

test('only safe integers are numbers', () => {
  expect(canonicalJson({ zero: -0, large: Number.MAX_SAFE_INTEGER })).toBe('{"large":9007199254740991,"zero":0}');
  for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    expect(() => canonicalJson(value)).toThrow(`${value} is not a safe integer`);
  }
});

test('the form depends on the value alone, and is JSON of it', () => {
  const leaf = fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger());
  const members = fc.array(fc.tuple(fc.string(), fc.oneof(leaf, fc.dictionary(fc.string(), leaf))), { maxLength: 8 });
  fc.assert(
    fc.property(members, (entries) => {
      const unique = [...new Map(entries)];
      const text = canonicalJson(Object.fromEntries(unique));
      expect(canonicalJson(Object.fromEntries(unique.toReversed()))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(unique))));
    }),
  );
});
