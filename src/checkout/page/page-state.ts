import type { AddressProof } from '../../domain/manifest/manifest.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';
import type { Words } from '../words/words.ts';
import type { SuspendedLink } from './suspension.ts';

/** `usdt`: the token's contract, by the networks that this process knows it of; `proofOf`: what shows that an address is vouched for. */
export type Site = {
  publicUrl(): string;
  usdt: Partial<Record<Network, string>>;
  proofOf(network: Network, address: string): AddressProof | null;
};

/** A reader's view of a page at one moment. */
export type Page = {
  invoice: CheckoutInvoice;
  words: Words;
  /** The reader chose the language by hand, so links keep it. */
  isLanguageAsked: boolean;
  now: UnixMs;
  site: Site;
};

/** A page whose invoice Quittance can't rely on. */
export type SuspendedPage = Pick<Page, 'words' | 'isLanguageAsked'> & { invoice: SuspendedLink };

export type LinkPage = Page | SuspendedPage;

/** Whether the invoice of a page is there. */
export function isReadable(page: LinkPage): page is Page {
  return 'id' in page.invoice;
}
