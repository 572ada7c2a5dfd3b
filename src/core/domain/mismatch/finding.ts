import type { Cause, CauseCode } from '../mismatch.ts';
import { formatAmount, microUsdt } from '../money.ts';
import type { Suspect } from './facts.ts';

/**
 * A possible origin of a transfer. `weight` is the probability that a payer makes this slip and that it leads to this very amount. Weights
 * are only compared with each other; they aren't probabilities by themselves.
 */
export type Finding = {
  code: CauseCode;
  weight: number;
  /** The invoices that the money was for, the likeliest first. */
  invoices: readonly Suspect[];
  evidence: Cause['evidence'];
  /** A sentence without its full stop. */
  explanation: string;
  /** The highest confidence, if the facts alone never prove enough. */
  atMost?: 'medium' | 'low';
};

/** A rule's finding for one invoice. The caller weighs how likely that invoice was meant. */
export type Slip = Omit<Finding, 'invoices'>;

/** A rule compares one invoice with the amount that arrived. */
export type SlipRule = (invoice: Suspect, amountMicro: bigint) => Slip[];

/** All six decimals: 25.000137. */
export function exactly(amountMicro: bigint): string {
  return formatAmount(microUsdt(amountMicro));
}

/** Without trailing zeros: 25.5, 1. For figures that people choose. */
export function shortly(amountMicro: bigint): string {
  return exactly(amountMicro).replace(/\.?0+$/, '');
}

/** An invoice and its payable amount: `invoice order-17's 25.000137`. */
export function asked({ externalId, payableMicro }: Suspect): string {
  return `invoice ${externalId}'s ${exactly(payableMicro)}`;
}

/** Whether a tail made the payable amount unique. A round amount may occur by chance, but one with a tail hardly. */
export function hasTail({ payableMicro, requestedMicro }: Suspect): boolean {
  return payableMicro !== requestedMicro;
}
