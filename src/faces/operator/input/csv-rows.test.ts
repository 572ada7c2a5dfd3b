import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCsvRows } from './readers.ts';

const cell = fc
  .oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'a",;\t\n\r #') }))
  .map((text) => text.replaceAll('\r', '').trim());
const table = fc
  .tuple(fc.integer({ min: 2, max: 5 }), fc.constantFrom(',', ';', '\t'), fc.constantFrom('\n', '\r\n'), fc.boolean())
  .chain(([width, delimiter, lineBreak, isEnded]) =>
    fc.record({
      rows: fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }),
      delimiter: fc.constant(delimiter),
      lineBreak: fc.constant(lineBreak),
      isEnded: fc.constant(isEnded),
    }),
  );

test('whatever cells hold, a table that is written with quotes reads back', () => {
  fc.assert(
    fc.property(table, ({ rows, delimiter, lineBreak, isEnded }) => {
      const lines = rows.map((cells) => cells.map((each) => `"${each.replaceAll('"', '""')}"`).join(delimiter));
      const read = readCsvRows(lines.join(lineBreak) + (isEnded ? lineBreak : ''));
      if (read.kind !== 'ok') throw new Error(read.reason);
      expect(read.rows.map(({ cells }) => cells)).toEqual(rows.filter((cells) => cells.some((each) => each !== '')));
    }),
  );
});

test('plain cells need no quotes, and lines are counted through quoted line breaks', () => {
  const read = readCsvRows('# shop\r\na, b \r\n"x\r\ny",z\r\n\r\n,last\r\n');
  expect(read).toEqual({
    kind: 'ok',
    rows: [
      { cells: ['a', 'b'], line: 2 },
      { cells: ['x\r\ny', 'z'], line: 3 },
      { cells: ['', 'last'], line: 6 },
    ],
  });
});

test('a quote that never ends, and text after one that does, are refused with their line', () => {
  expect(readCsvRows('a,b\nc,"d\ne')).toEqual({
    kind: 'invalid',
    line: 2,
    reason: expect.stringContaining('never closed'),
  });
  expect(readCsvRows('a,b\n"c"d,e')).toMatchObject({ kind: 'invalid', line: 2 });
});
