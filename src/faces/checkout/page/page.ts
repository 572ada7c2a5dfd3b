import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { assertNever } from '../../../core/domain/assert-never.ts';
import { comparePasted, readFee } from '../../../core/domain/lookup/pasted.ts';
import { asTyped, formatAmount, microUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { Policy } from '../../../core/domain/policy.ts';
import { formatPrice, type Price } from '../../../core/domain/price.ts';
import { toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { Brand, CheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import { chooseLanguage } from '../words/languages.ts';
import { type TextKey, type Words, wordsOf } from '../words/words.ts';
import {
  confirmationsOf,
  isBlind,
  isReadable,
  type LinkPage,
  lookOf,
  type Page,
  type PageLook,
  type PageState,
  pageUrl,
  type SuspendedPage,
  shopStateOf,
} from './page-state.ts';
import {
  copyTextsOf,
  ltr,
  renderCopyButton,
  renderIcon,
  renderMerchant,
  renderProofLink,
  renderTestNotice,
  renderTransaction,
  trimZeros,
} from './pieces.ts';
import {
  newNonce,
  renderBrand,
  renderDocument,
  renderHeader,
  renderLanguages,
  renderReturn,
  renderSupport,
} from './render-document.ts';
import { renderOwnWallet, renderWalletLinks } from './wallets.ts';

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

const NOTHING = html``;

/** `key` contains the inputs of a part: the part changes only if its key does. Facts about an invoice that never change aren't included. */
type Part = {
  key(page: LinkPage, look: PageLook): Key;
  render(page: LinkPage, look: PageLook, question: Question | null): Html;
};
/** `null`: the part is empty. */
type Key = string | number | boolean | null;

/** Makes a part that is shown only if the invoice is readable. */
function ofInvoice(
  key: (page: Page, look: PageLook) => Key,
  render: (page: Page, look: PageLook, question: Question | null) => Html,
): Part {
  return {
    key: (page, look) => (isReadable(page) ? key(page, look) : null),
    render: (page, look, question) => (isReadable(page) ? render(page, look, question) : NOTHING),
  };
}

/** The parts of the page that depend on the state, in order. Each is replaced as a whole. */
const PARTS = {
  /** Screen readers announce this part, so it must not contain anything that changes while the state stays the same. */
  status: {
    key: (_page, { heading, values, texts, isShownBlind }) =>
      [heading, ...Object.values(values), ...texts, isShownBlind].join(),
    render: renderStatus,
  },
  /**
   * The page shows this only while waiting, because payers who have already sent the money shouldn't be hurried, and a stopped clock has
   * nothing to count.
   */
  left: ofInvoice((_page, { state }) => state === 'waiting' || null, renderLeft),
  progress: ofInvoice(
    // A sighted payment that is set aside has no transfer.
    ({ invoice }, { state }) =>
      state === 'seen' && invoice.transfer ? [invoice.transfer.blockNumber, builtOn(invoice)].join() : null,
    renderProgress,
  ),
  found: ofInvoice(
    ({ invoice: { transfer, secondTxId } }, { state }) =>
      transfer && [state === 'paid', transfer.txId, transfer.blockNumber, secondTxId].join(),
    renderFound,
  ),
  pay: ofInvoice((_page, { pay }) => pay, renderPayOrFolded),
  question: ofInvoice(
    (_page, { question }) => question,
    ({ words }, { question }) => (question === null ? NOTHING : words.say(question)),
  ),
  help: ofInvoice(
    (_page, { pay }) => pay === 'open' || null,
    (page, _look, question) => renderHelp(page, question),
  ),
  rules: ofInvoice(
    (page, { pay }) => (pay === 'open' ? (networkFeeOf(page)?.sun ?? 0) : null),
    (page) => renderRules(page.words, networkFeeOf(page)),
  ),
  when: ofInvoice(
    ({ invoice }, { state, pay }) => (pay === 'open' ? (invoice.status === 'EXPIRED' ? invoice.status : state) : null),
    renderWhen,
  ),
  check: {
    key: (_page, { state }) => state !== 'paid' || null,
    render: (page) => html`<p><a href="${pageUrl(page)}">${page.words.say('checkNow')}</a></p>`,
  },
} satisfies Record<string, Part>;

type PartName = keyof typeof PARTS;

export const PART_NAMES = Object.keys(PARTS) as PartName[];

function partKey(name: PartName, page: LinkPage, look: PageLook): Key {
  return PARTS[name].key(page, look);
}

/** `question` is the text that the payer entered in a form on the page. */
function renderPart(name: PartName, page: LinkPage, look: PageLook, question: Question | null = null): Html {
  return partKey(name, page, look) === null ? NOTHING : PARTS[name].render(page, look, question);
}

/** A message to the page's script, with each changed part's HTML. */
export type LiveMessage = {
  version: string;
  state: PageState;
  shopState: ReturnType<typeof shopStateOf>;
  title: string;
  /** The server's time in milliseconds, because the device's clock may be wrong. */
  now: number;
  parts: Partial<Record<PartName, string>>;
};

/** Returns the parts of `after` that differ from `before`, or all parts if `before` is `null`. */
export function composeMessage(before: LinkPage | null, after: LinkPage & { now: UnixMs }): LiveMessage {
  const [old, look] = [before && lookOf(before), lookOf(after)];
  const parts: LiveMessage['parts'] = {};
  for (const name of PART_NAMES) {
    if (before && old && partKey(name, before, old) === partKey(name, after, look)) continue;
    parts[name] = renderPart(name, after, look).html;
  }
  return {
    ...{ version: versionOf(after), state: look.state, shopState: shopStateOf(after) },
    ...{ title: titleOf(after, look), now: after.now, parts },
  };
}

/**
 * Returns 16 hex characters that change if and only if the visible content changes, except for the countdown, or if the state for shops
 * changes.
 */
export function versionOf(page: LinkPage): string {
  const look = lookOf(page);
  const keys = PART_NAMES.map((name) => partKey(name, page, look));
  return createHash('sha256')
    .update([shopStateOf(page), ...keys].join('\n'))
    .digest('hex')
    .slice(0, 16);
}

const MINUTE_MS = 60_000;

/** The browser window's title. */
function titleOf(page: LinkPage, { title, heading, values }: PageLook): string {
  const { words } = page;
  if (!isReadable(page)) return words.text(heading);
  const merchant = page.invoice.brand.name;
  if (title === null) return `${words.text(heading, values)} – ${merchant}`;
  return words.text(title, { amount: asTyped(formatAmount(page.invoice.payableMicro)), merchant });
}

function renderStatus({ words: { say } }: LinkPage, { state, heading, values, texts, notice, isShownBlind }: PageLook) {
  const notices: TextKey[] = [...(notice === null ? [] : [notice]), ...(isShownBlind ? (['blindText'] as const) : [])];
  return html`<h1>${renderIcon(state)}<span>${say(heading, values)}</span></h1>${texts.map((key) => html`<p>${say(key)}</p>`)}${notices.map((key) => html`<p class="notice">${say(key)}</p>`)}`;
}

/** A payer who is waiting for a payment to reappear isn't asked to pay again. The instructions are folded, in case the payment failed. */
function renderPayOrFolded(page: Page, look: PageLook, question: Question | null): Html {
  const { words, invoice } = page;
  const { address, price } = invoice;
  const amount = asTyped(formatAmount(invoice.payableMicro));
  const pay = html`${renderOwnWallet(page)}${renderPay(words, { amount, price, address, qr: renderQr(address, words.text('qrLabel'), 6) })}`;
  if (look.pay === 'open') return pay;
  const isAsked = question !== null && question.field !== 'transaction';
  return html`<details${openIf(isAsked)}><summary>${words.say('goneShow')}</summary>
${pay}
${renderRules(words)}
${renderHelp(page, question)}
</details>`;
}

type Payment = { amount: string; price: Price | null; address: string; qr: Html };

/** Renders the amount to pay and the address. `qr` is the address as a QR code. */
function renderPay(words: Words, { amount, price, address, qr }: Payment): Html {
  const { say } = words;
  // The digits after the requested cents distinguish this payment from others.
  const tail = amount.indexOf('.') + 3;
  const size = amount.length > 13 ? ' longest' : amount.length > 9 ? ' long' : '';
  return html`<section class="row net" aria-labelledby="network-label"><h2 id="network-label">${say('receiptNetwork')}</h2><p class="network">${say('network')}</p></section>
<section class="sum" aria-labelledby="amount-label">
${renderSumHeading(html`<h2 id="amount-label">${say('sendExactly')}</h2>`, price)}
<div class="row"><p class="amount${size}" dir="ltr"><span id="amount">${amount.slice(0, tail)}<b>${amount.slice(tail)}</b></span> <span class="unit">USDT</span></p>${renderCopyButton(words, 'amount', amount)}</div>
<p class="hint">${say('allDigits')}</p>
</section>
<section class="to" aria-labelledby="address-label">
<div class="row"><h2 id="address-label">${say('toAddress')}</h2>${renderCopyButton(words, 'address', address)}</div>
<p class="address" dir="ltr"><span id="address">${groupsOf(address)}</span></p>
</section>
<section class="scan">${qr}<p class="hint">${say('qrHint')}</p></section>`;
}

/**
 * The price is shown small and at a distance from the amount, so that no payer sends the price by mistake. It doesn't need a line of its
 * own.
 */
function renderSumHeading(heading: Html, price: Price | null): Html {
  return price === null
    ? heading
    : html`<div class="row">${heading}<p class="hint">${ltr(formatPrice(price))}</p></div>`;
}

/**
 * Splits an address into groups of four, because people compare it that way. There's no text between the groups, so selecting the address
 * selects exactly its characters.
 */
function groupsOf(address: string): Html[] {
  const groups = [...address.slice(0, -6).matchAll(/.{1,4}/g)].map(([group]) => group);
  return [...groups, address.slice(-6)].map((group) => html`<span>${group}</span><wbr>`);
}

/** Renders the mistakes that cost payers money, each in one sentence. The script compares the energy price with the wallet's balance. */
function renderRules({ say }: Words, fee: NetworkFee | null = null): Html {
  const cost =
    fee &&
    html`<li data-energy-sun="${fee.sun}">${say('networkFee', { usual: ltr(fee.usual), first: ltr(fee.first) })}</li>
`;
  return html`<ul class="hint">
<li>${say('oneTransfer')}</li>
<li>${say('neverHistory')}</li>
${cost}</ul>`;
}

/** Renders the remaining time for the status line. It's shown only if the script runs, because nothing else would keep it up to date. */
function renderLeft({ words, now, invoice }: Page): Html {
  const leftMs = invoice.expiresAt - now;
  const left =
    leftMs < MINUTE_MS
      ? words.say('lessThanMinute')
      : words.say('timeLeft', { duration: words.duration(leftMs, 'short') });
  return html`<span class="scripted" data-until="${toIso(invoice.expiresAt)}">${left}</span>`;
}

/** The deadline. */
function renderWhen({ words, now, invoice }: Page, { state }: PageLook): Html {
  const expiresAt = toIso(invoice.expiresAt);
  if (invoice.status === 'EXPIRED') {
    return html`<p><span>${words.say('timeEnded', { time: words.time(expiresAt) })}</span></p>`;
  }
  return renderDeadline(words, { expiresAt, leftMs: invoice.expiresAt - now, isPaused: state === 'blind' });
}

const DAY_MS = 24 * 60 * MINUTE_MS;

type Deadline = { expiresAt: string; leftMs: number; isPaused: boolean };

/**
 * `leftMs` is the time that remained when the page was opened, for readers without the script. `isPaused` is about the countdown.
 */
function renderDeadline(words: Words, { expiresAt, leftMs, isPaused }: Deadline): Html {
  const { say } = words;
  const time = leftMs < DAY_MS ? words.clock(expiresAt) : words.time(expiresAt);
  const left = html`<span class="unscripted">${say('timeLeftAtOpening', { duration: words.duration(leftMs) })}</span>`;
  return html`<p><strong>${say('payBy', { time })}</strong> <span class="hint">${say('laterCounts')}</span>${isPaused ? html`<span>${say('clockStands')}</span>` : left}</p>`;
}

/** With 27 producers, a block is irreversible once 19 of them have built on it. */
const PRODUCERS = 19;

function builtOn(invoice: CheckoutInvoice): number {
  return Math.min(confirmationsOf(invoice), PRODUCERS);
}

function renderProgress({ words, invoice }: Page): Html {
  const built = builtOn(invoice);
  return html`<label for="built">${words.say('foundInBlock', { block: ltr(invoice.transfer?.blockNumber ?? ''), required: PRODUCERS })}</label>
<p class="built"><progress id="built" max="${PRODUCERS}" value="${built}"></progress> <span>${words.say('built', { built: ltr(built), required: ltr(PRODUCERS) })}</span></p>`;
}

function renderFound(page: Page, { state }: PageLook): Html {
  const { words, invoice } = page;
  const { secondTxId, brand, network, transfer } = invoice;
  if (transfer === null) return NOTHING;
  const { say } = words;
  const back = state === 'paid' ? renderReturn(page, 'button') : null;
  const second =
    secondTxId === null || invoice.isDenied
      ? null
      : html`<p class="notice">${say('secondPayment', { transaction: renderShortTransaction(network, secondTxId), merchant: renderMerchant(brand) })}<br>${renderCopyTransaction(words, secondTxId, 'second')}</p>`;
  const receipt =
    state === 'paid' && !invoice.isDenied
      ? html`<p class="no-print"><a href="${pageUrl(page, '/receipt')}">${say('receiptLink')}</a></p>`
      : null;
  // Only transfers of exactly the payable amount can pay an invoice.
  const amount = ltr(`${asTyped(formatAmount(invoice.payableMicro))} USDT`);
  const price = invoice.price && html`<p class="hint">${ltr(formatPrice(invoice.price))}</p>`;
  return html`${state === 'paid' ? html`<p class="total">${amount}</p>${price}` : null}<dl>
${state === 'paid' ? null : html`<dt>${say('amount')}</dt><dd>${amount}</dd>`}
<dt>${say('time')}</dt><dd>${words.time(toIso(transfer.blockTime))}</dd>
<dt>${say('block')}</dt><dd>${ltr(transfer.blockNumber)}</dd>
<dt>${say('transaction')}</dt><dd>${renderShortTransaction(network, transfer.txId)} ${renderCopyTransaction(words, transfer.txId, 'transaction')}</dd>
</dl>${second}${back}${receipt}`;
}

/** The energy that a USDT transfer uses, to an address that already holds USDT and to one that doesn't. */
const ENERGY = { usual: 64_000, first: 130_000 };
/** The watcher updates the price once an hour. */
const STALE_MS = 3 * 60 * 60_000;
/** The highest accepted price from a node. */
const MAX_SUN = 1000;

/** A transfer's approximate cost in TRX for a payer who has no energy, such as `6.4` and `13`. `sun` is the price per unit of energy. */
type NetworkFee = { sun: number; usual: string; first: string };

/** Returns `null` if the price is unknown or too old, or if the page is blind. */
export function networkFeeOf({ invoice, now }: Page): NetworkFee | null {
  if (isBlind(invoice, now)) return null;
  // For example {"sun":100,"at":1764000000000}. But an attacker who can access the database could have stored any value.
  const { sun, at } = Object(invoice.energyPrice) as { sun?: unknown; at?: unknown };
  if (!isCount(sun) || !isCount(at) || sun === 0 || sun > MAX_SUN || Math.abs(now - at) > STALE_MS) return null;
  return { sun, usual: trx(ENERGY.usual * sun), first: trx(ENERGY.first * sun) };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Rounds up to a tenth so that a payer who has slightly more than needed isn't stopped. */
function trx(sun: number): string {
  const tenths = Math.ceil(sun / 100_000);
  return tenths % 10 === 0 ? String(tenths / 10) : (tenths / 10).toFixed(1);
}

/** The raw text that a payer entered into a form, at most `MAX_FIELD_CHARACTERS`. */
export type Question = { field: 'fee' | 'paste' | 'transaction'; text: string };

/** This is enough for the longest supported link to a block explorer. */
export const MAX_FIELD_CHARACTERS = 500;

/** Helps payers to avoid mistakes before they send money: an exchange's fee, and an address that malware has changed in the clipboard. */
function renderHelp(page: Page, question: Question | null): Html {
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
function openIf(isOpen: boolean): Html | null {
  return isOpen ? html` open` : null;
}

/** Renders a form with one field. It works without the script; the script inserts only the answer into the page. */
function renderForm(page: Page, { field, text }: Question, words: { label: Html; button: Html }): Html {
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

/** A merchant's branding settings. `logoUrl` is a `data:` URL. */
type Example = {
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
export function renderExample(request: Pick<FastifyRequest, 'query' | 'headers'>, shown: Example | { problem: Html }) {
  const nonce = newNonce();
  const words = wordsOf(chooseLanguage(request).language);
  const isShown = 'brand' in shown;
  const text = renderDocument({
    ...{ title: isShown ? `Example – ${shown.brand.name}` : 'Example', words, nonce },
    accent: isShown ? shown.brand.accent : null,
    main: html`<div class="notice" lang="en" dir="ltr"><strong>Example</strong>${isShown ? html`: what payers see. This is not an invoice: it cannot be paid, and its links do nothing.` : shown.problem}</div>
${isShown ? renderExampleInvoice(words, shown) : null}`,
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

function renderExampleInvoice(words: Words, { brand, logoUrl, network, policy, lifetimeMs, now }: Example): Html {
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
<div id="when">${renderDeadline(words, { expiresAt, leftMs: lifetimeMs, isPaused: false })}</div>
</div>
<footer>${renderSupport({ words, invoice })}${renderReturn({ words, invoice }, 'link')}</footer>`;
}

/** Replaces the QR code and has the same size. */
const NO_CODE = html`<svg class="qr" role="img" aria-label="Example: no QR code" width="222" height="222" viewBox="0 0 37 37"><path fill="#fff" d="M0 0h37v37H0z"/><path fill="none" stroke="#000" stroke-dasharray="2 1" d="M4.5 4.5h28v28h-28zl28 28m0-28l-28 28"/></svg>`;

/** Renders `0ca1…0ca1`, linked to the block explorer. */
function renderShortTransaction(network: Network, txId: string): Html {
  return renderTransaction(network, txId, `${txId.slice(0, 4)}…${txId.slice(-4)}`);
}

/** Renders a button that copies the whole transaction id. On paper, the id itself is printed instead. */
function renderCopyTransaction(words: Words, txId: string, from: 'transaction' | 'second'): Html {
  return html`<bdi class="unseen" id="${from}" dir="ltr" aria-hidden="true">${txId}</bdi>${renderCopyButton(words, from, txId)}`;
}
