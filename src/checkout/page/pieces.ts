import type { Network } from '../../domain/network.ts';
import type { Brand } from '../../store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import type { Words } from '../words/words.ts';
import { type PageState, STATES } from './page-state.ts';

/** Amounts, addresses and the like are written from left to right within any language, and do not disturb the words around them. */
export function ltr(text: string | number): Html {
  return html`<bdi dir="ltr">${text}</bdi>`;
}

/** Where anybody can look a transaction up. */
const EXPLORERS: Readonly<Record<Network, string | null>> = {
  mainnet: 'https://tronscan.org/#/transaction/',
  nile: 'https://nile.tronscan.org/#/transaction/',
  devnet: null,
};

/** A transaction's id, or another text for it; a link to a block explorer, which learns nothing of the page, where there is one. */
export function renderTransaction(network: Network, txId: string, shown = txId): Html {
  const explorer = EXPLORERS[network];
  return explorer === null ? ltr(shown) : html`<a href="${explorer}${txId}" rel="noreferrer">${ltr(shown)}</a>`;
}

/** `0ca1…0ca1`, which leads to the block explorer. */
export function renderShortTransaction(network: Network, txId: string): Html {
  return renderTransaction(network, txId, `${txId.slice(0, 4)}…${txId.slice(-4)}`);
}

/** Copies the whole id of a transaction, which paper shows instead. */
export function renderCopyTransaction(words: Words, txId: string, from: 'transaction' | 'second'): Html {
  return html`<bdi class="unseen" id="${from}" dir="ltr" aria-hidden="true">${txId}</bdi>${renderCopyButton(words, from, txId)}`;
}

/** The merchant's name, which may be in another script. */
export function renderMerchant({ name }: Pick<Brand, 'name'>): Html {
  return html`<bdi>${name}</bdi>`;
}

type CopiedFrom = 'amount' | 'address' | 'total' | 'transaction' | 'second';

/**
 * Shown by the script; its place is kept free without it. `from` is the id of the element that shows the text. A region of its own
 * announces the label after a click, so that the answer around the button does not announce it once more.
 */
export function renderCopyButton(words: Words, from: CopiedFrom, text: string): Html {
  const label =
    from === 'transaction' || from === 'second'
      ? `${words.text('copy')}: ${words.text('transaction')}`
      : words.text(from === 'address' ? 'copyAddress' : 'copyAmount');
  return html`<button type="button" data-copy="${text}" data-from="${from}" data-copied="${words.text('copied')}" data-selected="${words.text('selected')}" aria-label="${label}" aria-live="off" hidden>${words.say('copy')}</button>`;
}

/** Drawn with the colour of the text; the words beside it say the same. */
export function renderIcon(state: PageState): Html {
  return html`<svg class="icon" aria-hidden="true" width="28" height="28" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/>${STATES[state].drawing}</svg>`;
}

/** `1.500000` → `1.5`: for fees and differences, which nobody has to type. Amounts to send keep all their digits. */
export function trimZeros(amount: string): string {
  return amount.replace(/\.?0+$/, '');
}
