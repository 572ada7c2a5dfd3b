import type { Cause, CauseCode } from '../mismatch.ts';
import { formatAmount, microUsdt } from '../money.ts';
import type { Suspect } from './facts.ts';

/**
 * A way in which a transfer may have come about. `weight` is how probable it is that a payer makes this slip, and that it leads
 * to this very amount; weights are compared with each other and are not probabilities by themselves.
 */
export type Finding = {
  code: CauseCode;
  weight: number;
  /** The invoices that the money was for, the likeliest first. */
  invoices: readonly Suspect[];
  evidence: Cause['evidence'];
  /** A sentence without its full stop. */
  explanation: string;
  /** The most that may be claimed, where the facts alone never say enough. */
  atMost?: 'medium' | 'low';
};

/** A rule's finding for one invoice; how likely that invoice was meant is weighed outside. */
export type Slip = Omit<Finding, 'invoices'>;

/** A rule looks at one invoice and at what arrived. */
export type SlipRule = (invoice: Suspect, amountMicro: bigint) => Slip[];

/** All six decimals: 25.000137. */
export function exactly(amountMicro: bigint): string {
  return formatAmount(microUsdt(amountMicro));
}

/** Without zeros at the end: 25.5, 1. For figures that people choose. */
export function shortly(amountMicro: bigint): string {
  return exactly(amountMicro).replace(/\.?0+$/, '');
}

/** An invoice and what it asks for: `invoice order-17's 25.000137`. */
export function asked({ externalId, payableMicro }: Suspect): string {
  return `invoice ${externalId}'s ${exactly(payableMicro)}`;
}

/** Whether the payable amount was made unique by a tail. A round amount may come by chance; one with a tail hardly. */
export function hasTail({ payableMicro, requestedMicro }: Suspect): boolean {
  return payableMicro !== requestedMicro;
}
