import type { InvoiceStatus } from '../invoice.ts';
import type { Cause, CauseCode } from '../mismatch.ts';
import { formatAmount, type MicroUsdt, microUsdt } from '../money.ts';
import type { Policy } from '../policy.ts';
import type { UnixMs } from '../time.ts';

/** An invoice that a transfer may have been meant for. `id` is a UUID. */
export type Suspect = {
  id: string;
  externalId: string;
  status: InvoiceStatus;
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  /** Its receiving address (`T…`). */
  address: string;
  createdAt: UnixMs;
  /** A payment must be in a block after this time. */
  payableAfter: UnixMs;
  expiresAt: UnixMs;
  /** The transfer that paid the invoice, or `null`. */
  paid: { at: UnixMs; from: string } | null;
};

/** Another unmatched or duplicate transfer from the same sender to the same project. */
export type Sibling = { amountMicro: bigint; at: UnixMs };

/** The facts about a transfer's sender that were known at the time of the transfer. */
export type Sender = {
  isOurs: boolean;
  /** Whether the sender has received money from the project's addresses. */
  hasReceived: boolean;
  /** Whether an operator resolved an earlier transfer from this sender as the merchant's own deposit. */
  hasDeposited: boolean;
  /** Another address that looks the same in wallets because its first 4 and last 4 characters are equal, or `null`. */
  resembles: string | null;
};

/** The known facts about an unmatched or duplicate transfer. */
export type MismatchFacts = {
  transfer: {
    /** May exceed the maximum amount of an invoice. */
    amountMicro: bigint;
    from: string;
    to: string;
    at: UnixMs;
  };
  /** How amounts are made unique at the receiving address. */
  policy: Policy;
  /** The candidate invoices, a few hundred at most: those with a similar amount, and the newest unpaid ones. */
  invoices: readonly Suspect[];
  siblings: readonly Sibling[];
  sender: Sender;
};

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
