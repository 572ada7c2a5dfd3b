import { absolute } from '../money.ts';
import { asked, exactly, type Slip, type Suspect, shortly } from './finding.ts';
import { lastUnit, roundTo } from './mistakes.ts';

const ROUNDING_PRIOR = 0.2;
/** The weights by the number of decimals that are kept, from 0 to 5. People and wallets prefer 2 and 4. */
const KEPT_PRIOR = [0.25, 0.1, 0.3, 0.1, 0.15, 0.1];
/** How often payers and wallets round to the nearest value, truncate, or always round up. */
const [NEAREST, CUT_OFF, UP] = [0.5, 0.35, 0.15];

const ONE_USDT = 1_000_000n;
const REQUESTED_PRIOR = 0.22;
const POINT_PRIOR = 0.02;
/** The factors go from 10 to 1,000,000. The last factor means that the payer typed all six decimals but no decimal point. */
const MAX_POINT_SHIFT = 6;
/** A larger shift to the left leaves too few digits to prove anything. */
export const MAX_LEFT_SHIFT = 3;

/** Explains a payment of the requested amount, without the tail that makes the payable amount unique. */
export function requestedAmount(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { requestedMicro, payableMicro } = invoice;
  if (amountMicro !== requestedMicro || requestedMicro === payableMicro) return [];
  return [
    {
      code: 'REQUESTED_AMOUNT',
      weight: REQUESTED_PRIOR,
      evidence: { requestedAmount: exactly(requestedMicro), payableAmount: exactly(payableMicro) },
      explanation: `${exactly(amountMicro)} arrived: this is the requested amount of invoice ${invoice.externalId}, without the ${exactly(payableMicro - requestedMicro)} that makes its payable amount ${exactly(payableMicro)}`,
    },
  ];
}

/**
 * Explains a payable amount with fewer decimals. `ROUNDED` means that it was rounded up or to the nearest value (half up). `TRUNCATED`
 * means that digits were cut off, and that rounding would give a different amount. If the result is the requested amount, it's
 * `REQUESTED_AMOUNT` instead.
 */
export function roundedOrTruncated(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { requestedMicro, payableMicro } = invoice;
  if (amountMicro === payableMicro || amountMicro === requestedMicro || amountMicro <= 0n) return [];
  const differenceMicro = absolute(amountMicro - payableMicro);
  if (differenceMicro >= ONE_USDT) return [];
  const slips: Slip[] = [];
  for (let decimals = 5; decimals >= 0; decimals--) {
    const unit = lastUnit(decimals);
    if (amountMicro % unit !== 0n) break;
    if (differenceMicro < unit) slips.push(roundedTo(decimals, invoice, amountMicro));
  }
  const [best] = slips.sort((a, b) => b.weight - a.weight);
  return best === undefined ? [] : [{ ...best, weight: slips.reduce((sum, { weight }) => sum + weight, 0) }];
}

function roundedTo(decimals: number, invoice: Suspect, amountMicro: bigint): Slip {
  const { payableMicro } = invoice;
  const isNearest = roundTo(payableMicro, decimals) === amountMicro;
  const isUp = amountMicro > payableMicro;
  const weight = (isNearest ? NEAREST : 0) + (isUp ? UP : CUT_OFF);
  const verb = isUp ? 'rounded up to' : isNearest ? 'rounded or truncated to' : 'truncated to';
  return {
    code: isNearest || isUp ? 'ROUNDED' : 'TRUNCATED',
    weight: ROUNDING_PRIOR * (KEPT_PRIOR[decimals] ?? 0) * weight,
    evidence: { decimals, difference: signed(amountMicro - payableMicro) },
    explanation: `${exactly(amountMicro)} arrived: ${asked(invoice)} ${verb} ${decimals === 0 ? 'whole USDT' : decimals === 1 ? '1 decimal' : `${decimals} decimals`}`,
    // A whole number above the amount may also include a fee, or may have been chosen for another reason.
    ...(decimals === 0 && isUp && !isNearest ? { atMost: 'medium' } : {}),
  };
}

/** Explains a decimal point that is one to six places off. If the point moved to the left, the last digits are lost. */
export function pointMisplaced(invoice: Suspect, amountMicro: bigint): Slip[] {
  const { payableMicro } = invoice;
  for (let shift = 1; shift <= MAX_POINT_SHIFT; shift++) {
    const factor = 10n ** BigInt(shift);
    const isRight = amountMicro === payableMicro * factor;
    const isLeft = shift <= MAX_LEFT_SHIFT && amountMicro > 0n && amountMicro === payableMicro / factor;
    if (!isRight && !isLeft) continue;
    return [
      {
        code: 'POINT_MISPLACED',
        weight: POINT_PRIOR / (shift === MAX_POINT_SHIFT ? 3 : 2 + shift),
        evidence: { places: isRight ? shift : -shift },
        explanation: `${exactly(amountMicro)} arrived: ${asked(invoice)} with the decimal point ${shift} ${shift === 1 ? 'place' : 'places'} to the ${isRight ? 'right' : 'left'}`,
      },
    ];
  }
  return [];
}

function signed(value: bigint): string {
  return value < 0n ? `-${shortly(-value)}` : shortly(value);
}
