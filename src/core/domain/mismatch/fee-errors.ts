import { asked, exactly, type Slip, type Suspect, shortly } from './finding.ts';

const FEE_PRIOR = 0.25;
const OVERPAID_PRIOR = 0.05;

/** The exchanges' minimum withdrawals. A payer who sends such an amount may mean any smaller invoice, so the amount proves little. */
const MINIMUMS: readonly bigint[] = [10_000_000n, 20_000_000n, 50_000_000n, 100_000_000n];
const MINIMUM_WEIGHT = 0.1;

/** The fee that most exchanges charge is 1 USDT. */
export const COMMONEST_FEE = 1_000_000n;

/** The fees that exchanges charge for withdrawing USDT on TRON, in micro-USDT, with the frequency of each fee. */
const TYPICAL_FEES = new Map([
  [500_000n, 0.08],
  [800_000n, 0.08],
  [COMMONEST_FEE, 0.35],
  [1_500_000n, 0.08],
  [2_000_000n, 0.08],
  [3_000_000n, 0.05],
  [5_000_000n, 0.05],
]);
/** Fees that are a share of the amount, in ten-thousandths. */
const SHARES = new Map([
  [10n, 0.04],
  [20n, 0.01],
  [25n, 0.01],
  [50n, 0.04],
  [100n, 0.05],
  [150n, 0.01],
  [200n, 0.01],
  [300n, 0.01],
]);
const WHOLE_SHARE = 10_000n;
const MAX_SHARE = 300n;

const TENTH = 100_000n;
const CENT = 10_000n;
/** Other fees: tenths up to 10 USDT (100 of them), and cents up to 1 USDT (another 100). */
const OTHER_TENTHS = { uptoMicro: 10_000_000n, weight: 0.1 / 100 };
const OTHER_CENTS = { uptoMicro: 1_000_000n, weight: 0.03 / 100 };

/** The amount that arrives may be this much higher than the calculated one, because `lessShare` rounds down. */
const SHARE_ROUNDING_MICRO = 1n;

/** The share of payers who also lose a fee, among those who pay the requested amount. */
const FEE_AND_ROUNDED = 0.3;

function feeWeight(feeMicro: bigint): number {
  const typical = TYPICAL_FEES.get(feeMicro);
  if (typical !== undefined) return typical;
  if (feeMicro <= 0n) return 0;
  if (feeMicro % TENTH === 0n && feeMicro <= OTHER_TENTHS.uptoMicro) return OTHER_TENTHS.weight;
  return feeMicro % CENT === 0n && feeMicro <= OTHER_CENTS.uptoMicro ? OTHER_CENTS.weight : 0;
}

/** The fixed fees to search for, in micro-USDT. */
export const FIXED_FEES: readonly bigint[] = [
  ...TYPICAL_FEES.keys(),
  ...Array.from({ length: 100 }, (_, index) => BigInt(index + 1) * TENTH),
  ...Array.from({ length: 100 }, (_, index) => BigInt(index + 1) * CENT),
].filter((fee, index, all) => all.indexOf(fee) === index);

/** The fixed fees that are common enough to look for in combination with other mistakes, in ascending order. */
export const COMMON_FEES: readonly bigint[] = [...TYPICAL_FEES.keys()];

/** Returns the amount that is left after deducting a share in ten-thousandths, rounded down. */
export function lessShare(amountMicro: bigint, share: bigint): bigint {
  return (amountMicro * (WHOLE_SHARE - share)) / WHOLE_SHARE;
}

/** Returns the amounts that become this one when a common share is deducted. Both ends are inclusive. */
export function beforeShares(amountMicro: bigint): { low: bigint; high: bigint }[] {
  return [...SHARES.keys()].map((share) => {
    const left = WHOLE_SHARE - share;
    return {
      low: ((amountMicro - SHARE_ROUNDING_MICRO) * WHOLE_SHARE) / left,
      high: ((amountMicro + SHARE_ROUNDING_MICRO) * WHOLE_SHARE) / left + 1n,
    };
  });
}

/** Explains a fee that was deducted on the way, from the payable or from the requested amount. */
export function feeDeducted(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { requestedMicro, payableMicro, externalId } = invoice;
  if (amountMicro >= payableMicro) return [];
  const feeMicro = payableMicro - amountMicro;
  const slips: Slip[] = [];
  const weight = feeWeight(feeMicro);
  if (weight > 0) {
    const isTypical = TYPICAL_FEES.has(feeMicro);
    slips.push({
      code: 'FEE_DEDUCTED',
      weight: FEE_PRIOR * weight,
      evidence: { fee: exactly(feeMicro), paidFrom: exactly(payableMicro) },
      explanation: `${exactly(amountMicro)} arrived: ${exactly(feeMicro)} less than ${asked(invoice)}; ${isTypical ? `exchanges often deduct a withdrawal fee of ${shortly(feeMicro)} USDT from the amount` : `an exchange may have deducted a fee of ${shortly(feeMicro)} USDT from the amount`}`,
    });
  }
  slips.push(...shareDeducted(payableMicro, asked(invoice), amountMicro));
  if (requestedMicro === payableMicro) return slips;
  const ofRequested = `the requested ${shortly(requestedMicro)} of invoice ${externalId}`;
  const shares = shareDeducted(requestedMicro, ofRequested, amountMicro);
  slips.push(...shares.map((slip) => ({ ...slip, weight: slip.weight * FEE_AND_ROUNDED, atMost: 'medium' as const })));
  const typical = TYPICAL_FEES.get(requestedMicro - amountMicro);
  if (typical !== undefined) {
    slips.push({
      code: 'FEE_DEDUCTED',
      weight: FEE_PRIOR * typical * FEE_AND_ROUNDED,
      evidence: { fee: exactly(requestedMicro - amountMicro), paidFrom: exactly(requestedMicro) },
      explanation: `${exactly(amountMicro)} arrived: ${shortly(requestedMicro - amountMicro)} USDT less than ${ofRequested}; the payer may have sent the requested amount, and an exchange may have deducted its fee from it`,
      atMost: 'medium',
    });
  }
  return slips;
}

/** `baseMicro` is the amount that the share was deducted from, and `base` describes it. */
function shareDeducted(baseMicro: bigint, base: string, amountMicro: bigint): Slip[] {
  if (amountMicro * WHOLE_SHARE < baseMicro * (WHOLE_SHARE - MAX_SHARE) - WHOLE_SHARE) return [];
  for (const [share, weight] of SHARES) {
    const offMicro = amountMicro - lessShare(baseMicro, share);
    if (offMicro < 0n || offMicro > SHARE_ROUNDING_MICRO) continue;
    const percent = `${Number(share) / 100} %`;
    return [
      {
        code: 'FEE_DEDUCTED',
        weight: (FEE_PRIOR * weight) / 2,
        evidence: { fee: exactly(baseMicro - amountMicro), feePercent: percent, paidFrom: exactly(baseMicro) },
        explanation: `${exactly(amountMicro)} arrived: ${percent} less than ${base}; a service may have deducted a fee of ${percent}`,
      },
    ];
  }
  return [];
}

/** Explains more money than the payable amount: the payer probably added a fee that wasn't deducted after all. */
export function overpaid(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { payableMicro } = invoice;
  const moreMicro = amountMicro - payableMicro;
  const weight = feeWeight(moreMicro);
  if (weight === 0) return leastOfExchange(invoice, amountMicro);
  return [
    {
      code: 'OVERPAID',
      weight: OVERPAID_PRIOR * weight,
      evidence: { surplus: exactly(moreMicro) },
      explanation: `${exactly(amountMicro)} arrived: ${shortly(moreMicro)} USDT more than ${asked(invoice)}; the payer may have added a fee that was not deducted`,
    },
  ];
}

/** Returns the payable amounts for which this amount is an exchange's next higher minimum. Both ends are inclusive. */
export function belowMinimum(amountMicro: bigint): { low: bigint; high: bigint }[] {
  const index = MINIMUMS.indexOf(amountMicro);
  return index === -1 ? [] : [{ low: MINIMUMS[index - 1] ?? 1n, high: amountMicro - 1n }];
}

/** Explains an exchange's minimum withdrawal for a smaller invoice. The payer may have had no choice. */
function leastOfExchange(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { payableMicro } = invoice;
  if (!belowMinimum(amountMicro).some(({ low, high }) => payableMicro >= low && payableMicro <= high)) return [];
  return [
    {
      code: 'OVERPAID',
      weight: OVERPAID_PRIOR * MINIMUM_WEIGHT,
      evidence: { surplus: exactly(amountMicro - payableMicro), minimum: exactly(amountMicro) },
      explanation: `${exactly(amountMicro)} arrived: the smallest amount that some exchanges send, and more than ${asked(invoice)}`,
      atMost: 'low',
    },
  ];
}
