import fc from 'fast-check';
import { expect, test } from 'vitest';
import { microUsdt } from './money.ts';
import { findRefund, type Refundable, type SentBack } from './refund.ts';

const came: Refundable = { from: 'T-payer', amountMicro: microUsdt(24_000_000n), blockNumber: 100 };
const back: SentBack = {
  ...{ to: 'T-payer', amountMicro: microUsdt(24_000_000n), blockNumber: 101, stands: true, refundOf: null },
};
const kindOf = (...left: SentBack[]) => findRefund(came, left);

test('what goes back to the sender in a later block, of exactly its amount, is the refund', () => {
  expect(kindOf(back)).toEqual({ kind: 'found', sent: back });
  const other = { ...back, to: 'T-other' };
  expect(kindOf(other, { ...back, refundOf: 'trf_1' }, back)).toEqual({ kind: 'found', sent: back });
});

test('what is none is told by its nearest miss', () => {
  expect(kindOf()).toEqual({ kind: 'none-left' });
  expect(kindOf({ ...back, stands: false })).toEqual({ kind: 'denied' });
  expect(kindOf({ ...back, to: 'T-1' }, { ...back, to: 'T-2' }, { ...back, to: 'T-1' })).toEqual({
    ...{ kind: 'other-recipient', recipients: ['T-1', 'T-2'] },
  });
  const less = { ...back, amountMicro: microUsdt(23_000_000n) };
  expect(kindOf(less)).toEqual({ kind: 'other-amount', differenceMicro: -1_000_000n });
  const early = { ...back, blockNumber: 100 };
  expect(kindOf(early)).toEqual({ kind: 'too-early', sent: early });
  expect(kindOf({ ...back, refundOf: 'trf_1' })).toEqual({ kind: 'taken', refundOf: 'trf_1' });
});

test('whatever left, a refund is to the sender, of the amount, later, standing and free; and where one is, it is found', () => {
  const sent = fc.record({
    to: fc.constantFrom('T-payer', 'T-other'),
    amountMicro: fc.constantFrom(23_000_000n, 24_000_000n).map(microUsdt),
    blockNumber: fc.integer({ min: 98, max: 102 }),
    stands: fc.boolean(),
    refundOf: fc.constantFrom(null, 'trf_1'),
  });
  const isRefund = ({ to, amountMicro, blockNumber, stands, refundOf }: SentBack) =>
    to === came.from && amountMicro === came.amountMicro && blockNumber > 100 && stands && refundOf === null;
  fc.assert(
    fc.property(fc.array(sent, { maxLength: 6 }), (left) => {
      const found = findRefund(came, left);
      expect(found.kind === 'found' ? found.sent : undefined).toEqual(left.find(isRefund));
    }),
  );
});
