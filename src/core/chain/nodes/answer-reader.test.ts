import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createAnswerReader } from './http-client.ts';
import { type JsonShape, NotJson } from './json-reader.ts';

const PLENTY = 64 * 1024 * 1024;
/** Answers of less are parsed at once. */
const LARGE = 'x'.repeat(600 * 1024);

function read(text: string, { shape = {}, size = 64 * 1024, most = PLENTY }: Options = {}): unknown {
  const reader = createAnswerReader(shape, most);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return reader.end();
}
type Options = { shape?: JsonShape; size?: number; most?: number };

test('whatever JSON an answer is, and however it is cut, it is read as JSON.parse reads it', () => {
  const answers = fc.oneof(
    fc.jsonValue(),
    fc.array(fc.jsonValue()),
    fc.record({ a: fc.jsonValue(), block: fc.array(fc.jsonValue()), b: fc.jsonValue() }),
    fc.record({ block: fc.array(fc.dictionary(fc.string(), fc.jsonValue())) }),
  );
  const texts = fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', '\\"', '€', '\u{1f600}');
  const property = fc.property(
    answers,
    fc.array(texts, { maxLength: 12 }),
    fc.integer({ min: 1, max: 40 }),
    (value, parts, size) => {
      // In front, so that all that comes behind it is read as an answer that is large.
      const whole =
        typeof value === 'object' && value !== null && !Array.isArray(value)
          ? { ...value, odd: parts.join('') }
          : [value, { odd: parts.join('') }];
      const text = JSON.stringify(whole);
      const front = Array.isArray(whole) ? `["${LARGE}",` : `{"large":"${LARGE}",`;
      const large = front + text.slice(1);
      const reader = createAnswerReader({}, PLENTY);
      reader.push(Buffer.from(front));
      const rest = Buffer.from(text.slice(1));
      for (let at = 0; at < rest.length; at += size) reader.push(rest.subarray(at, at + size));
      expect(reader.end()).toEqual(JSON.parse(large));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

const blocks = Array.from({ length: 40 }, (_, number) => ({ number, raw: LARGE.slice(0, 30_000) }));
const numberOf = (block: unknown) => (block as { number: number }).number;

test.each([
  ['large', blocks],
  ['small', blocks.slice(0, 2)],
])('of a %s answer only the part that is wanted of each element is kept', (_, list) => {
  const expected = { id: 1, block: list.map(({ number }) => number) };
  expect(read(JSON.stringify({ id: 1, block: list }), { shape: { elements: { block: numberOf } } })).toEqual(expected);
  expect(read(JSON.stringify(list), { shape: { elements: { '': numberOf } } })).toEqual(expected.block);
});

test('an element is parsed when it has come, not with the last one', () => {
  let seen = 0;
  const reader = createAnswerReader({ elements: { block: () => (seen += 1) } }, PLENTY);
  const text = Buffer.from(JSON.stringify({ block: blocks }));
  reader.push(text.subarray(0, text.length / 2));
  expect(seen).toBeGreaterThan(15);
});

test('an answer with more values than may be held is read in pieces, and keeps what is wanted', () => {
  const many = { block: [{ number: 7, junk: Array.from({ length: 300_000 }, () => ({})) }] };
  const shape: JsonShape = { skipped: { block: new Set(['junk']) } };
  expect(read(JSON.stringify(many), { shape, most: 1024 * 1024 })).toEqual({ block: [{ number: 7 }] });
});

test('elements that were parsed before it was known how many values there are keep their places', () => {
  const few = Array.from({ length: 20 }, (_, number) => ({ number, raw: LARGE.slice(0, 40_000) }));
  const many = { number: 20, junk: Array.from({ length: 300_000 }, () => ({})) };
  const text = JSON.stringify({ id: 1, block: [...few, many, { number: 21 }] });
  const shape: JsonShape = { skipped: { block: new Set(['junk']) }, elements: { block: numberOf } };
  const expected = { id: 1, block: Array.from({ length: 22 }, (_, number) => number) };
  expect(read(text, { shape, most: 4 * 1024 * 1024 })).toEqual(expected);
});

test.each([
  ['a name stands twice', `{"block":[{"a":"${LARGE}"}],"block":[{"a":1}]}`],
  ['an element is no JSON', `{"block":[{"a":"${LARGE}"},{a:1}]}`],
  ['a bracket is missing', `{"block":[{"a":"${LARGE}"}]`],
  ['there is one too many', `{"block":[{"a":"${LARGE}"}]]}`],
  ['brackets are closed that were never open', `]]]]${LARGE}`],
  ['a text does not end', `["${LARGE}`],
])('where %s, it is not JSON', (_, text) => {
  expect(() => read(text)).toThrow(NotJson);
});
