import { assertNever } from '../../../core/domain/assert-never.ts';
import { comparePasted, readFee } from '../../../core/domain/lookup/pasted.ts';
import { asTyped, formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { type Html, html } from '../../web/html.ts';
import { type Page, pageUrl } from './page-state.ts';
import { ltr, renderCopyButton, trimZeros } from './pieces.ts';
import { renderWalletLinks } from './wallets.ts';

/** The raw text that a payer entered into a form, at most `MAX_FIELD_CHARACTERS`. */
export type Question = { field: 'fee' | 'paste' | 'transaction'; text: string };

/** This is enough for the longest supported link to a block explorer. */
export const MAX_FIELD_CHARACTERS = 500;

/** Helps payers to avoid mistakes before they send money: an exchange's fee, and an address that malware has changed in the clipboard. */
export function renderHelp(page: Page, question: Question | null): Html {
  const { words, invoice } = page;
  const { say } = words;
  const amount = asTyped(formatAmount(invoice.payableMicro));
  const decimals = amount.length - amount.indexOf('.') - 1;
  const fee = question?.field === 'fee' ? question.text : null;
  const paste = question?.field === 'paste' ? question.text : null;
  return html`${renderWalletLinks(page, amount)}<details${openIf(fee !== null)}><summary>${say('feeTitle')}</summary>
<p class="hint">${say('feeText', { amount: ltr(amount) })}</p>
${renderForm(page, { field: 'fee', text: fee ?? '' }, { label: say('feeLabel'), button: say('feeButton') })}
<p class="hint">${say('exchangeHint', { amount: ltr(amount), decimals })}</p>
<div id="fee-answer" role="status">${fee === null ? null : answerFee(page, fee)}</div>
</details>
<details${openIf(paste !== null)}><summary>${say('pasteTitle')}</summary>
<p class="hint">${say('pasteText')}</p>
${renderForm(page, { field: 'paste', text: paste ?? '' }, { label: say('pasteLabel'), button: say('pasteButton') })}
<div id="paste-answer" role="status">${paste === null ? null : answerPaste(page, paste)}</div>
</details>`;
}

/** The `open` attribute of `<details>`. */
export function openIf(isOpen: boolean): Html | null {
  return isOpen ? html` open` : null;
}

/** Renders a form with one field. It works without the script; the script inserts only the answer into the page. */
export function renderForm(page: Page, { field, text }: Question, words: { label: Html; button: Html }): Html {
  const id = `${field}-field`;
  const mode = field === 'fee' ? 'decimal' : 'text';
  return html`<form method="post" action="${pageUrl(page, '/ask')}#${field}-answer">
<label for="${id}">${words.label}</label>
<div class="entry"><input id="${id}" name="${field}" value="${text}" dir="ltr" inputmode="${mode}" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="${MAX_FIELD_CHARACTERS}" required><button>${words.button}</button></div>
</form>`;
}

function answerFee({ words, invoice }: Page, text: string): Html {
  const feeMicro = readFee(text);
  if (feeMicro === null) return html`<p class="notice">${words.say('feeInvalid')}</p>`;
  const amount = ltr(asTyped(formatAmount(invoice.payableMicro)));
  const total = asTyped(formatAmount(microUsdt(invoice.payableMicro + feeMicro)));
  const shown = html`<strong id="total">${ltr(total)}</strong>`;
  return html`<p>${words.say('feeResult', { total: shown, fee: ltr(trimZeros(formatAmount(feeMicro))), amount })}</p>
${renderCopyButton(words, 'total', total)}
<p class="hint">${words.say('feeCheck', { amount })}</p>`;
}

function answerPaste({ words, invoice }: Page, text: string): Html {
  const { say } = words;
  const kind = comparePasted(invoice.address, text);
  switch (kind) {
    case 'same':
      return html`<p class="good">✓ ${say('pasteSame')}</p>`;
    case 'other':
      return html`<p class="notice">${say('pasteOther')}</p>`;
    case 'no-address':
      return html`<p class="notice">${say('pasteNoAddress')}</p>`;
    default:
      return assertNever(kind);
  }
}
