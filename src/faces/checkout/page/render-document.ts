import { randomBytes } from 'node:crypto';
import { fillReturnUrl, readLink, supportLink } from '../../../core/domain/brand/brand.ts';
import { accentPalette } from '../../../core/domain/brand/colour.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import type { Brand } from '../../../core/store/ledger/checkout.ts';
import { readAsset } from '../../web/assets.ts';
import { type Html, html, rawHtml } from '../../web/html.ts';
import { LANGUAGES } from '../words/languages.ts';
import type { Words } from '../words/words.ts';
import type { Page } from './page-state.ts';
import { renderMerchant } from './pieces.ts';

/** The payer page's assets. The style is inlined into each page; `embed` is for shops' own pages. */
export const ASSETS = { css: readAsset('checkout.css'), js: readAsset('checkout.js'), embed: readAsset('embed.js') };

type DocumentInput = {
  title: string;
  words: Words;
  /** The nonce of the response's Content-Security-Policy. */
  nonce: string;
  main: Html;
  /** The merchant's colour, such as `#0a6549`. */
  accent?: string | null;
  /** Absent if the document has no script. `path`: the script sends requests below this path. `texts`: the script's texts. */
  script?: { path: string; texts: Record<string, string> };
};

/** Renders a complete document with its style inlined so that one response is enough to pay. */
export function renderDocument({ title, words, nonce, main, accent = null, script }: DocumentInput): string {
  const data = script && html` data-path="${script.path}" data-texts="${JSON.stringify(script.texts)}"`;
  return html`<!doctype html>
<html lang="${words.language}" dir="${words.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${title}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${rawHtml(ASSETS.css.text + accentStyle(accent))}</style>
${script ? html`<script src="${ASSETS.js.url}" nonce="${nonce}" defer></script>` : null}
</head>
<body${data ?? null}>
<main>
${main}
</main>
</body>
</html>
`.html;
}

/** Only computed colours from the palette, with six hex digits each, are inserted into the style. */
function accentStyle(accent: string | null): string {
  if (accent === null) return '';
  const { light, dark } = accentPalette(accent);
  const rule = (colours: typeof light) =>
    `:root{--accent:${colours.accent};--on-accent:${colours.onAccent};--tint:${colours.tint}}`;
  return `${rule(light)}@media screen and (prefers-color-scheme:dark){${rule(dark)}}`;
}

/** Shows the merchant, the payment's purpose, and the language switch. */
export function renderHeader(page: Page): Html {
  const { description, brand } = page.invoice;
  const purpose =
    description === null
      ? null
      : html`
<p class="purpose"><bdi>${description}</bdi></p>`;
  return html`<header>
${renderBrand(page, brand.logoId === null ? null : `/logos/${brand.logoId}`)}
${renderLanguages(page.words)}
</header>${purpose}`;
}

export function renderBrand({ words, invoice: { brand } }: Branded, logoUrl: string | null): Html {
  const logo =
    logoUrl === null
      ? null
      : html`<div class="logo"><img src="${logoUrl}" alt=""></div>
`;
  return html`${logo}<p class="merchant">${words.say('paymentTo', { merchant: renderMerchant(brand) })}</p>`;
}

/**
 * Links to the same page in other languages. Links work without the script, whereas a form would need a button. Each language's name is
 * written in that language. On a page that answers a form, the links lead back to the page itself.
 */
export function renderLanguages({ language, say }: Words): Html {
  const current = LANGUAGES.find(({ code }) => code === language)?.name ?? language;
  const links = LANGUAGES.filter(({ code }) => code !== language).map(
    ({ code, name, direction }) =>
      html`<li><a href="?lang=${code}" lang="${code}" hreflang="${code}"><bdi dir="${direction}">${name}</bdi></a></li>`,
  );
  return html`<details class="languages"><summary>${GLOBE}<span class="unseen">${say('changeLanguage')}: </span>${current}</summary>
<ul>${links}</ul>
</details>`;
}

const GLOBE = html`<svg aria-hidden="true" width="18" height="18" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"><circle cx="12" cy="12" r="10"/><path d="M2 12h20M12 2c6 6 6 14 0 20M12 2c-6 6-6 14 0 20"/></svg>`;

/** Anything that contains a merchant to show, such as a page. */
type Branded = { words: Words; invoice: { brand: Omit<Brand, 'logoId'> } };

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

/** Returns the nonce that a page marks its own scripts and styles with. Injected content doesn't have it. */
export function newNonce(): string {
  return randomBytes(16).toString('base64');
}
