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
  /** Its receiving address (T…). */
  address: string;
  createdAt: UnixMs;
  /** A payment must be later than this. */
  payableAfter: UnixMs;
  expiresAt: UnixMs;
  /** The transfer that paid it; `null` if none did. */
  paid: { at: UnixMs; from: string } | null;
};

/** Another unmatched or duplicate transfer of the same sender to the same project. */
export type Sibling = { amountMicro: bigint; at: UnixMs };

/** The facts about the sender of a transfer, up to its time. */
export type Sender = {
  isOurs: boolean;
  /** It received money from the project's addresses. */
  hasReceived: boolean;
  /** An operator resolved one of its earlier transfers as the merchant's own deposit. */
  hasDeposited: boolean;
  /** Another address that looks the same in wallets (the first 4 and last 4 characters); `null` if there's none. */
  resembles: string | null;
};

/** The facts about an unmatched or duplicate transfer. */
export type MismatchFacts = {
  transfer: {
    /** It may exceed the maximum of an invoice. */
    amountMicro: bigint;
    from: string;
    to: string;
    at: UnixMs;
  };
  /** How amounts are made unique on the receiving address. */
  policy: Policy;
  /** The candidate invoices, at most some hundreds: those near in amount, and the newest unpaid ones. */
  invoices: readonly Suspect[];
  siblings: readonly Sibling[];
  sender: Sender;
};
