import { expect, test } from 'vitest';
import { readLengthLimit } from './readers.ts';

test.each(['0', '050', '501', '1e2', ' 5', '5.0', '-1', ''])(
  'a list of 1 to 500 does not take the limit "%s"',
  (text) => {
    expect(() => readLengthLimit(text, { least: 1, most: 500 })).toThrow(/use 1 to 500/);
  },
);

test('a list of 1 to 500 takes the least and the most, and one that may be empty takes 0', () => {
  expect(['1', '500'].map((text) => readLengthLimit(text, { least: 1, most: 500 }))).toEqual([1, 500]);
  expect(readLengthLimit('0', { least: 0, most: 1000 })).toBe(0);
});
