import { expect, test } from 'vitest';
import { isCsv, readCsvAddresses } from './csv.ts';

const [A, B] = ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK'];
const C = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8';
const read = (text: string) => readCsvAddresses(text, 'f.csv');

test.each([
  ['a column named address, wherever it stands', `label,Address\ntill 1,${A}\n"till, 2",${B}\n`, 2],
  ['no heading, and one column of addresses', `till 1;${A}\r\ntill 2;${B}\r\n`, 2],
  ['tabs', `${A}\ttill 1\n${B}\ttill 2`, 1],
  ['one column with a heading', `ADDRESS\n${A}\n${B}\n`, 1],
  ['a second column of addresses that has another heading', `address,payer\n${A},${B}\n${B},${A}`, 1],
  ['quoted addresses, one a line', `"${A}"\n"${B}"\n`, 1],
])('%s', (_what, text, column) => {
  expect(isCsv(text)).toBe(true);
  expect(read(text).map((entry) => entry.text)).toEqual([A, B]);
  expect(read(text)[0]?.place).toMatch(new RegExp(`^line \\d, column ${column} of f.csv$`));
});

test('one address a line is no CSV, whatever its comments hold', () => {
  expect(isCsv(`# cold, "wallet"\n${A} # a;b\n\n${B}\n`)).toBe(false);
});

test.each([
  ['two columns of addresses without headings', `${A},${B}\n${B},${A}`, 'columns 1, 2 hold addresses'],
  ['a typing mistake in one of two columns', `${A.slice(0, -1)}J,${B}\n${A},${C}`, 'columns 1, 2 hold addresses'],
  ['an empty cell in one of two columns', `,${B}\n${A},${C}`, 'columns 1, 2 hold addresses'],
  ['mistakes in all of a column', `${A.slice(0, -1)}J,${B}`, 'columns 1, 2 hold addresses'],
  ['two columns named address', `address,x,Address\n${A},1,${B}`, 'line 1 of f.csv: 2 columns are named "address"'],
  [
    'a heading of another name',
    `wallet,label\n${A},x`,
    'line 1, column 1 of f.csv: this looks like a heading: name it "address"',
  ],
  ['no column of addresses', 'a,b\nc,d', 'none of its 2 columns'],
  ['an open quote', `address,label\n${A},"x`, 'line 2 of f.csv: a cell opens'],
])('%s: refused, and the message says where to look', (_what, text, message) => {
  expect(() => read(text)).toThrow(message);
});

test('a cell that is no address stays in its place, to be refused by line and column', () => {
  expect(read(`${A},x\nnonsense,y\n${B},z`)).toContainEqual({ text: 'nonsense', place: 'line 2, column 1 of f.csv' });
  expect(read(`label,address\nx`)).toEqual([{ text: '', place: 'line 2, column 2 of f.csv' }]);
});

const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow'.split(' ');

test.each([
  ['a private key beside an address', `address,key\n${A},${'4f'.repeat(32)}`, 'line 2, column 2 of f.csv'],
  ['a seed phrase in one row', WORDS.join(','), 'f.csv'],
  ['a seed phrase in a column', WORDS.map((word, index) => `${index + 1},${word}`).join('\n'), 'f.csv'],
  [
    'a seed phrase in rows below a title',
    `my wallet,,\n${WORDS.join(',').replace(/(\w+,\w+,\w+),/g, '$1\n')}`,
    'f.csv',
  ],
  ['a seed phrase in a label', `address,label\n${A},${WORDS.join(' ')}`, 'line 2, column 2 of f.csv'],
  ['a private key in a comment', `# ${'4f'.repeat(32)}\naddress,label\n${A},x`, 'line 1 of f.csv'],
  ['an extended private key in a heading', `xprv9${'s'.repeat(106)},b`, 'line 1, column 1 of f.csv'],
])('%s comes out alone, to be refused as a secret', (_what, text, place) => {
  expect(read(text).map((entry) => entry.place)).toEqual([place]);
});

test('labels are no seed phrase, however many rows there are, and may name a transaction', () => {
  const labels = [
    'till',
    `funded in tx ${'4f'.repeat(32)}`,
    'the wallet that we use for the shop in the old town, on the left',
  ];
  const rows = Array.from({ length: 24 }, (_, index) => `${A},${labels[index] ?? 'counter'}`);
  expect(read(`address,label\n${rows.join('\n')}`)).toHaveLength(24);
  expect(read(rows.join('\n'))).toHaveLength(24);
});
