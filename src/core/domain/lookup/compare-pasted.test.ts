import { expect, test } from 'vitest';
import { comparePasted } from './compare-pasted.ts';

const ADDRESS = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY';

test.each([
  [ADDRESS, 'same'],
  [` ${ADDRESS}\n`, 'same'],
  [`\u200e${ADDRESS}\ufeff`, 'same'],
  [`\u200b \u2060${ADDRESS}\u200f\t\n`, 'same'],
  [`${ADDRESS.slice(0, 5)} ${ADDRESS.slice(5)}`, 'no-address'],
  [`to ${ADDRESS}`, 'no-address'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'other'],
  // One letter differs, so the checksum does not fit.
  ['TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZX', 'no-address'],
  [ADDRESS.toLowerCase(), 'no-address'],
  [ADDRESS.slice(0, -1), 'no-address'],
  [`${ADDRESS} ${ADDRESS}`, 'no-address'],
  ['0xdAC17F958D2ee523a2206206994597C13D831ec7', 'no-address'],
  ['', 'no-address'],
])('%j is %s', (pasted, expected) => {
  expect(comparePasted(ADDRESS, pasted)).toBe(expected);
});
