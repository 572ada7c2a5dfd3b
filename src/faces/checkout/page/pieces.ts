import { keyMode, type Network } from '../../../core/domain/network.ts';
import type { Brand } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { isProofShown, type Page, type PageState, pageUrl, STATES } from './page-state.ts';
import { NETWORK_NAMES } from './wallets.ts';

/** Renders amounts, addresses and similar texts, which are left-to-right in every language and must not affect the words around them. */
export function ltr(text: string | number): Html {
  return html`<bdi dir="ltr">${text}</bdi>`;
}

const EXPLORERS: Readonly<Record<Network, string | null>> = {
  mainnet: 'https://tronscan.org/#/transaction/',
  nile: 'https://nile.tronscan.org/#/transaction/',
  devnet: null,
};

/**
 * Renders a transaction id, or another text instead of it. If there's a block explorer, it's a link, which doesn't reveal the page to the
 * explorer.
 */
export function renderTransaction(network: Network, txId: string, shown = txId): Html {
  const explorer = EXPLORERS[network];
  return explorer === null ? ltr(shown) : html`<a href="${explorer}${txId}" rel="noreferrer">${ltr(shown)}</a>`;
}

/** Renders the merchant's name, which may be written in another script. */
export function renderMerchant({ name }: Pick<Brand, 'name'>): Html {
  return html`<bdi>${name}</bdi>`;
}

type CopiedFrom = 'amount' | 'address' | 'total' | 'transaction' | 'second';

/**
 * Renders a button that the script shows; without the script, its space stays empty. `from` is the id of the element that contains the
 * text. The button has its own live region for the label after a click; otherwise screen readers would announce the surrounding answer
 * again.
 */
export function renderCopyButton(words: Words, from: CopiedFrom, text: string): Html {
  const label =
    from === 'transaction' || from === 'second'
      ? `${words.text('copy')}: ${words.text('transaction')}`
      : words.text(from === 'address' ? 'copyAddress' : 'copyAmount');
  return html`<button type="button" data-copy="${text}" data-from="${from}" data-copied="${words.text('copied')}" data-selected="${words.text('selected')}" aria-label="${label}" aria-live="off" hidden>${words.say('copy')}</button>`;
}

/** The mark has the colour of the text, and the words next to it have the same meaning as the mark. */
export function renderIcon(state: PageState): Html {
  return html`<svg class="icon" aria-hidden="true" width="28" height="28" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/>${STATES[state].drawing}</svg>`;
}

/** Formats `1.500000` as `1.5`, for fees and differences, which people only read. Amounts to be sent keep all their digits. */
export function trimZeros(amount: string): string {
  return amount.replace(/\.?0+$/, '');
}

/** Renders nothing on the main network. */
export function renderTestNotice({ words, invoice: { network } }: { words: Words; invoice: { network: Network } }) {
  if (keyMode(network) === 'live') return null;
  return html`<p class="notice">${words.say('testNetwork', { network: NETWORK_NAMES[network] })}</p>
`;
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
