import { COMMONEST_FEE } from '../../core/domain/mismatch/fee-errors.ts';
import {
  cutTo,
  digitsSwapped,
  lastUnit,
  oneDigitWrong,
  roundTo,
  type Shown,
} from '../../core/domain/mismatch/mistakes.ts';

/** The facts for a scenario's text. Amounts are formatted for people. */
export type PaymentFacts = {
  payable: string;
  sent: string;
  /** The invoice already had a payment. */
  hasPayment: boolean;
  /** The other invoice whose amount was sent by mistake. */
  hit: string | null;
};

/** A correct or mistaken way to pay an invoice. The command, its help, the table in the docs and the tests are generated from it. */
type ScenarioRecord = {
  help: string;
  /** How the payer's wallet sends it. The default is one USDT transfer that succeeds. */
  by?: 'two transactions' | 'contract' | 'another token' | 'wallet without USDT' | 'low fee limit';
  /** The requirements beyond an address and an amount: an order, or control over the network. */
  needs?: 'second invoice' | 'fork' | 'expiry' | 'requested amount' | 'retired address';
  to?: 'stranger';
  /** Returns the micro-USDT to send instead of the payable amount, or `null` if the amount leaves no room for the mistake. */
  amountOf?(payableMicro: bigint): bigint | null;
  /** The micro-USDT sent for an order of 25, whose invoice has the payable amount 25.000014. */
  example: readonly bigint[];
  kinds: readonly ('matched' | 'duplicate' | 'unmatched')[];
  /** The part of the API that shows the reason, and the possible codes. */
  cause: { at: 'payment' | 'transfers' | 'lookup'; codes: readonly string[] };
  /** A sentence about the payment and its effect. */
  outcome(facts: PaymentFacts): string;
};

const LIST = '`quittance transfers list`';
const UNSEEN = 'the invoice stays as it is, and no transfer is recorded';
const DUPLICATE = `the invoice already has a payment, so the transfer appears under ${LIST} as a duplicate`;
const PAYS = 'the invoice becomes CONFIRMING when the transfer is in a block, and PAID once that block is irreversible';

const ifPaid = ({ hasPayment }: PaymentFacts) => (hasPayment ? DUPLICATE : PAYS);
const ifUnmatched = ({ hit }: PaymentFacts) =>
  hit === null
    ? `the invoice stays as it is, and the transfer appears under ${LIST} as unmatched once its block is irreversible`
    : `the invoice stays as it is. However, invoice ${hit} asks for exactly this amount at the same address, so it becomes PAID. If it already has a payment, the transfer appears under ${LIST} as a duplicate`;

const PAYABLE = 25_000_014n;
const EXACT = 'the exact payable amount was sent';

type Words = { help: string; said?: string };

const paying = ({ help, said = EXACT }: Words) => ({
  help,
  example: [PAYABLE],
  kinds: ['matched'] as const,
  cause: { at: 'payment', codes: ['payment'] } as const,
  outcome: (facts: PaymentFacts) => `${said}: ${ifPaid(facts)}`,
});

/** An amount other than the payable one, so the transfer matches no invoice. */
const mistaken = (
  help: string,
  because: string,
  amountOf: ((payableMicro: bigint) => bigint | null) | undefined,
  example: bigint,
  ...codes: string[]
) => ({
  help,
  ...(amountOf && { amountOf }),
  example: [example],
  kinds: ['unmatched'] as const,
  cause: { at: 'transfers', codes } as const,
  outcome: (facts: PaymentFacts) =>
    `${facts.sent} was sent instead of ${facts.payable}, ${because}: ${ifUnmatched(facts)}`,
});

const cut = (decimals: number, ...codes: string[]) => {
  const mistake = mistaken(
    `truncated to ${decimals} decimals, as some exchanges do`,
    `because it was truncated to ${decimals} decimals`,
    (amount) => cutTo(amount, decimals) || null,
    25_000_000n,
    ...codes,
  );
  return {
    ...mistake,
    outcome: (facts: PaymentFacts) =>
      facts.sent === facts.payable
        ? `${facts.sent} has at most ${decimals} decimals, so the exact payable amount was sent: ${ifPaid(facts)}`
        : mistake.outcome(facts),
  };
};

const unseen = ({ help, said }: Required<Words>, code: string, example = [PAYABLE]) => ({
  help,
  example,
  kinds: [],
  cause: { at: 'lookup', codes: [code] } as const,
  outcome: () => `${said}: ${UNSEEN}`,
});

/** The ways to pay, in the order of the help. */
export const SCENARIOS = {
  exact: paying({ help: 'the exact payable amount' }),
  short: mistaken(
    '1 USDT too little, or half of the amount if it is at most 1 USDT',
    'which is too little',
    lessAFee,
    24_000_014n,
    'FEE_DEDUCTED',
  ),
  over: mistaken('1 USDT too much', 'which is too much', (amount) => amount + COMMONEST_FEE, 26_000_014n, 'OVERPAID'),
  twice: {
    help: 'the payable amount, in two transactions',
    by: 'two transactions',
    example: [PAYABLE, PAYABLE],
    kinds: ['matched', 'duplicate'],
    cause: { at: 'transfers', codes: ['PAID_TWICE'] },
    outcome: ({ hasPayment }) =>
      `${EXACT} twice: ${hasPayment ? 'both transfers appear' : 'the first transfer pays the invoice, and the second appears'} under ${LIST} as a duplicate`,
  },
  'fake-token': {
    ...unseen(
      {
        help: 'the payable amount, in another token that calls itself USDT',
        said: 'the payable amount was sent in another token that calls itself USDT and is worth nothing',
      },
      'other_token',
    ),
    by: 'another token',
  },
  contract: {
    ...paying({
      help: 'the payable amount, sent by a contract, so only a log shows it',
      said: `${EXACT} by a contract, so only a log shows it`,
    }),
    by: 'contract',
  },
  'two-in-one': {
    help: 'two invoices in one contract transaction',
    by: 'contract',
    needs: 'second invoice',
    example: [PAYABLE, 3_000_001n],
    kinds: ['matched', 'matched'],
    cause: { at: 'payment', codes: ['payment'] },
    outcome: ({ hasPayment }) =>
      hasPayment
        ? `one transaction sent both payable amounts: it pays the second invoice, but the first invoice already has a payment, so its transfer appears under ${LIST} as a duplicate`
        : 'one transaction pays both invoices: each becomes CONFIRMING when the transaction is in a block, and PAID once that block is irreversible',
  },
  orphaned: {
    ...paying({ help: 'the exact payable amount, and then its block is orphaned' }),
    needs: 'fork',
    // On a busy machine the payment may be orphaned before it's seen.
    cause: { at: 'lookup', codes: ['orphaned', 'not_found'] },
  },
  rounded: mistaken(
    'rounded to 2 decimals, or to another number of decimals if that changes nothing',
    'because it was rounded',
    rounded,
    25_000_000n,
    'ROUNDED',
    'REQUESTED_AMOUNT',
  ),
  'rounded-3': cut(3, 'TRUNCATED', 'ROUNDED', 'REQUESTED_AMOUNT'),
  'rounded-4': cut(4, 'TRUNCATED', 'ROUNDED', 'REQUESTED_AMOUNT'),
  'below-minimum': mistaken(
    "an exchange's minimum above the payable amount: the next higher of 10, 20, 50, 100, …",
    'because the exchange does not send less',
    minimumAbove,
    50_000_000n,
    'OVERPAID',
  ),
  typo: mistaken('the last digit off by one', 'with one digit wrong', lastDigitWrong, 25_000_015n, 'ONE_DIGIT_WRONG'),
  swapped: mistaken(
    'the last two different neighbouring digits swapped',
    'with two neighbouring digits swapped',
    lastDigitsSwapped,
    25_000_041n,
    'DIGITS_SWAPPED',
  ),
  fee: mistaken(
    'an exchange fee of 1 USDT deducted, or half of the amount if it is at most 1 USDT',
    'because a fee was deducted from it',
    lessAFee,
    24_000_014n,
    'FEE_DEDUCTED',
  ),
  late: {
    ...paying({ help: 'the exact payable amount, after the invoice has expired (its deadline is brought forward)' }),
    needs: 'expiry',
    cause: { at: 'payment', codes: ['payment, late'] },
    outcome: () =>
      `the deadline was brought forward (which only a local network allows), the invoice expired, and then ${EXACT}. The invoice still becomes CONFIRMING and PAID, and its payment is marked late`,
  },
  'requested-amount': {
    ...mistaken(
      'the order amount, without the digits that were added to it',
      'because the added digits were left out',
      undefined,
      25_000_000n,
      'REQUESTED_AMOUNT',
    ),
    needs: 'requested amount',
  },
  'to-retired': {
    ...mistaken(
      "the payable amount, to one of the project's retired addresses",
      '',
      undefined,
      PAYABLE,
      'OTHER_ADDRESS',
    ),
    needs: 'retired address',
    outcome: (facts) =>
      `${EXACT} to one of the project's retired addresses, which gets no new invoices but is watched permanently: ${ifUnmatched(facts)}`,
  },
  reverted: {
    ...unseen(
      {
        help: 'the exact payable amount, from a wallet that has no USDT: the call reverts',
        said: `${EXACT} from a wallet that has no USDT, so the call is in a block as REVERT and moves nothing`,
      },
      'failed, reverted',
    ),
    by: 'wallet without USDT',
  },
  'out-of-energy': {
    ...unseen(
      {
        help: 'the exact payable amount, with a fee limit that is too low: the call runs out of energy',
        said: `${EXACT} with a fee limit of 1 TRX, so the call is in a block as OUT_OF_ENERGY, costs its fee and moves nothing`,
      },
      'failed, out_of_energy',
    ),
    by: 'low fee limit',
  },
  'zero-value': {
    ...unseen(
      {
        help: 'a transfer of 0, as in address poisoning',
        said: 'a transfer of 0 was sent, as in address poisoning',
      },
      'no_usdt_transfer',
      [0n],
    ),
    amountOf: () => 0n,
  },
  'wrong-address': {
    ...unseen(
      {
        help: 'the payable amount, to an address that belongs to no project',
        said: `${EXACT} to an address that belongs to no project`,
      },
      'other_address',
    ),
    to: 'stranger',
  },
} as const satisfies Record<string, ScenarioRecord>;

export type Scenario = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly Scenario[];

export const scenarioOf = (name: Scenario): ScenarioRecord => SCENARIOS[name];

/** The scenarios that need only an address and an amount. */
export const PLAIN_SCENARIO_NAMES = SCENARIO_NAMES.filter((name) => scenarioOf(name).needs === undefined);

/** 1 USDT less, or half of a smaller amount. */
function lessAFee(amountMicro: bigint): bigint | null {
  const left = amountMicro > COMMONEST_FEE ? amountMicro - COMMONEST_FEE : amountMicro >> 1n;
  return left > 0n ? left : null;
}

/** The first of the usual roundings (half up) that changes the amount but not to zero: to cents, then to fewer decimals, then to more. */
function rounded(amountMicro: bigint): bigint | null {
  const roundings = [2, 1, 0, 3, 4, 5].map((decimals) => roundTo(amountMicro, decimals));
  return roundings.find((each) => each > 0n && each !== amountMicro) ?? null;
}

/** The lowest of the exchanges' usual minimums that is above the amount. */
function minimumAbove(amountMicro: bigint): bigint {
  let minimum = 10_000_000n;
  for (let step = 0; minimum <= amountMicro; step++) minimum = step % 3 === 1 ? (minimum * 5n) / 2n : minimum * 2n;
  return minimum;
}

/** Raises the last significant digit by one, or lowers a 9. */
function lastDigitWrong(amountMicro: bigint): bigint {
  const shown = typed(amountMicro);
  const higher = amountMicro + lastUnit(shown.decimals);
  return oneDigitWrong(shown).includes(higher) ? higher : amountMicro - lastUnit(shown.decimals);
}

/** Swaps the last two adjacent digits that differ: 25.000014 → 25.000041, and 25 → 52. */
function lastDigitsSwapped(amountMicro: bigint): bigint | null {
  return digitsSwapped(typed(amountMicro)).findLast((swapped) => swapped !== amountMicro) ?? null;
}

/** Omits trailing zeros, which people don't type. */
function typed(amount: bigint): Shown {
  const zeros = /0*$/.exec(amount.toString())?.[0].length ?? 0;
  return { amount, decimals: 6 - zeros };
}
