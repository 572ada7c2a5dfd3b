import type { LookupAnswer } from '../../src/core/domain/lookup/lookup.ts';

const PLACED = { blockNumber: 68_123_456, blockTime: '2026-09-01T12:10:00.000Z' };
const EXACT = { ...PLACED, amount: '123456.990007' };
const WRONG = { ...PLACED, arrived: '123455.990007', expected: '123456.990007', by: '1.000000' };
const TX = 'b4'.repeat(32);
const CONTRACT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';

const LIKELY = [
  null,
  { kind: 'requested_amount' },
  { kind: 'fee' },
  { kind: 'rounded', decimals: 2 },
  { kind: 'truncated', decimals: 1 },
  { kind: 'one_digit' },
  { kind: 'swapped_digits' },
] as const;

/** One answer of every kind that looking up a transaction can give, with every detail that has its own wording. */
export const LOOKUP_ANSWERS: readonly LookupAnswer[] = [
  { code: 'paid', ...EXACT },
  { code: 'confirming', ...EXACT, confirmations: 3, required: 19, earlierTransaction: null },
  { code: 'confirming', ...EXACT, confirmations: 3, required: 19, earlierTransaction: TX },
  { code: 'exact_but_already_paid', ...EXACT, paidBy: TX },
  { code: 'exact_but_already_paid', ...EXACT, paidBy: null },
  { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: null },
  { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: TX },
  { code: 'exact_not_confirmed', ...EXACT, checkAgainSeconds: 60 },
  { code: 'exact_not_recorded', ...EXACT },
  { code: 'before_invoice', ...EXACT, invoiceCreatedAt: '2026-09-01T12:00:00.000Z' },
  ...(['short', 'over'] as const).flatMap((code) => LIKELY.map((likely) => ({ code, ...WRONG, likely }))),
  { code: 'orphaned', checkAgainSeconds: 60 },
  { code: 'other_address', ...PLACED, to: CONTRACT, amount: '5.000000' },
  { code: 'other_token', ...PLACED, contract: CONTRACT },
  ...(['out_of_energy', 'out_of_time', 'reverted', 'other'] as const).map(
    (why) => ({ code: 'failed', ...PLACED, why, result: 'BAD_JUMP_DESTINATION', wasSighted: false }) as const,
  ),
  { code: 'no_usdt_transfer', ...PLACED, moved: 'trx', amountTrx: '12.500000', toAddress: true },
  { code: 'no_usdt_transfer', ...PLACED, moved: 'trx', amountTrx: '12.500000', toAddress: false },
  ...(['trc10', 'other_token', 'nothing', 'unknown'] as const).map(
    (moved) => ({ code: 'no_usdt_transfer', ...PLACED, moved, amountTrx: null, toAddress: false }) as const,
  ),
  { code: 'not_found', checkAgainSeconds: 60 },
  { code: 'other_network', network: 'shasta' },
  ...(['ethereum', 'bsc', 'polygon', 'solana', 'ton'] as const).map(
    (looksLike) => ({ code: 'not_tron', looksLike }) as const,
  ),
  ...(['address', 'part-of-an-id', 'link', 'other'] as const).map(
    (looksLike) => ({ code: 'not_a_transaction_id', looksLike, characters: 12 }) as const,
  ),
  { code: 'unavailable', checkAgainSeconds: 5 },
];
