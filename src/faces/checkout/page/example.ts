import type { FastifyRequest } from 'fastify';
import type { Network } from '../../../core/domain/network.ts';
import type { Policy } from '../../../core/domain/policy.ts';
import { toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { Brand } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import { chooseLanguage } from '../words/languages.ts';
import { type Words, wordsOf } from '../words/words.ts';
import { newNonce } from './answer-page.ts';
import { renderTestNotice } from './page.ts';
import { renderDeadline, renderPay, renderRules } from './page-parts.ts';
import { renderIcon } from './pieces.ts';
import { renderBrand, renderDocument, renderReturn, renderSupport } from './render-document.ts';

/** A merchant's branding settings. `logoUrl` is a `data:` URL. */
export type Example = {
  brand: Omit<Brand, 'logoId'>;
  logoUrl: string | null;
  network: Network;
  policy: Policy;
  lifetimeMs: number;
  now: UnixMs;
};

/**
 * Renders the page as a payer who hasn't paid yet sees it, for the people who run the shop. The amounts are made up, the address is invalid
 * and has no QR code, and nothing can be sent. `problem` explains why there's no example. `nonce` allows its style; the page has no script.
 */
export function renderExample(
  request: Pick<FastifyRequest, 'query' | 'headers'>,
  shown: Example | { problem: Html },
): { html: string; nonce: string } {
  const nonce = newNonce();
  const words = wordsOf(chooseLanguage(request).language);
  const isShown = 'brand' in shown;
  const text = renderDocument({
    ...{ title: isShown ? `Example – ${shown.brand.name}` : 'Example', words, nonce },
    accent: isShown ? shown.brand.accent : null,
    main: html`<div class="notice" lang="en" dir="ltr"><strong>Example</strong>${isShown ? html`: what payers see. This is not an invoice: it cannot be paid, and its links do nothing.` : shown.problem}</div>
${isShown ? renderInvoice(words, shown) : null}`,
  });
  return { html: text, nonce };
}

/** This text is as long as an address, but no wallet accepts it, because base58 has no lower-case L and the checksum is wrong. */
export const NO_ADDRESS = 'TExampleExampleExampleExampleExamp';
const NO_ID = '00000000-0000-0000-0000-000000000000';
const AMOUNTS: Readonly<Record<Policy, string>> = {
  ...{ tail: '25.004217', 'tail-4': '25.0421', 'tail-3': '25.042' },
  exact: '25.00',
};

function renderInvoice(words: Words, { brand, logoUrl, network, policy, lifetimeMs, now }: Example): Html {
  const { say } = words;
  const invoice = { brand, network, id: NO_ID };
  const expiresAt = toIso(unixMs(now + lifetimeMs));
  const left = say('timeLeft', { duration: words.duration(lifetimeMs, 'short') });
  return html`<section aria-label="Example"><header>
${renderBrand({ words, invoice }, logoUrl)}
</header></section>
${renderTestNotice({ words, invoice })}<div id="invoice" data-state="waiting">
<div class="state">
<div id="status"><h1>${renderIcon('waiting')}<span>${say('waiting')}</span></h1></div>
<div id="left"><span>${left}</span></div></div>
<div id="pay">${renderPay(words, { amount: AMOUNTS[policy], price: null, address: NO_ADDRESS, qr: NO_CODE })}</div>
<div id="rules">${renderRules(words)}</div>
<div id="when">${renderDeadline(words, { expiresAt, leftMs: lifetimeMs, stands: false })}</div>
</div>
<footer>${renderSupport({ words, invoice })}${renderReturn({ words, invoice }, 'link')}</footer>`;
}

/** Replaces the QR code and has the same size. */
const NO_CODE = html`<svg class="qr" role="img" aria-label="Example: no QR code" width="222" height="222" viewBox="0 0 37 37"><path fill="#fff" d="M0 0h37v37H0z"/><path fill="none" stroke="#000" stroke-dasharray="2 1" d="M4.5 4.5h28v28h-28zl28 28m0-28l-28 28"/></svg>`;
