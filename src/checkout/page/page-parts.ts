import { assertNever } from '../../domain/assert-never.ts';
import { toIso } from '../../domain/time.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import type { TextKey } from '../words/catalogue.ts';
import type { Words } from '../words/words.ts';
import { renderReturn } from './brand-links.ts';
import { openIf, type Question, renderHelp } from './help.ts';
import { type NetworkFee, networkFeeOf } from './network-fee.ts';
import { isReadable, type LinkPage, type Page } from './page-state.ts';
import { pageUrl } from './page-url.ts';
import { ltr, renderCopyButton, renderIcon, renderMerchant, renderShortTransaction } from './pieces.ts';
import type { Suspension } from './suspension.ts';
import type { CheckoutView } from './view.ts';
import { renderOwnWallet } from './wallets.ts';

/** The parts of the page that follow the state, in their order. Each is replaced as a whole. */
export const PART_NAMES = ['status', 'left', 'progress', 'found', 'pay', 'help', 'rules', 'when', 'check'] as const;

export type PartName = (typeof PART_NAMES)[number];

/** The inputs of a part: while they are the same, so is the part. Facts of an invoice that never change are left out. */
export function partKey(name: PartName, page: LinkPage, view: CheckoutView): string {
  const { state, blind, transaction } = view;
  switch (name) {
    case 'status':
      return [isGone(page, view) ? 'gone' : state, view.suspended, isShownBlind(view)].join();
    case 'pay':
      return [view.amount !== null, isGone(page, view)].join();
    case 'rules':
      return String(isAskedToPay(page, view) && (networkFeeOf(page.invoice, view, page.now)?.sun ?? ''));
    case 'help':
      return String(isAskedToPay(page, view));
    case 'left':
      return String(isCounted(page, view));
    case 'when':
      return isAskedToPay(page, view) ? [state, state === 'waiting' && blind].join() : '';
    case 'progress':
      return state === 'confirming' ? [transaction?.blockNumber, builtOn(view)].join() : '';
    case 'found':
      if (transaction === null || !isReadable(page)) return '';
      return [state === 'paid', transaction.txId, transaction.blockNumber, page.invoice.secondTxId].join();
    case 'check':
      return String(state === 'paid');
    default:
      return assertNever(name);
  }
}

/** `question`: what was entered into a form of the page. */
export function renderPart(name: PartName, page: LinkPage, view: CheckoutView, question: Question | null = null): Html {
  switch (name) {
    case 'status':
      return renderStatus(page, view);
    case 'pay':
      return view.amount === null || view.address === null || !isReadable(page)
        ? NOTHING
        : renderPayOrNot(page, { ...view, amount: view.amount, address: view.address }, question);
    case 'left':
      return isCounted(page, view) ? renderLeft(page) : NOTHING;
    case 'when':
      return isAskedToPay(page, view) ? renderWhen(page, view) : NOTHING;
    case 'rules':
      return isAskedToPay(page, view) ? renderRules(page.words, networkFeeOf(page.invoice, view, page.now)) : NOTHING;
    case 'help':
      return isAskedToPay(page, view) ? renderHelp(page, question) : NOTHING;
    case 'progress':
      return renderProgress(page, view);
    case 'found':
      return isReadable(page) ? renderFound(page, view) : NOTHING;
    case 'check':
      return renderCheck(page, view);
    default:
      return assertNever(name);
  }
}

const NOTHING = html``;

/** Whether the block of the payment was replaced, so that the payer waits for it instead of paying again. */
function isGone(page: LinkPage, { amount }: CheckoutView): boolean {
  return amount !== null && isReadable(page) && page.invoice.hadPayment;
}

function isAskedToPay(page: LinkPage, view: CheckoutView): page is Page {
  return view.amount !== null && isReadable(page) && !page.invoice.hadPayment;
}

const MINUTE_MS = 60_000;

/** The title of the window. */
export function titleOf(page: LinkPage, view: CheckoutView): string {
  const { words } = page;
  const { state, projectName: merchant, amount } = view;
  if (merchant === null) return words.text('suspended');
  if (isGone(page, view)) return `${words.text('gone')} – ${merchant}`;
  switch (state) {
    case 'paid':
      return words.text('titlePaid', { merchant });
    case 'confirming':
      return words.text('titleFound', { merchant });
    case 'withdrawn':
    case 'settled':
      return `${words.text(state)} – ${merchant}`;
    case 'suspended':
      return `${words.text(suspendedTitle(view))} – ${merchant}`;
    default:
      return words.text('titlePay', { amount: amount ?? '', merchant });
  }
}

/** Only where the payer waits for the network. */
function isShownBlind({ state, blind }: CheckoutView): boolean {
  return blind && state !== 'paid' && state !== 'settled' && state !== 'suspended';
}

/** Screen readers announce it, so it holds nothing that changes within a state. */
function renderStatus(page: LinkPage, view: CheckoutView): Html {
  const { say } = page.words;
  const blind = isShownBlind(view) ? html`<p class="notice">${say('blindText')}</p>` : null;
  const heading = (text: Html) => html`<h1>${renderIcon(view.state)}<span>${text}</span></h1>`;
  if (isGone(page, view)) return html`${heading(say('gone'))}<p class="notice">${say('goneText')}</p>${blind}`;
  switch (view.state) {
    case 'waiting':
      return html`${heading(say('waiting'))}${blind}`;
    case 'expired':
      return html`${heading(say('expired'))}<p>${say('expiredText')}</p>${blind}`;
    case 'withdrawn':
      return html`${heading(say('withdrawn'))}<p>${say('withdrawnText')}</p>${blind}`;
    case 'settled':
      return html`${heading(say('settled'))}<p>${say('settledText')}</p>`;
    case 'suspended':
      return html`${heading(say(suspendedTitle(view)))}${SUSPENDED_TEXTS[view.suspended ?? 'unconfirmed'].map((key) => html`<p>${say(key)}</p>`)}`;
    case 'confirming':
      return html`${heading(say('found'))}<p>${say('foundText')}</p>${blind}`;
    case 'paid':
      return html`${heading(say('paid'))}<p>${say('paidText')}</p>`;
    default:
      return assertNever(view.state);
  }
}

/** What a payer reads while payment is suspended, for each reason. */
const SUSPENDED_TEXTS: Readonly<Record<Suspension, readonly TextKey[]>> = {
  unconfirmed: ['suspendedText', 'suspendedPaid'],
  frozen: ['frozenText', 'suspendedPaid'],
  paused: ['pausedText'],
};

const suspendedTitle = ({ suspended }: CheckoutView): TextKey => (suspended === 'paused' ? 'paused' : 'suspended');

/** A payer who waits for a payment to reappear is not asked for another one, except in case it failed. */
function renderPayOrNot(
  page: Page,
  { amount, address }: { amount: string; address: string },
  question: Question | null,
): Html {
  const { words } = page;
  const pay = html`${renderOwnWallet(page)}${renderPay(words, { amount, address, qr: renderQr(address, words.text('qrLabel'), 6) })}`;
  if (!page.invoice.hadPayment) return pay;
  const isAsked = question !== null && question.field !== 'transaction';
  return html`<details${openIf(isAsked)}><summary>${words.say('goneShow')}</summary>
${pay}
${renderRules(words)}
${renderHelp(page, question)}
</details>`;
}

type Payment = { amount: string; address: string; qr: Html };

/** What to send, and where. `qr`: the code of the address. */
export function renderPay(words: Words, { amount, address, qr }: Payment): Html {
  const { say } = words;
  // The digits after the requested cents tell this payment from others.
  const tail = amount.indexOf('.') + 3;
  const size = amount.length > 13 ? ' longest' : amount.length > 9 ? ' long' : '';
  return html`<section class="row net" aria-labelledby="network-label"><h2 id="network-label">${say('receiptNetwork')}</h2><p class="network">${say('network')}</p></section>
<section class="sum" aria-labelledby="amount-label">
<h2 id="amount-label">${say('sendExactly')}</h2>
<div class="row"><p class="amount${size}" dir="ltr"><span id="amount">${amount.slice(0, tail)}<b>${amount.slice(tail)}</b></span> <span class="unit">USDT</span></p>${renderCopyButton(words, 'amount', amount)}</div>
<p class="hint">${say('allDigits')}</p>
</section>
<section class="to" aria-labelledby="address-label">
<div class="row"><h2 id="address-label">${say('toAddress')}</h2>${renderCopyButton(words, 'address', address)}</div>
<p class="address" dir="ltr"><span id="address">${groupsOf(address)}</span></p>
</section>
<section class="scan">${qr}<p class="hint">${say('qrHint')}</p></section>`;
}

/** An address in groups of four, as people compare it. There is nothing between the groups, so the selected text is the address. */
function groupsOf(address: string): Html[] {
  const groups = [...address.slice(0, -6).matchAll(/.{1,4}/g)].map(([group]) => group);
  return [...groups, address.slice(-6)].map((group) => html`<span>${group}</span><wbr>`);
}

/** What costs payers their money, in a sentence each. The script compares the price of energy with what a wallet has. */
export function renderRules({ say }: Words, fee: NetworkFee | null = null): Html {
  const cost =
    fee &&
    html`<li data-energy-sun="${fee.sun}">${say('networkFee', { usual: ltr(fee.usual), first: ltr(fee.first) })}</li>
`;
  return html`<ul class="hint">
<li>${say('oneTransfer')}</li>
<li>${say('neverHistory')}</li>
${cost}</ul>`;
}

/** A payer whose payment is on its way is not hurried, and a clock that stands counts nothing. */
function isCounted(page: LinkPage, view: CheckoutView): page is Page {
  return view.state === 'waiting' && !view.blind && isAskedToPay(page, view);
}

/** The time that is left, in the line of the status. Without the script the figure would grow old. */
function renderLeft({ words, now, invoice }: Page): Html {
  const leftMs = invoice.expiresAt - now;
  const left =
    leftMs < MINUTE_MS
      ? words.say('lessThanMinute')
      : words.say('timeLeft', { duration: words.duration(leftMs, 'short') });
  return html`<span class="scripted" data-until="${toIso(invoice.expiresAt)}">${left}</span>`;
}

/** Until when to pay. */
function renderWhen({ words, now, invoice }: Page, { state, blind }: CheckoutView): Html {
  const expiresAt = toIso(invoice.expiresAt);
  if (state === 'expired') {
    return html`<p><span>${words.say('timeEnded', { time: words.time(expiresAt) })}</span></p>`;
  }
  return renderDeadline(words, { expiresAt, leftMs: invoice.expiresAt - now, stands: blind });
}

const DAY_MS = 24 * 60 * MINUTE_MS;

type Deadline = { expiresAt: string; leftMs: number; stands: boolean };

/** `leftMs` at the opening, for readers without the script. `stands`: the clock does. */
export function renderDeadline(words: Words, { expiresAt, leftMs, stands }: Deadline): Html {
  const { say } = words;
  const time = leftMs < DAY_MS ? words.clock(expiresAt) : words.time(expiresAt);
  const left = html`<span class="unscripted">${say('timeLeftAtOpening', { duration: words.duration(leftMs) })}</span>`;
  return html`<p><strong>${say('payBy', { time })}</strong> <span class="hint">${say('laterCounts')}</span>${stands ? html`<span>${say('clockStands')}</span>` : left}</p>`;
}

/** With 27 producers a block is irreversible once 19 of them have built on it. */
const PRODUCERS = 19;

function builtOn({ transaction }: CheckoutView): number {
  return Math.min(transaction?.confirmations ?? 0, PRODUCERS);
}

function renderProgress({ words }: LinkPage, view: CheckoutView): Html {
  const { state, transaction } = view;
  if (state !== 'confirming' || transaction === null) return NOTHING;
  const built = builtOn(view);
  return html`<label for="built">${words.say('foundInBlock', { block: ltr(transaction.blockNumber), required: PRODUCERS })}</label>
<p class="built"><progress id="built" max="${PRODUCERS}" value="${built}"></progress> <span>${words.say('built', { built: ltr(built), required: ltr(PRODUCERS) })}</span></p>`;
}

function renderFound(page: Page, { state, transaction }: CheckoutView): Html {
  if (transaction === null) return NOTHING;
  const { words } = page;
  const { say } = words;
  const back = state === 'paid' ? renderReturn(page, 'button') : null;
  const { secondTxId, brand, network } = page.invoice;
  const second =
    secondTxId === null
      ? null
      : html`<p class="notice">${say('secondPayment', { transaction: renderShortTransaction(words, network, secondTxId, 'second'), merchant: renderMerchant(brand) })}</p>`;
  const receipt =
    state === 'paid' && !page.invoice.isDenied
      ? html`<p class="no-print"><a href="${pageUrl(page, '/receipt')}">${say('receiptLink')}</a></p>`
      : null;
  const amount = ltr(`${transaction.amount} USDT`);
  return html`${state === 'paid' ? html`<p class="total">${amount}</p>` : null}<dl>
${state === 'paid' ? null : html`<dt>${say('amount')}</dt><dd>${amount}</dd>`}
<dt>${say('time')}</dt><dd>${words.time(transaction.blockTime)}</dd>
<dt>${say('block')}</dt><dd>${ltr(transaction.blockNumber)}</dd>
<dt>${say('transaction')}</dt><dd>${renderShortTransaction(words, network, transaction.txId, 'transaction')}</dd>
</dl>${second}${back}${receipt}`;
}

function renderCheck(page: LinkPage, view: CheckoutView): Html {
  if (view.state === 'paid') return NOTHING;
  return html`<p><a href="${pageUrl(page)}">${page.words.say('checkNow')}</a></p>`;
}
