import { keyMode, type Network } from '../../../core/domain/network.ts';
import { type Html, html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { openIf, type Question, renderForm } from './help.ts';
import { type PartName, renderPart, titleOf, versionOf } from './page-parts.ts';
import {
  isProofShown,
  isReadable,
  type LinkPage,
  lookOf,
  type Page,
  pageUrl,
  type SuspendedPage,
  shopStateOf,
} from './page-state.ts';
import { ltr } from './pieces.ts';
import { renderDocument, renderHeader, renderLanguages, renderReturn, renderSupport } from './render-document.ts';
import { NETWORK_NAMES } from './wallets.ts';

/** What the payer entered, and the answer about a transaction. */
export type Exchange = { question: Question; answer: Html | null };

/** Renders the payer's page, which is complete without JavaScript. `exchange` is the question from one of its forms, with its answer. */
export function renderPage(page: Page, nonce: string, exchange: Exchange | null = null): string {
  const { words, invoice } = page;
  return renderDocument({
    title: titleOf(page, lookOf(page)),
    words,
    nonce,
    accent: invoice.brand.accent,
    script: { path: `/c/${invoice.checkoutToken}`, texts: textsOf(words) },
    main: html`${renderHeader(page)}
${renderTestNotice(page)}${renderInvoice(page, exchange)}
${renderFooter(page)}
<p id="said" class="unseen" role="status"></p>`,
  });
}

/**
 * Renders the page for an invoice that can't be relied on. The script loads the whole page as soon as the invoice can be relied on again.
 */
export function renderSuspended(page: SuspendedPage, nonce: string): string {
  const { words } = page;
  return renderDocument({
    title: titleOf(page, lookOf(page)),
    words,
    nonce,
    script: { path: `/c/${page.invoice.checkoutToken}`, texts: connectionTextsOf(words) },
    main: html`<header>${renderLanguages(words)}</header>
${renderInvoice(page, null)}
<p id="said" class="unseen" role="status"></p>`,
  });
}

/**
 * Renders the parts that change with the state. The script replaces each part whose content has changed. The look-up is one of them, but
 * it's never replaced.
 */
function renderInvoice(page: LinkPage, exchange: Exchange | null): Html {
  const look = lookOf(page);
  const question = exchange?.question ?? null;
  const content = (name: PartName) => renderPart(name, page, look, question);
  const part = (name: PartName) =>
    html`<div id="${name}"${name === 'status' ? html` role="status"` : null} data-part>${content(name)}</div>
`;
  const readable = isReadable(page) ? page : null;
  return html`<div id="invoice" data-state="${look.state}" data-shop-state="${shopStateOf(page)}" data-version="${versionOf(page)}"${readable && html` data-now="${readable.now}"`}>
<div class="state">
${part('status')}${part('left')}</div>
${part('progress')}${part('found')}${part('pay')}<div class="questions">
${readable && renderFind(readable, content('question'), exchange)}${part('help')}</div>
${part('rules')}${part('when')}${part('check')}</div>`;
}

/** Renders nothing on the main network. */
export function renderTestNotice({
  words,
  invoice: { network },
}: {
  words: Words;
  invoice: { network: Network };
}): Html | null {
  if (keyMode(network) === 'live') return null;
  return html`<p class="notice">${words.say('testNetwork', { network: NETWORK_NAMES[network] })}</p>
`;
}

/** The form is always shown, because payers who paid twice or too little also look for their payment. `question` depends on the state. */
function renderFind(page: Page, question: Html, exchange: Exchange | null): Html {
  const { say } = page.words;
  const asked = exchange?.question.field === 'transaction' ? exchange : null;
  return html`<details id="find"${openIf(asked !== null)}><summary id="question" data-part>${question}</summary>
<p class="hint">${say('findText')}</p>
${renderForm(page, { field: 'transaction', text: asked?.question.text ?? '' }, { label: say('findLabel'), button: say('findButton') })}
<div id="transaction-answer" role="status">${asked?.answer ?? null}</div>
</details>
`;
}

/** The return link is left out if the page has the button, which is the case for a paid invoice. */
function renderFooter(page: Page): Html {
  return html`<footer>${renderSupport(page)}${renderReturn(page, 'link')}${renderProofLink(page)}</footer>`;
}

/** Renders a link for readers who verify the address with a key that the page doesn't know. The file name doesn't need to be translated. */
export function renderProofLink(page: Page): Html | null {
  const { network, address } = page.invoice;
  if (!isProofShown(page) || page.site.proofOf(network, address) === null) return null;
  return html`<p class="hint"><a href="${pageUrl(page, '/address-proof.json')}">${ltr('address-proof.json')}</a></p>`;
}

/** The script's texts for copying. */
export function copyTextsOf({ text }: Words): Record<string, string> {
  return {
    copied: text('copied'),
    selected: text('selected'),
    copiedText: text('copiedText', { text: '{text}' }),
    notCopied: text('notCopied'),
  };
}

/** The script's texts about its connection. */
function connectionTextsOf({ text }: Words): Record<string, string> {
  return { updatesItself: text('updatesItself'), noConnection: text('noConnection') };
}

/** All texts that the script itself shows. */
function textsOf(words: Words): Record<string, string> {
  const { text } = words;
  return {
    ...copyTextsOf(words),
    ...connectionTextsOf(words),
    checking: text('checking'),
    timeLeft: text('timeLeft', { duration: '{duration}' }),
    lessThanMinute: text('lessThanMinute'),
    searching: text('searching'),
    notAnswered: text('answerUnavailable', { duration: words.duration(60_000) }),
  };
}
