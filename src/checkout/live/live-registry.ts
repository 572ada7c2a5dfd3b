import type { LiveMessage } from '../page/live-message.ts';
import type { LinkedInvoice, LinkPage, Page } from '../page/page-state.ts';

export type Reader = Pick<Page, 'words' | 'isLanguageAsked' | 'site'>;

/** A reader's page of a link. `sent` is its content; `send` is `null` until the reader can be told. */
export type OpenPage = {
  link: OpenLink;
  reader: Reader;
  sent: LinkPage | null;
  version: string;
  send: ((message: LiveMessage) => void) | null;
};

/** A link with open pages, and what was read of its invoice last; `null` until the first answer. */
export type OpenLink = {
  token: string;
  invoice: LinkedInvoice | null;
  /** That of the invoice, once it was read. It stays while payment is suspended. */
  invoiceId: string | null;
  isBlind: boolean;
  pages: Set<OpenPage>;
};

export type LiveRegistry = ReturnType<typeof createLiveRegistry>;

/** The open pages, by their links and by the ids of their invoices. Nothing is kept of a link without an open page. */
export function createLiveRegistry() {
  const byToken = new Map<string, OpenLink>();
  const byInvoice = new Map<string, OpenLink>();
  let pageCount = 0;
  return {
    pageCount: (): number => pageCount,
    pagesOf: (token: string): number => byToken.get(token)?.pages.size ?? 0,
    links: (): Iterable<OpenLink> => byToken.values(),
    findByInvoice: (id: string): OpenLink | undefined => byInvoice.get(id),
    add: (token: string, reader: Reader): OpenPage => {
      const link = byToken.get(token) ?? { token, invoice: null, invoiceId: null, isBlind: false, pages: new Set() };
      const page: OpenPage = { link, reader, sent: null, version: '', send: null };
      byToken.set(token, link);
      link.pages.add(page);
      pageCount += 1;
      return page;
    },
    remove: (page: OpenPage): void => {
      const { link } = page;
      if (!link.pages.delete(page)) return;
      pageCount -= 1;
      if (link.pages.size > 0) return;
      byToken.delete(link.token);
      if (link.invoiceId !== null) byInvoice.delete(link.invoiceId);
    },
    /** Notes what was read of a link, unless its last page was closed meanwhile. */
    learn: (link: OpenLink, invoice: LinkedInvoice): void => {
      if (byToken.get(link.token) !== link) return;
      link.invoice = invoice;
      if (!('id' in invoice)) return;
      link.invoiceId = invoice.id;
      byInvoice.set(invoice.id, link);
    },
  };
}
