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
  /** Where it is to be paid (T…). */
  address: string;
  createdAt: UnixMs;
  /** Whatever pays it is later. */
  payableAfter: UnixMs;
  expiresAt: UnixMs;
  /** The transfer that paid it; `null` if none did. */
  paid: { at: UnixMs; from: string } | null;
};

/** Another transfer of the same sender to the same project that paid nothing. */
export type Sibling = { amountMicro: bigint; at: UnixMs };

/** The facts about the sender of a transfer, up to its time. */
export type Sender = {
  /** It is an address of the same project. */
  isOurs: boolean;
  /** Money went to it from the project's addresses. */
  hasReceived: boolean;
  /** An operator resolved an earlier transfer of it as the merchant's own deposit. */
  hasDeposited: boolean;
  /** An address that it resembles as wallets shorten it (the first 4 and last 4 characters), but is not; `null` if none. */
  resembles: string | null;
};

/** The facts about a transfer that paid nothing. */
export type MismatchFacts = {
  transfer: {
    /** More than an invoice can ask for is possible. */
    amountMicro: bigint;
    from: string;
    to: string;
    at: UnixMs;
  };
  /** How amounts are made unique on the address that received it. */
  policy: Policy;
  /** The invoices that come into question, at most some hundreds: those near in amount, and the newest that were not paid. */
  invoices: readonly Suspect[];
  siblings: readonly Sibling[];
  sender: Sender;
};
