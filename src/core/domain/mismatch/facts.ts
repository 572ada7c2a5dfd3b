import type { InvoiceStatus } from '../invoice.ts';
import type { MicroUsdt } from '../money.ts';
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
