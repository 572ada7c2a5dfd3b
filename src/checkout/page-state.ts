import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { CheckoutInvoice } from '../store/checkout.ts';
import type { Words } from './words.ts';

/** What pages need to know of the service. `usdt`: the token's contract, by the networks that this process knows it of. */
export type Site = { publicUrl(): string; usdt: Partial<Record<Network, string>> };

/** What one reader of a page sees at one moment. */
export type Page = {
  invoice: CheckoutInvoice;
  words: Words;
  /** The reader chose the language by hand, so links keep it. */
  isLanguageAsked: boolean;
  now: UnixMs;
  site: Site;
};
