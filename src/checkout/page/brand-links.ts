import { fillReturnUrl, readLink, supportLink } from '../../domain/brand/brand.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Brand } from '../../store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { renderMerchant } from './pieces.ts';

/** Whatever names a merchant, such as a page. */
export type Branded = { words: Words; invoice: { brand: Omit<Brand, 'logoId'> } };

/** The contact of the merchant, if there is one. */
export function renderSupport({ words, invoice: { brand } }: Branded): Html | null {
  if (brand.supportContact === null) return null;
  const { text, href } = supportLink(brand.supportContact);
  const shown = html`<bdi>${text}</bdi>`;
  const contact = href === null ? shown : html`<a href="${href}" rel="noreferrer">${shown}</a>`;
  return html`<p>${words.say('support', { merchant: renderMerchant(brand), contact })}</p>`;
}

/** The way back to the merchant, if there is one. No payer is sent there by force. For a paid invoice it is the next step, a button. */
export function renderReturn(
  { words, invoice: { brand, id } }: Branded & { invoice: { id: string } },
  look: 'link' | 'button',
): Html | null {
  // Checked when it was set, and here again: a link can run a script.
  const read = brand.returnUrl === null ? null : readLink(fillReturnUrl(brand.returnUrl, encodeId('inv', id)));
  if (read?.kind !== 'ok') return null;
  const text = words.say('returnTo', { merchant: renderMerchant(brand) });
  return html`<p class="return"><a${look === 'button' ? html` class="button"` : null} href="${read.url}" rel="noreferrer">${text}</a></p>`;
}
