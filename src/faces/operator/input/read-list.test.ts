import { expect, test } from 'vitest';
import { isCsv, readCsvAddresses } from './readers.ts';

const [A, B] = ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK'];
const C = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8';
const read = (text: string) => readCsvAddresses(text, 'f.csv');

test.each([
  ['a column named address, wherever it stands', `label,Address\ntill 1,${A}\n"till, 2",${B}\n`, 2],
  ['semicolons, and Windows', `label;address\r\ntill 1;${A}\r\ntill 2;${B}\r\n`, 2],
  ['tabs', `address\tlabel\n${A}\ttill 1\n${B}\ttill 2`, 1],
  ['empty cells at the end of rows', `label,address\ntill 1,${A},,\n,${B}\n`, 2],
  ['empty cells at the end of the heading', `label,address,,\ntill 1,${A}\n,${B},,,\n`, 2],
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
  ['two columns without a heading', `${A},${B}\n${B},${A}`, 'line 1 of f.csv: it has 2 columns'],
  ['labels without a heading', `${A}\n${B},till`, 'line 2 of f.csv: it has 2 columns'],
  ['an empty cell before an address', `,${A}`, 'line 1 of f.csv: it has 2 columns'],
  ['ours in short form, and a whole one beside it', `TUEZSd…hGWYdH,${B}`, 'line 1 of f.csv: it has 2 columns'],
  [
    'ours in hex, and a whole one beside it',
    `41a614f803b6fd780986a42c78ec9c7f77e6ded13c,${B}`,
    'no heading is "address"',
  ],
  ['a heading of another name', `wallet,label\n${A},x`, 'but no heading is "address"'],
  ['two columns named address', `address,x,Address\n${A},1,${B}`, 'line 1 of f.csv: 2 columns are named "address"'],
  ['a cell too few', `label,address,payer\nx,${A},${B}\n${A},${C}`, 'line 3 of f.csv: it has 2 cells,'],
  ['a cell too many', `label,address\ntill 1, left,${A}`, 'line 2 of f.csv: it has 3 cells,'],
  ['a cell too many behind the address', `address\n${A},${B}`, 'but the heading in line 1 has 1'],
  ['no cell for the address', 'label,address\nx', 'line 2 of f.csv: it has 1 cells,'],
  ['an open quote', `address,label\n${A},"x`, 'line 2 of f.csv: a cell starts'],
])('%s: refused, and the message says where to look', (_what, text, message) => {
  expect(() => read(text)).toThrow(message);
});

test('a long heading without "address" is not taken for a seed phrase', () => {
  const heading = 'Account,Label,Created,Owner,Branch,Street,City,Region,Country,Phone,Email,Remark';
  expect(() => read(`${heading}\n${A}${',x'.repeat(11)}`)).toThrow('line 1 of f.csv: it has 12 columns');
});

test('a cell that is no address stays in its place, to be refused by line and column', () => {
  const entries = read(`address,label\n${A},x\nnonsense,y\n,z`);
  expect(entries).toContainEqual({ text: 'nonsense', place: 'line 3, column 1 of f.csv' });
  expect(entries).toContainEqual({ text: '', place: 'line 4, column 1 of f.csv' });
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
    '"the wallet that we use for the shop in the old town, on the left"',
  ];
  const rows = Array.from({ length: 24 }, (_, index) => `${A},${labels[index] ?? 'counter'}`);
  expect(read(`address,label\n${rows.join('\n')}`)).toHaveLength(24);
});
