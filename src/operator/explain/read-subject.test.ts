import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeId } from '../../domain/ids.ts';
import { readSubject } from './read-subject.ts';

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
    ['trf_01m1e6vr70e038000000000000', 'a transfer is told by "transfers show"'],
    [TXID.slice(1), 'this has 63'],
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
