import { bytesToHex } from '@noble/hashes/utils.js';
import { COMMONEST_FEE } from '../../domain/mismatch/fee-slips.ts';
import { cutTo, digitsSwapped, lastUnit, oneDigitWrong, roundTo, type Shown } from '../../domain/mismatch/mistakes.ts';
import { accountToAddress } from '../../tron/address.ts';
import { PENNILESS, STRANGER } from '../evm/keys.ts';
import type { Payer } from './payer.ts';
import type { Scenario } from './scenarios.ts';

interface PaymentTarget {
  readonly address: string;
  readonly amountMicro: bigint;
}

export interface ScenarioOptions {
  readonly scenario: Scenario;
  /** Addresses of the contracts, as a devnet names them. */
  readonly contracts: { readonly usdt: string; readonly fakeUsdt: string; readonly multisend: string };
  readonly invoice: PaymentTarget;
  /** The other invoice that `two-in-one` pays. */
  readonly second?: PaymentTarget;
  /** The amount that the order asked for; `requested-amount` sends it. */
  readonly requestedMicro?: bigint;
  /** The address that `to-retired` pays. */
  readonly retiredAddress?: string;
}

/** A transfer that a wallet sent. Each recipient has one, in order, also where the call then fails on the chain. */
interface SentTransfer {
  readonly txId: string;
  readonly contract: string;
  readonly to: string;
  readonly amountMicro: bigint;
}

export interface ScenarioResult {
  readonly txIds: readonly string[];
  readonly sent: readonly SentTransfer[];
}

const ONE_USDT = 1_000_000n;

/** 1 TRX buys 10,000 units of energy, and a transfer needs at least 64,285. */
const LOW_FEE_LIMIT_SUN = 1_000_000n;

/**
 * Pays an invoice in the way that the scenario names (see `scenarios.ts`). The caller has the network orphan the block of `orphaned`,
 * and lets the invoice expire before `late`. Errors: a TypeError when an option that the scenario needs is missing, a RangeError
 * when the amount leaves no room for the scenario's mistake.
 */
export async function payScenario(payer: Payer, options: ScenarioOptions): Promise<ScenarioResult> {
  const { scenario, contracts, invoice, second } = options;
  const pay = (target: Partial<PaymentTarget>, wallet = payer, feeLimitSun?: bigint) =>
    transfers(wallet, contracts.usdt, [{ ...invoice, ...target }], feeLimitSun);
  switch (scenario) {
    case 'exact':
    case 'orphaned':
    case 'late':
      return pay({});
    case 'short':
    case 'fee':
    case 'rounded':
    case 'rounded-3':
    case 'rounded-4':
    case 'below-minimum':
    case 'typo':
    case 'swapped':
    case 'requested-amount':
      return pay({ amountMicro: mistakenAmount(scenario, options) });
    case 'over':
      return pay({ amountMicro: invoice.amountMicro + ONE_USDT });
    case 'twice':
      return transfers(payer, contracts.usdt, [invoice, invoice]);
    case 'fake-token':
      return transfers(payer, contracts.fakeUsdt, [invoice]);
    case 'contract':
      return together(payer, contracts, [invoice]);
    case 'two-in-one':
      return together(payer, contracts, [invoice, given(second, 'a second invoice to pay', scenario)]);
    case 'to-retired':
      return pay({ address: given(options.retiredAddress, 'a retired address', scenario) });
    case 'wrong-address':
      return pay({ address: accountToAddress(STRANGER) });
    case 'zero-value':
      return pay({ amountMicro: 0n });
    case 'reverted':
      return pay({}, payer.withKey(bytesToHex(PENNILESS.privateKey)));
    case 'out-of-energy':
      return pay({}, payer, LOW_FEE_LIMIT_SUN);
  }
}

type Mistake =
  | 'short'
  | 'fee'
  | 'rounded'
  | 'rounded-3'
  | 'rounded-4'
  | 'below-minimum'
  | 'typo'
  | 'swapped'
  | 'requested-amount';

function mistakenAmount(scenario: Mistake, { invoice, requestedMicro }: ScenarioOptions): bigint {
  const { amountMicro } = invoice;
  const mistaken = {
    short: MISTAKEN_AMOUNTS.less,
    fee: MISTAKEN_AMOUNTS.less,
    rounded: MISTAKEN_AMOUNTS.rounded,
    'rounded-3': MISTAKEN_AMOUNTS.cutTo3,
    'rounded-4': MISTAKEN_AMOUNTS.cutTo4,
    'below-minimum': MISTAKEN_AMOUNTS.minimumAbove,
    typo: MISTAKEN_AMOUNTS.oneDigitWrong,
    swapped: MISTAKEN_AMOUNTS.digitsSwapped,
    'requested-amount': () => given(requestedMicro, 'the requested amount', scenario),
  }[scenario](amountMicro);
  // An exchange that cuts amounts off sends one that has no more decimals as it is.
  const isCut = scenario === 'rounded-3' || scenario === 'rounded-4';
  if (mistaken !== null && (isCut || mistaken !== amountMicro)) return mistaken;
  throw new RangeError(`an invoice of ${amountMicro} micro-USDT leaves no room for the scenario ${scenario}`);
}

function given<Value>(value: Value | undefined, what: string, scenario: Scenario): Value {
  if (value !== undefined) return value;
  throw new TypeError(`the scenario ${scenario} needs ${what}`);
}

async function transfers(
  payer: Payer,
  contract: string,
  targets: readonly PaymentTarget[],
  feeLimitSun?: bigint,
): Promise<ScenarioResult> {
  const sent: SentTransfer[] = [];
  for (const { address, amountMicro } of targets) {
    const limit = feeLimitSun === undefined ? {} : { feeLimitSun };
    const txId = await payer.transfer({ contract, to: address, amountMicro, ...limit });
    sent.push({ txId, contract, to: address, amountMicro });
  }
  return { txIds: sent.map(({ txId }) => txId), sent };
}

async function together(
  payer: Payer,
  contracts: ScenarioOptions['contracts'],
  targets: readonly PaymentTarget[],
): Promise<ScenarioResult> {
  const txId = await payer.multisend({
    multisendContract: contracts.multisend,
    token: contracts.usdt,
    transfers: targets.map(({ address, amountMicro }) => ({ to: address, amountMicro })),
  });
  const sent = targets.map(({ address, amountMicro }) => ({
    txId,
    contract: contracts.usdt,
    to: address,
    amountMicro,
  }));
  return { txIds: [txId], sent };
}

/** People round to cents first, then to less; an amount below a cent leaves only more decimals. */
const ROUNDINGS = [2, 1, 0, 3, 4, 5];

/** The amount that arrives by a mistake: one of those that the judges of mistakes know; null when the amount leaves no room for it. */
export const MISTAKEN_AMOUNTS = {
  /** 1 USDT less, or half of a smaller amount. */
  less: (amountMicro: bigint): bigint | null => {
    const left = amountMicro > COMMONEST_FEE ? amountMicro - COMMONEST_FEE : amountMicro >> 1n;
    return left > 0n ? left : null;
  },
  /** The first of the usual roundings (half up) that changes the amount and leaves something of it. */
  rounded: (amountMicro: bigint): bigint | null =>
    ROUNDINGS.map((decimals) => roundTo(amountMicro, decimals)).find(
      (rounded) => rounded > 0n && rounded !== amountMicro,
    ) ?? null,
  cutTo3: (amountMicro: bigint): bigint | null => cutTo(amountMicro, 3) || null,
  cutTo4: (amountMicro: bigint): bigint | null => cutTo(amountMicro, 4) || null,
  /** The least of the usual minimums of exchanges that is above it. */
  minimumAbove: (amountMicro: bigint): bigint => {
    let minimum = 10_000_000n;
    for (let step = 0; minimum <= amountMicro; step++) minimum = step % 3 === 1 ? (minimum * 5n) / 2n : minimum * 2n;
    return minimum;
  },
  /** The last digit that counts is one higher; a 9 is one lower. */
  oneDigitWrong: (amountMicro: bigint): bigint => {
    const shown = typed(amountMicro);
    const higher = amountMicro + lastUnit(shown.decimals);
    return oneDigitWrong(shown).includes(higher) ? higher : amountMicro - lastUnit(shown.decimals);
  },
  /** The last two neighbours that differ change places: 25.000014 → 25.000041, and 25 → 52. */
  digitsSwapped: (amountMicro: bigint): bigint | null =>
    digitsSwapped(typed(amountMicro)).findLast((swapped) => swapped !== amountMicro) ?? null,
} as const;

/** Without the zeros at the end, which are not typed. */
function typed(amount: bigint): Shown {
  const zeros = /0*$/.exec(amount.toString())?.[0].length ?? 0;
  return { amount, decimals: 6 - zeros };
}
