import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { expect, test } from 'vitest';
import { readSent, wholeTransaction } from './hidden-fields.ts';

/** raw_data 0a01ff, a signature of two bytes. */
const SIGNED = '0a030a01ff1202abcd';

/** What a block holds of a transaction that succeeded. */
const mined = (hex: string): string | null => {
  const sent = readSent(hexToBytes(hex));
  if (sent === null) return null;
  const signatures = sent.signatures.map((each) => bytesToHex(each));
  return bytesToHex(
    wholeTransaction({ rawDataHex: bytesToHex(sent.rawData), signatures, contractRet: 1, hidden: sent.hidden }),
  );
};

test.each([
  ['nothing is appended', '', '2a021801'],
  ['an unknown field of the Transaction stays, behind the Result', '3001', '2a0218013001'],
  ['an unknown field of the Result stays, behind contractRet', '2a03d03e01', '2a051801d03e01'],
  ['an order id stays', '2a05ca01026f72', '2a071801ca01026f72'],
  ['an integer of ten bytes stays', '2a0b78ffffffffffffffffff01', '2a0d180178ffffffffffffffffff01'],
  ['a fee and a code stand before contractRet', '2a0410010807', '2a06080710011801'],
  ['the outcome that a sender claims is replaced, and a Result without fields is filled', '2a0218022a00', '2a021801'],
  ['further Results are dropped', '2a0208072a020808', '2a0408071801'],
  ['known fields are put in order, and what is unknown behind them', '2a07d03e0178050809', '2a09080918017805d03e01'],
  [
    'of a field that stands twice the last one holds, and zero is not written',
    '2a09080108027800a00100',
    '2a0408021801',
  ],
])('%s', (_, appended, kept) => {
  expect(mined(SIGNED + appended)).toBe(SIGNED + kept);
});

test('bytes that are no Transaction are refused', () => {
  expect(mined('0a05ff')).toBeNull();
  expect(mined('3001')).toBeNull();
});
