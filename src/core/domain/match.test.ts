import { expect, test } from 'vitest';
import { matchTransfer } from './match.ts';

test('a transfer that no invoice reserves is unmatched', () => {
  expect(matchTransfer(null)).toEqual({ kind: 'unmatched' });
});

test.each(['PENDING', 'CONFIRMING', 'EXPIRED'] as const)('a transfer of a %s invoice’s amount pays it', (status) => {
  expect(matchTransfer({ invoiceId: 'x', status })).toEqual({ kind: 'matched' });
});

test('a second transfer of a paid invoice’s amount is a duplicate', () => {
  expect(matchTransfer({ invoiceId: 'x', status: 'PAID' })).toEqual({ kind: 'duplicate' });
});
