import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeId } from '../../../core/domain/ids.ts';
import { readSearch, readSubject } from './explain.ts';

const UUID = '01912345-6789-7abc-8def-0123456789ab';
const TXID = '0ca17a0da65cb2df52be4e5edd8654358f7ad2b6f083180e719784ff8ff1c8ae';
const ADDRESS = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

describe('what is asked about', () => {
  test.each([[encodeId('inv', UUID)], [` ${encodeId('inv', UUID)}\n`], [encodeId('inv', UUID).toUpperCase()]])(
    '%j is an invoice id',
    (text) => {
      expect(readSubject(text)).toEqual({ text, form: 'invoice', id: UUID });
    },
  );

  test.each([
    [TXID, false],
    [TXID.toUpperCase(), false],
    [`0x${TXID}`, true],
    [`https://tronscan.org/#/transaction/${TXID}`, false],
    [`https://nile.tronscan.org/#/transaction/${TXID}?lang=en`, false],
  ])('%s is a transaction id', (text, hasEthereumPrefix) => {
    expect(readSubject(text)).toEqual({ text, form: 'transaction', txId: TXID, hasEthereumPrefix });
  });

  test.each([[ADDRESS], [`https://tronscan.org/#/address/${ADDRESS}/transfers`]])('%s is an address', (text) => {
    expect(readSubject(text)).toMatchObject({ text, form: 'address', address: ADDRESS });
  });

  test.each([
    ['order-17', null],
    ['inv_123', 'an invoice id is'],
    ['trf_01m1e6vr70e038000000000000', 'for a transfer, use "transfers show"'],
    [TXID.slice(1), 'this text has 63'],
    [`${ADDRESS.slice(0, -1)}h`, 'checksum'],
    ['0x52908400098527886E0F7030069857D2E4169EE7', 'Ethereum-style'],
  ])('%j can only be an external id, and what it looks like is said', (text, hint) => {
    const subject = readSubject(text);
    if (subject.form !== 'external-id') return expect.fail(`it is taken for ${subject.form}`);
    expect(subject.text).toBe(text);
    if (hint === null) expect(subject.hint).toBeNull();
    else expect(String(subject.hint)).toContain(hint);
  });

  test('any text is read, and kept as it was given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(readSubject(text).text).toBe(text);
      }),
    );
  });
});

test.each([
  ['25', 25_000_000n, 25_009_999n],
  ['$25', 25_000_000n, 25_009_999n],
  ['25,00', 25_000_000n, 25_009_999n],
  ['25.0 USDT', 25_000_000n, 25_009_999n],
  ['２５．００', 25_000_000n, 25_009_999n],
  ['27.0079', 27_007_900n, 27_007_999n],
  ['27.007946', 27_007_946n, 27_007_946n],
  ['1,500', 1_500_000_000n, 1_500_009_999n],
  ['1,500.25', 1_500_250_000n, 1_500_259_999n],
  ['1.500,25', 1_500_250_000n, 1_500_259_999n],
  ["1'500.25 usdt", 1_500_250_000n, 1_500_259_999n],
])('%j means amounts from %d to %d', (typed, low, high) => {
  expect(readSearch(typed).amount).toEqual({ low, high });
});

test.each([
  ['#1001', '1001'],
  ['Order–1001', 'order-1001'],
  ['“Order−1001”', 'order-1001'],
  [' ORDER\u200b-1001\n', 'order-1001'],
])('%j is looked for as %j', (typed, word) => {
  expect(readSearch(typed)).toMatchObject({ word, spellings: expect.arrayContaining([word]) });
});

test.each(['0ca17a0d', '0ca17a0d…', '0CA17A0D…8ae', '0x0ca17a0d'])('%j is the start of a transaction', (typed) => {
  expect(readSearch(typed).txId).toEqual({ first: `0ca17a0d${'0'.repeat(56)}`, last: `0ca17a0d${'f'.repeat(56)}` });
});

test('any text is read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (typed) => {
      expect(readSearch(typed).spellings.length).toBeLessThanOrEqual(6);
    }),
  );
});
