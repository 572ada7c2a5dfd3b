import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJsonObject } from './json-body.ts';

const read = (text: string) => readJsonObject(Buffer.from(text));

/** Values whose text contains everything that may confuse a parser of keys, at any depth. */
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>('"', '\\', '\\"', '{"a":1', ',"a":', '}', ']', { a: { a: 1 }, b: [{ a: 1 }] }, [
    'a',
    'b',
    '{',
  ]),
);
const key = fc.oneof(fc.constantFrom('a', 'b', '', '"', '\\', 'a"', '{', '\u00e9', '__proto__'), fc.string());

/** Writes a text as JSON. `isEscaped`: with every UTF-16 unit escaped. */
function spelt(text: string, isEscaped: boolean): string {
  if (!isEscaped) return JSON.stringify(text);
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, '0'));
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`;
}

test('every key that occurs twice in the object is named once, however it is spelt, and no other', () => {
  const member = fc.record({ key, value, isEscaped: fc.boolean(), space: fc.constantFrom('', ' ', '\n\t') });
  fc.assert(
    fc.property(fc.array(member, { maxLength: 8 }), (members) => {
      const texts = members.map(
        ({ key, value, isEscaped, space }) =>
          `${space}${spelt(key, isEscaped)}${space}:${space}${JSON.stringify(value)}`,
      );
      const keys = members.map((each) => each.key);
      const twice = [...new Set(keys.filter((each, index) => keys.indexOf(each) !== index))];
      const body = read(`{${texts.join(',')}}`);
      expect(body).toMatchObject({ kind: 'ok' });
      if (body.kind === 'ok') expect([...body.duplicateKeys].sort()).toEqual(twice.sort());
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{"metadata":{"a":1,"b":2,"a":3},"a":1}', ['metadata.a']],
  ['{"a":1,"b":{"a":{"a":1,"c":"a","a":2}},"a":[]}', ['b.a.a', 'a']],
  ['{"b":["a","a",{"a":1},[{"x":1,"x":{"y":1,"y":2}}]]}', ['b.3.0.x', 'b.3.0.x.y']],
  ['{"b":[{"a":1,"a":2},{"a":1,"a":2},{"a":1}],"c":[{"a":1}]}', ['b.0.a', 'b.1.a']],
  ['{"a":{"":{"x":1,"x":1}}}', ['a..x']],
])('of %s the keys that occur twice are named by their paths', (text, paths) => {
  expect(read(text)).toMatchObject({ kind: 'ok', duplicateKeys: paths });
});

test('of a long path the beginning is named, so that thousands of keys within it are no burden', () => {
  const keys = Array.from({ length: 1000 }, (_, n) => `"${n}":1,"${n}":1`).join();
  const body = read(`{"${'p'.repeat(5000)}":{"q":{${keys}}}}`);
  const paths = Array.from({ length: 1000 }, (_, n) => `${'p'.repeat(100)}.${n}`);
  expect(body).toMatchObject({ kind: 'ok', duplicateKeys: paths });
});

test('the value is what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.dictionary(key, value), fc.constantFrom(0, 1, '\t'), (given, indent) => {
      const text = JSON.stringify(given, null, indent);
      expect(read(text)).toEqual({ kind: 'ok', value: JSON.parse(text), duplicateKeys: [] });
    }),
  );
});

test.each([
  ['', 'The body is empty; send one JSON object.'],
  ['{', /^The body is not JSON: ./],
  ['\ufeff{}', /byte order mark/],
  ["{'a':1}", /^The body is not JSON: ./],
])('%j is not JSON', (text, detail) => {
  expect(read(text)).toEqual({
    kind: 'invalid-json',
    detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
  });
});

test('bytes that are not UTF-8 are not JSON, also where only a text holds them', () => {
  expect(readJsonObject(Buffer.from('{"a":"\xff"}', 'latin1'))).toEqual({
    kind: 'invalid-json',
    detail: 'The body is not UTF-8.',
  });
});

test('how a body is not JSON is told in 200 characters at most', () => {
  const body = read(`{"a":${'x'.repeat(5000)}`);
  expect(body.kind === 'invalid-json' && body.detail.length <= 'The body is not JSON: '.length + 200).toBe(true);
});

test.each([
  ['null', 'null'],
  ['[]', 'an array'],
  ['"{}"', 'a string'],
  ['25', 'a number'],
  ['true', 'a boolean'],
])('%s is no object', (text, seen) => {
  expect(read(text)).toEqual({ kind: 'not-an-object', detail: `The body is ${seen}; send one JSON object.` });
});
