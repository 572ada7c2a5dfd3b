import { expect, test } from 'vitest';
import { clip, quote, quoteWhole } from './problems.ts';

test('a value stands in quotes, and is cut after 60 characters unless it is wanted whole', () => {
  expect(quote('a "b"')).toBe('"a \\"b\\""');
  expect(clip('x'.repeat(61))).toBe(`"${'x'.repeat(60)}…"`);
  expect(quoteWhole('x'.repeat(61))).toBe(`"${'x'.repeat(61)}"`);
});

test.each([
  ['\u001b[2J', '\\u001b[2J'],
  ['\u009b2J', '\\u009b2J'],
  ['\u007f', '\\u007f'],
  ['a\u202eb', 'a\\u202eb'],
  ['\u{e0041}', '\\udb40\\udc41'],
  ['\n', '\\n'],
  ['\\u009b', '\\\\u009b'],
  ['Zoë 店 𝄞', 'Zoë 店 𝄞'],
])('what could control a terminal is escaped once, and nothing is lost: %j', (text, shown) => {
  for (const each of [clip(text), quote(text)]) {
    expect(each).toBe(`"${shown}"`);
    expect(JSON.parse(each)).toBe(text);
  }
});
