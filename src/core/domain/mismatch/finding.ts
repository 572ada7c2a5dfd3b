import type { Cause, CauseCode } from '../mismatch.ts';
import { formatAmount, microUsdt } from '../money.ts';
import type { Suspect } from './facts.ts';

/**
 * A possible explanation for a transfer. `weight` is the probability that a payer makes this mistake and that the mistake leads to exactly
 * this amount. Weights only have a meaning in comparison with each other.
 */
export type Finding = {
  code: CauseCode;
  weight: number;
  /** The invoices that the money was meant for, likeliest first. */
  invoices: readonly Suspect[];
  evidence: Cause['evidence'];
  /** A sentence without a full stop at its end. */
  explanation: string;
  /** The highest confidence that this finding can have. It's absent if there's no limit. */
  atMost?: 'medium' | 'low';
};

/** A rule's finding for one invoice. The caller weighs how likely it is that this invoice was meant. */
export type Slip = Omit<Finding, 'invoices'>;

/** A rule that compares one invoice with the amount that arrived. */
export type SlipRule = (invoice: Suspect, amountMicro: bigint) => Slip[];

/** Formats an amount with all six decimals: 25.000137. */
export function exactly(amountMicro: bigint): string {
  return formatAmount(microUsdt(amountMicro));
}

/** Formats an amount without trailing zeros: 25.5, 1. Used for round figures that people choose, such as prices. */
export function shortly(amountMicro: bigint): string {
  return exactly(amountMicro).replace(/\.?0+$/, '');
}

/** Describes an invoice and its payable amount: `invoice order-17's 25.000137`. */
export function asked({ externalId, payableMicro }: Suspect): string {
  return `invoice ${externalId}'s ${exactly(payableMicro)}`;
}

/** Whether a tail makes the payable amount unique. A payer may choose a round amount by chance, but hardly an amount with a tail. */
export function hasTail({ payableMicro, requestedMicro }: Suspect): boolean {
  return payableMicro !== requestedMicro;
}
