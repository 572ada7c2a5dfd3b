import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MicroUsdt, microUsdt, parseAmount } from '../money.ts';
import { codeWords, wordRange } from '../policy.ts';
import { unixMs } from '../time.ts';
import {
  answerLookup,
  type LedgerFacts,
  type LikelyMistake,
  type LookupAnswer,
  type LookupInvoice,
  likelyMistake,
  type TransactionFacts,
} from './lookup.ts';

const account = (digit: string) => digit.repeat(40) as AccountHex;
const HERE = account('a');
const ELSEWHERE = account('b');
const FAKE = account('c');
const TX = '1'.repeat(64);
const OTHER_TX = '2'.repeat(64);

const INVOICE: LookupInvoice = {
  account: HERE,
  requestedMicro: microUsdt(25_000_000n),
  payableMicro: microUsdt(25_000_137n),
  status: 'PENDING',
  createdAt: unixMs(1_000_000),
  payableAfter: unixMs(997_000),
  firstSeenAt: null,
  payingTxId: null,
  wasSighted: false,
  solidNumber: 100,
  head: { number: 119, time: unixMs(1_057_000) },
  isPaused: false,
};
const head = (number: number) => ({ number, time: unixMs(700_000 + 3000 * number) });
const AT_120 = { blockNumber: 120, blockTime: unixMs(1_060_000) };
const PLACED = { blockNumber: 120, blockTime: '1970-01-01T00:17:40.000Z' };
const EXACT = { ...PLACED, amount: '25.000137' };

type Done = Extract<TransactionFacts, { kind: 'done' }>;

function done(facts: Partial<Done>): Done {
  return { kind: 'done', ...AT_120, usdt: [], otherTokens: [], trx: null, isTrc10: false, isUsdtCall: false, ...facts };
}

const sent = (amountMicro: bigint, to = HERE) => ({ to, amountMicro: microUsdt(amountMicro) });

const CASES: [
  title: string,
  invoice: Partial<LookupInvoice>,
  facts: LedgerFacts | TransactionFacts,
  answer: LookupAnswer,
][] = [
  [
    'it paid this invoice',
    { status: 'PAID', payingTxId: TX },
    { kind: 'matched', ...AT_120 },
    { code: 'paid', ...EXACT },
  ],
  [
    'it is about to pay',
    { status: 'CONFIRMING', payingTxId: TX, head: head(125) },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'confirming', ...EXACT, confirmations: 6, required: 19, earlierTransaction: null },
  ],
  [
    'it was seen long ago and is not recorded yet',
    { status: 'CONFIRMING', payingTxId: TX, head: head(999) },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'confirming', ...EXACT, confirmations: 19, required: 19, earlierTransaction: null },
  ],
  [
    'another exact one came before it and will pay',
    { status: 'CONFIRMING', payingTxId: OTHER_TX, head: head(120) },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'confirming', ...EXACT, confirmations: 1, required: 19, earlierTransaction: OTHER_TX },
  ],
  [
    'the invoice was paid by another while it waits',
    { status: 'PAID', payingTxId: OTHER_TX },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'exact_but_already_paid', ...EXACT, paidBy: OTHER_TX },
  ],
  [
    'it is recorded as a duplicate',
    { status: 'PAID', payingTxId: OTHER_TX },
    { kind: 'duplicate', ...AT_120 },
    { code: 'exact_but_already_paid', ...EXACT, paidBy: OTHER_TX },
  ],
  [
    'exact, of a paid invoice, and not recorded yet',
    { status: 'PAID', payingTxId: OTHER_TX },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_but_already_paid', ...EXACT, paidBy: OTHER_TX },
  ],
  [
    'exact, in a block that is not examined yet',
    {},
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: null },
  ],
  [
    'exact, in a block that is not examined yet, while another exact one is about to pay',
    { status: 'CONFIRMING', payingTxId: OTHER_TX },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: OTHER_TX },
  ],
  [
    'exact, in a block that is examined and not irreversible, and it was not seen there',
    { head: head(120) },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_confirmed', ...EXACT, checkAgainSeconds: 60 },
  ],
  [
    'the same of a paid invoice, for which nothing more is looked for',
    { status: 'PAID', payingTxId: OTHER_TX, head: head(120) },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_but_already_paid', ...EXACT, paidBy: OTHER_TX },
  ],
  [
    'exact, before the first block was examined',
    { solidNumber: null, head: null },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: null },
  ],
  [
    'exact, in a recorded block that was examined before the invoice was created',
    { solidNumber: 120, createdAt: unixMs(1_060_001), payableAfter: AT_120.blockTime },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'before_invoice', ...EXACT, invoiceCreatedAt: '1970-01-01T00:17:40.001Z' },
  ],
  [
    'exact, in a block that was examined before the invoice was created, and is not irreversible',
    { createdAt: unixMs(1_060_001), payableAfter: AT_120.blockTime, head: head(120) },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'before_invoice', ...EXACT, invoiceCreatedAt: '1970-01-01T00:17:40.001Z' },
  ],
  [
    'exact, in a later block since a fork, and first seen before the invoice was created',
    { createdAt: unixMs(1_057_001), payableAfter: unixMs(1_057_000), firstSeenAt: unixMs(1_057_000) },
    done({ usdt: [sent(25_000_137n)] }),
    {
      code: 'before_invoice',
      ...EXACT,
      blockTime: '1970-01-01T00:17:37.000Z',
      invoiceCreatedAt: '1970-01-01T00:17:37.001Z',
    },
  ],
  [
    'exact, in a block of the same moment since a fork, and first seen after the invoice was created',
    { payableAfter: AT_120.blockTime, firstSeenAt: unixMs(1_063_000) },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_yet_examined', ...EXACT, earlierTransaction: null },
  ],
  [
    'exact, in a recorded block, and our books do not have it',
    { solidNumber: 120 },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_recorded', ...EXACT },
  ],
  [
    'exact, in a recorded block of the very moment in which the invoice was created',
    { solidNumber: 120, createdAt: AT_120.blockTime },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_recorded', ...EXACT },
  ],
  [
    'exact, in the newest examined block, of the very moment in which the invoice was created',
    { createdAt: AT_120.blockTime, head: head(120) },
    done({ usdt: [sent(25_000_137n)] }),
    { code: 'exact_not_confirmed', ...EXACT, checkAgainSeconds: 60 },
  ],
  [
    'of another amount, in a block that the invoice came after',
    { createdAt: unixMs(AT_120.blockTime + 600_001), payableAfter: AT_120.blockTime },
    done({ usdt: [sent(24_000_137n)] }),
    {
      code: 'before_invoice',
      ...PLACED,
      amount: '24.000137',
      invoiceCreatedAt: '1970-01-01T00:27:40.001Z',
    },
  ],
  [
    'of another amount, in the first block that may pay the invoice',
    { createdAt: unixMs(AT_120.blockTime + 600_000), payableAfter: unixMs(AT_120.blockTime - 1) },
    done({ usdt: [sent(24_000_137n)] }),
    {
      code: 'short',
      ...PLACED,
      arrived: '24.000137',
      expected: '25.000137',
      by: '1.000000',
      likely: { kind: 'fee' },
    },
  ],
  [
    'sighted before any block was examined by this process',
    { status: 'CONFIRMING', payingTxId: TX, head: null },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'confirming', ...EXACT, confirmations: 1, required: 19, earlierTransaction: null },
  ],
  [
    'sighted in a block above the newest examined one',
    { status: 'CONFIRMING', payingTxId: TX, head: head(118) },
    { kind: 'sighted', txId: TX, ...AT_120 },
    { code: 'confirming', ...EXACT, confirmations: 1, required: 19, earlierTransaction: null },
  ],
  [
    'TRX to somebody else',
    {},
    done({ trx: { to: ELSEWHERE, amountSun: 1n } }),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'trx', amountTrx: '0.000001', toAddress: false },
  ],
  [
    'one micro short',
    {},
    done({ usdt: [sent(25_000_136n)] }),
    {
      code: 'short',
      ...PLACED,
      arrived: '25.000136',
      expected: '25.000137',
      by: '0.000001',
      likely: { kind: 'one_digit' },
    },
  ],
  [
    'one USDT over',
    {},
    done({ usdt: [sent(26_000_137n)] }),
    { code: 'over', ...PLACED, arrived: '26.000137', expected: '25.000137', by: '1.000000', likely: { kind: 'fee' } },
  ],
  [
    'more than any invoice can be',
    {},
    done({ usdt: [sent(2n ** 255n)] }),
    {
      code: 'over',
      ...PLACED,
      arrived: '57896044618658097711785492504343953926634992332820282019728792003956564.819968',
      expected: '25.000137',
      by: '57896044618658097711785492504343953926634992332820282019728792003956539.819831',
      likely: null,
    },
  ],
  [
    'to another address',
    {},
    done({ usdt: [sent(25_000_137n, ELSEWHERE)] }),
    { code: 'other_address', ...PLACED, to: accountToAddress(ELSEWHERE), amount: '25.000137' },
  ],
  [
    'another token that calls itself USDT',
    {},
    done({ otherTokens: [{ contract: FAKE, to: HERE }] }),
    { code: 'other_token', ...PLACED, contract: accountToAddress(FAKE) },
  ],
  [
    'another token to somebody else',
    {},
    done({ otherTokens: [{ contract: FAKE, to: ELSEWHERE }] }),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'other_token', amountTrx: null, toAddress: false },
  ],
  [
    'TRX in place of USDT',
    {},
    done({ trx: { to: HERE, amountSun: 25_000_137n } }),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'trx', amountTrx: '25.000137', toAddress: true },
  ],
  [
    'a token of the chain itself',
    {},
    done({ isTrc10: true }),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'trc10', amountTrx: null, toAddress: false },
  ],
  [
    'a call of the USDT contract that moved nothing',
    {},
    done({ isUsdtCall: true }),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'nothing', amountTrx: null, toAddress: false },
  ],
  [
    'a call of another contract, which may have moved TRX',
    {},
    done({}),
    { code: 'no_usdt_transfer', ...PLACED, moved: 'unknown', amountTrx: null, toAddress: false },
  ],
  ['no node has it', {}, { kind: 'not-found' }, { code: 'not_found', checkAgainSeconds: 60 }],
  ['no node can be asked', {}, { kind: 'unavailable', why: 'for-now' }, { code: 'unavailable', checkAgainSeconds: 5 }],
  [
    'the requests are used up',
    {},
    { kind: 'unavailable', why: 'used-up' },
    { code: 'unavailable', checkAgainSeconds: 60 },
  ],
  [
    'it is too large to be read',
    {},
    { kind: 'unavailable', why: 'too-large' },
    { code: 'unavailable', checkAgainSeconds: 600 },
  ],
];

test.each(CASES)('%s', (_title, invoice, facts, answer) => {
  expect(answerLookup({ ...INVOICE, ...invoice }, facts)).toEqual(answer);
});

test.each([
  ['OUT_OF_ENERGY', 'out_of_energy'],
  ['OUT_OF_TIME', 'out_of_time'],
  ['REVERT', 'reverted'],
  ['ILLEGAL_OPERATION', 'other'],
] as const)('a call that ended with %s failed because of: %s', (result, why) => {
  expect(answerLookup(INVOICE, { kind: 'failed', ...AT_120, result, payer: null })).toEqual({
    code: 'failed',
    ...PLACED,
    why,
    result,
    wasSighted: false,
  });
});

test('a failed transaction that was this invoice’s payment in an orphaned block is marked as such', () => {
  const facts = { kind: 'failed', ...AT_120, result: 'REVERT', payer: null } as const;
  expect(answerLookup({ ...INVOICE, wasSighted: true }, facts)).toMatchObject({ code: 'failed', wasSighted: true });
});

test.each([
  ['the payer is frozen', true, false, 'payer_frozen'],
  ['transfers are paused', false, true, 'paused'],
  [
    'the payer is frozen and transfers are paused: another try from that wallet fails even after the pause',
    true,
    true,
    'payer_frozen',
  ],
  ['neither', false, false, 'reverted'],
])('a transfer that the contract refused says why, if it can be known: %s', (_title, isFrozen, isPaused, why) => {
  const facts = { kind: 'failed', ...AT_120, result: 'REVERT', payer: { account: account('d'), isFrozen } } as const;
  expect(answerLookup({ ...INVOICE, isPaused }, facts)).toMatchObject({ code: 'failed', why });
});

test('another call that failed is not explained by the state of the contract', () => {
  const facts = { kind: 'failed', ...AT_120, result: 'REVERT', payer: null } as const;
  expect(answerLookup({ ...INVOICE, isPaused: true }, facts)).toMatchObject({ why: 'reverted' });
});

describe('of several transfers in one transaction', () => {
  const codeOf = (...usdt: { to: AccountHex; amountMicro: MicroUsdt }[]) => answerLookup(INVOICE, done({ usdt }));

  test('the exact one is told, wherever it stands', () => {
    expect(codeOf(sent(24_000_000n), sent(25_000_137n), sent(25_000_138n))).toMatchObject({
      code: 'exact_not_yet_examined',
    });
  });

  test('one to this address is told before an exact one to another', () => {
    expect(codeOf(sent(25_000_137n, ELSEWHERE), sent(7n))).toMatchObject({ code: 'short', arrived: '0.000007' });
  });

  test('the nearest amount is told, and nothing of the others', () => {
    expect(codeOf(sent(99_000_000n), sent(25_000_000n), sent(1n))).toEqual({
      code: 'short',
      ...PLACED,
      arrived: '25.000000',
      expected: '25.000137',
      by: '0.000137',
      likely: { kind: 'requested_amount' },
    });
  });

  test('of two that are equally near the first is told', () => {
    expect(codeOf(sent(26_000_137n), sent(24_000_137n))).toMatchObject({ code: 'over' });
    expect(codeOf(sent(24_000_137n), sent(26_000_137n))).toMatchObject({ code: 'short' });
  });

  test('another token to this address is told before USDT to another', () => {
    const usdt = [sent(25_000_137n, ELSEWHERE)];
    expect(answerLookup(INVOICE, done({ usdt, otherTokens: [{ contract: FAKE, to: HERE }] }))).toMatchObject({
      code: 'other_token',
    });
  });
});

function micro(text: string): MicroUsdt {
  const parsed = parseAmount(text);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.amountMicro;
}

test.each<[requested: string, payable: string, arrived: string, LikelyMistake | null]>([
  ['25', '25.000137', '25', { kind: 'requested_amount' }],
  ['25', '25.000137', '24.000137', { kind: 'fee' }],
  ['25', '25.000137', '24', { kind: 'fee' }],
  ['25', '25.000137', '26.000137', { kind: 'fee' }],
  ['25', '25.000137', '23.500137', { kind: 'fee' }],
  ['200', '200.004131', '198.004089', { kind: 'fee' }],
  ['25.37', '25.370149', '25.3', { kind: 'truncated', decimals: 1 }],
  ['25.37', '25.370149', '25.37014', { kind: 'truncated', decimals: 5 }],
  ['25.37', '25.370149', '25', { kind: 'rounded', decimals: 0 }],
  ['25.37', '25.370149', '25.4', { kind: 'rounded', decimals: 1 }],
  ['25.37', '25.370149', '25.37015', { kind: 'rounded', decimals: 5 }],
  ['25.37', '25.370149', '26', { kind: 'rounded', decimals: 0 }],
  ['25', '25.000137', '25.000173', { kind: 'swapped_digits' }],
  ['25', '25.000137', '52.000137', { kind: 'swapped_digits' }],
  ['25', '25.000137', '25.000147', { kind: 'one_digit' }],
  ['25', '25.000137', '35.000137', { kind: 'one_digit' }],
  ['25', '25.000137', '5.000137', { kind: 'one_digit' }],
  ['25', '25.000137', '12.345678', null],
  ['25', '25.000137', '25.000137', null],
  ['25', '25', '24.5', { kind: 'fee' }],
  ...['0.5', '0.8', '1', '1.2', '1.5', '1.6', '2', '2.5', '3', '3.5', '5'].map((fee) => {
    const arrivedMicro = micro('77.770149') - micro(fee);
    const arrived = `${arrivedMicro / 1_000_000n}.${String(arrivedMicro % 1_000_000n).padStart(6, '0')}`;
    return ['77.77', '77.770149', arrived, { kind: 'fee' }] as [string, string, string, LikelyMistake];
  }),
  // A fee that is seldom taken is less likely than the one digit in which the amounts differ.
  ['77.77', '77.770149', '77.570149', { kind: 'one_digit' }],
  ['77.77', '77.770149', '73.770149', { kind: 'one_digit' }],
  // One per cent, of the payable and of the requested amount; deducted, and never added.
  ['200', '200.004131', '198', { kind: 'fee' }],
  ['200', '200.004131', '202.004173', null],
  ['25', '25.100137', '21.500137', { kind: 'swapped_digits' }],
  ['200', '200.004131', '198.004090', { kind: 'fee' }],
  ['200', '200.004131', '198.004091', null],
  ['25.37', '25.370149', '25.370100', { kind: 'rounded', decimals: 4 }],
  ['25.37', '25.370159', '25.370100', { kind: 'truncated', decimals: 4 }],
  ['25.37', '25.370149', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370550', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370500', '25.371', { kind: 'rounded', decimals: 3 }],
  ['25.37', '25.370499', '25.371', { kind: 'rounded', decimals: 3 }],
  ['24.6', '24.600137', '25', { kind: 'rounded', decimals: 0 }],
  // Two digits wrong that are no neighbours, three, and neighbours that are not the other's.
  ['25', '25.123456', '25.423156', null],
  ['25', '25.123456', '25.231456', null],
  ['25', '25.123456', '25.213457', null],
  ['25', '25.123456', '25.134456', null],
  ['25', '25.123456', '25.223456', { kind: 'one_digit' }],
  ['25', '25.123456', '125.123456', { kind: 'one_digit' }],
])('asked %s, payable %s, arrived %s', (requested, payable, arrived, expected) => {
  const amounts = { requestedMicro: micro(requested), payableMicro: micro(payable), arrivedMicro: micro(arrived) };
  expect(likelyMistake(amounts)).toEqual(expected);
});

test.each([2, 3, 4])('an amount that was cut off after %i decimals, as exchanges do, is always known', (decimals) => {
  const unit = 10n ** BigInt(6 - decimals);
  const unknown: bigint[] = [];
  for (const requestedMicro of [5_000_000n, 25_000_000n, 49_990_000n, 1_234_560_000n].map(microUsdt)) {
    for (const payableMicro of codeWords(wordRange(requestedMicro, 10_000n))) {
      const arrived = payableMicro - (payableMicro % unit);
      if (arrived === payableMicro) continue;
      const mistake = { requestedMicro, payableMicro, arrivedMicro: microUsdt(arrived) };
      if (!/^(requested_amount|rounded|truncated)$/.test(likelyMistake(mistake)?.kind ?? ''))
        unknown.push(payableMicro);
    }
  }
  expect(unknown).toEqual([]);
});

test('any amounts are borne, and an exact one is no mistake', () => {
  const amount = fc.bigInt({ min: 1n, max: 2n ** 255n }).map(microUsdt);
  // No invoice asks for less than was requested.
  const tail = fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 2n ** 255n }));
  const arrived = fc.bigInt({ min: 1n, max: 2n ** 256n }).map(microUsdt);
  fc.assert(
    fc.property(amount, tail, arrived, (requestedMicro, tailMicro, otherMicro) => {
      const payableMicro = microUsdt(requestedMicro + tailMicro);
      for (const arrivedMicro of [otherMicro, requestedMicro]) {
        likelyMistake({ requestedMicro, payableMicro, arrivedMicro });
      }
      expect(likelyMistake({ requestedMicro, payableMicro, arrivedMicro: payableMicro })).toBeNull();
    }),
  );
});
