import type { Payment } from '@vendure/core';
import type { Asked } from './amount';

/** The metadata of our payments. The storefront sees only `public`. Without a currency, `amount` is in USDT. */
export type Stored = Asked & {
  externalId: string;
  asset: 'USDT';
  network: 'TRON';
  /** What was told to the merchant, so that it is told once. */
  noted: string[];
  public: Asked & { checkoutUrl: string; expiresAt: string; status: string };
};

/** Answers null for a payment of another method, and for an answer to a repeated click, which has no invoice of its own. */
export function readStored(payment: Pick<Payment, 'metadata' | 'transactionId'>): Stored | null {
  const found = (payment.metadata as { quittance?: Stored }).quittance;
  return found === undefined || !payment.transactionId ? null : { ...found, public: payment.metadata.public };
}

/** The metadata of a payment that stores it. */
export function toMetadata({ public: shown, ...quittance }: Stored) {
  return { quittance, public: shown };
}
