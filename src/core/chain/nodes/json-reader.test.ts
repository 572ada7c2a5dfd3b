import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createJsonReader, type JsonShape, NotJson, TooMuchJson } from './json-reader.ts';

const PLENTY = 64 * 1024 * 1024;

function read(text: string | Uint8Array, shape: JsonShape = {}, { pieces = 1, maxHeldBytes = PLENTY } = {}): unknown {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const reader = createJsonReader(shape, maxHeldBytes);
  const size = Math.max(1, Math.ceil(bytes.length / pieces));
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return reader.end();
}

test('whatever JSON.stringify writes is read as JSON.parse reads it, in pieces of any size', () => {
  const json = fc.jsonValue({ stringUnit: 'binary' }).filter((value) => !JSON.stringify(value).includes('__proto__'));
  fc.assert(
    fc.property(json, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 2 }), (value, pieces, indent) => {
      const text = JSON.stringify(value, null, indent);
      const parsed = JSON.parse(text);
      expect(read(text, {}, { pieces })).toEqual(parsed);
    }),
  );
});

test('what JSON.parse refuses is refused', () => {
  const noise = fc.string({ unit: fc.constantFrom(...'{}[],:"\\ 0-1e.atruefalsn'), maxLength: 12 });
  fc.assert(
    fc.property(noise, fc.integer({ min: 1, max: 12 }), (text, pieces) => {
      let parsed: { value: unknown } | null = null;
      try {
        parsed = { value: JSON.parse(text) };
      } catch {
        expect(() => read(text, {}, { pieces })).toThrow(NotJson);
      }
      if (parsed !== null) expect(read(text, {}, { pieces })).toEqual(parsed.value);
    }),
    { numRuns: 3000 },
  );
});

test('members that are skipped, and texts that are too long, are not there', () => {
  const text = '{"a":{"drop":[{"x":1}],"keep":"12345"},"drop":1,"long":"123456","b":[{"drop":{},"keep":2}]}';
  const skipped = { a: new Set(['drop']), b: new Set(['drop']) };
  const kept = { a: { keep: '12345' }, drop: 1, long: null, b: [{ keep: 2 }] };
  expect(read(text, { skipped, maxTextBytes: 5 })).toEqual(kept);
});

test('elements of an array become what is kept of them, in order', () => {
  const elements = {
    '': (info: unknown) => (info as { log: unknown[] }).log,
    log: (log: unknown) => ((log as { a: number }).a === 1 ? log : null),
  };
  expect(read('[{"log":[{"a":1},{"a":2}]},{"log":[]}]', { elements })).toEqual([[{ a: 1 }, null], []]);
});

test.each([
  ['empty objects', '{},'],
  ['empty arrays', '[],'],
  ['numbers', '1,'],
  ['objects in objects', '{"a":{"a":{"a":1}}},'],
])('a flood of %s ends as soon as it would take more memory than allowed', (_what, unit) => {
  const reader = createJsonReader({}, 1024 * 1024);
  const chunk = Buffer.from(unit.repeat(16_384));
  reader.push(Buffer.from('['));
  expect(() => {
    for (let sent = 0; sent < 100; sent += 1) reader.push(chunk);
  }).toThrow(TooMuchJson);
});

test('brackets that open ever deeper are refused', () => {
  expect(() => read('['.repeat(100_000))).toThrow('nested too deep');
});

test('what is skipped takes no memory, however much it is', () => {
  const flood = `{"skip":[${'{"a":["b"]},'.repeat(100_000)}1],"kept":1}`;
  expect(read(flood, { skipped: { '': new Set(['skip']) } }, { pieces: 50, maxHeldBytes: 10_000 })).toEqual({
    kept: 1,
  });
});

test('a text full of escapes is read in time that grows with its length', () => {
  const text = `"${'\\"'.repeat(1_000_000)}"`;
  expect(read(text, {}, { pieces: 100 })).toBe('"'.repeat(1_000_000));
});

test('a member named __proto__ changes nothing', () => {
  const value = read('{"__proto__":{"Error":"x"},"a":1}');
  expect(value).toEqual({ a: 1 });
  expect('Error' in (value as object)).toBe(false);
});
