import fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvLine } from './write-rows.ts';

/** Reads a cell as a program does: without the surrounding quotes, and with doubled quotes as one. */
function readCell(line: string): string {
  const text = line.replace(/\r\n$/, '');
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}

/** Mostly the dangerous characters, in any order. */
const hostileText = fc
  .array(
    fc.oneof(
      fc.constantFrom(...'=+-@＝＋－＠﹦﹢﹣﹫−;,"\'\t\r\n \u00a0\u200b\u202e\ufeffa1'),
      fc.string({ maxLength: 3 }),
    ),
    {
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(''));

test('whatever a text holds, no program sees a formula start in it, at its beginning or after a separator', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      for (const part of readCell(csvLine([text])).split(/[;\t\r\n]/)) {
        expect(part.normalize('NFKC')).not.toMatch(/^[\s\p{C}]*[=+\-@−]/u);
      }
    }),
    { numRuns: 2000 },
  );
});

test('but for the apostrophes before formulas, the text comes back as it was, and stays one cell', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const line = csvLine([text, 'next']);
      expect(line.endsWith(',next\r\n')).toBe(true);
      const cell = line.slice(0, -',next\r\n'.length);
      expect(/^"(?:[^"]|"")*"$|^[^",;\r\n\t]*$/.test(cell)).toBe(true);
      expect(readCell(`${cell}\r\n`).replaceAll("'", '')).toBe(text.replaceAll("'", ''));
    }),
    { numRuns: 2000 },
  );
});

test.each([
  [['plain', 25, null, '25.000009'], 'plain,25,,25.000009\r\n'],
  [['=1+1', '-5', '\t=x'], "'=1+1,'-5,\"'\t'=x\"\r\n"],
  [['say "hi"', 'a,b', 'a;=1', ' space'], '"say ""hi""","a,b","a;\'=1"," space"\r\n'],
  [['order-1', 'a=b', "it's"], "order-1,a=b,it's\r\n"],
])('%j is written as %j', (cells, line) => {
  expect(csvLine(cells)).toBe(line);
});
