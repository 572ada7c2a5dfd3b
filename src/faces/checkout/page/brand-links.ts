import { fillReturnUrl, readLink, supportLink } from '../../../core/domain/brand/brand.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import type { Brand } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { renderMerchant } from './pieces.ts';

/** Anything that contains a merchant to show, such as a page. */
export type Branded = { words: Words; invoice: { brand: Omit<Brand, 'logoId'> } };

type BrandedInvoice = Branded & { invoice: { id: string } };

/** Renders where payers can get help: the merchant's contact, or otherwise its return link, or otherwise just its name. */
export function renderSupport({ words, invoice }: BrandedInvoice): Html {
  const { brand } = invoice;
  const merchant = renderMerchant(brand);
  if (brand.supportContact === null) {
    return html`<p>${words.say('supportMerchant', { merchant: linkTo(returnUrlOf(invoice), merchant) })}</p>`;
  }
  const { text, href } = supportLink(brand.supportContact);
  return html`<p>${words.say('support', { merchant, contact: linkTo(href, html`<bdi>${text}</bdi>`) })}</p>`;
}

/**
 * Renders the link back to the merchant, if there is one. Payers are never redirected. On a paid invoice's page, the link is the next step,
 * so it's a button.
 */
export function renderReturn({ words, invoice }: BrandedInvoice, look: 'link' | 'button'): Html | null {
  const url = returnUrlOf(invoice);
  if (url === null) return null;
  const text = words.say('returnTo', { merchant: renderMerchant(invoice.brand) });
  return html`<p class="return"><a${look === 'button' ? html` class="button"` : null} href="${url}" rel="noreferrer"><span>${text}</span></a></p>`;
}

/** The URL was checked when it was set, but it's checked again here, because a link can run a script. */
function returnUrlOf({ brand, id }: BrandedInvoice['invoice']): string | null {
  const read = brand.returnUrl === null ? null : readLink(fillReturnUrl(brand.returnUrl, encodeId('inv', id)));
  return read?.kind === 'ok' ? read.url : null;
}

function linkTo(url: string | null, shown: Html): Html {
  return url === null ? shown : html`<a href="${url}" rel="noreferrer">${shown}</a>`;
}
