import fc from 'fast-check';
import { expect, test } from 'vitest';
import { microUsdt } from './money.ts';
import { findRefund, noteProblem, RESOLUTIONS, type Refundable, readResolution, type SentBack } from './resolution.ts';

test('what can be done about a transfer is one of four', () => {
  expect(RESOLUTIONS).toEqual(['refunded', 'fulfilled-manually', 'own-deposit', 'kept']);
  expect(RESOLUTIONS.map(readResolution)).toEqual(RESOLUTIONS);
  expect(['paid', '', 'Kept', 'toString'].map(readResolution)).toEqual([null, null, null, null]);
});

test('a former name means the resolution that has another name now', () => {
  expect(['credited-outside', 'ignored'].map(readResolution)).toEqual(['fulfilled-manually', 'kept']);
});

test('a note has up to 2000 characters, each counted once', () => {
  for (const note of ['', 'x', 'é 漢字 🍵 — “quoted”', '🍵'.repeat(2000)]) expect(noteProblem(note)).toBeNull();
  expect(noteProblem('🍵'.repeat(2001))).toBe('has 2001 characters: use at most 2000');
});

test.each(['a\nb', '\t', '\0', '\u007f', '\u0085', '\u2028', '\u2029', '\ud83d'])(
  'a note with %j is not one line',
  (note) => {
    expect(noteProblem(`refunded ${note}`)).toBe(
      'contains a control character, such as a line break: write it on one line',
    );
  },
);

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
