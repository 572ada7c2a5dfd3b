import { createHash } from 'node:crypto';
import { asTyped, formatAmount } from '../../../core/domain/money.ts';
import { formatPrice, type Price } from '../../../core/domain/price.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { CheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import type { TextKey, Words } from '../words/words.ts';
import { openIf, type Question, renderHelp } from './help.ts';
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
  shopStateOf,
} from './page-state.ts';
import {
  ltr,
  renderCopyButton,
  renderCopyTransaction,
  renderIcon,
  renderMerchant,
  renderShortTransaction,
} from './pieces.ts';
import { renderReturn } from './render-document.ts';
import { renderOwnWallet } from './wallets.ts';

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

export type PartName = keyof typeof PARTS;

export const PART_NAMES = Object.keys(PARTS) as PartName[];

function partKey(name: PartName, page: LinkPage, look: PageLook): Key {
  return PARTS[name].key(page, look);
}

/** `question` is the text that the payer entered in a form on the page. */
export function renderPart(name: PartName, page: LinkPage, look: PageLook, question: Question | null = null): Html {
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
export function titleOf(page: LinkPage, { title, heading, values }: PageLook): string {
  const { words } = page;
  if (!isReadable(page)) return words.text(heading);
  const merchant = page.invoice.brand.name;
  if (title === null) return `${words.text(heading, values)} – ${merchant}`;
  return words.text(title, { amount: asTyped(formatAmount(page.invoice.payableMicro)), merchant });
}

function renderStatus(
  { words: { say } }: LinkPage,
  { state, heading, values, texts, notice, isShownBlind }: PageLook,
): Html {
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
export function renderPay(words: Words, { amount, price, address, qr }: Payment): Html {
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
  return renderDeadline(words, { expiresAt, leftMs: invoice.expiresAt - now, stands: state === 'blind' });
}

const DAY_MS = 24 * 60 * MINUTE_MS;

type Deadline = { expiresAt: string; leftMs: number; stands: boolean };

/**
 * `leftMs` is the time that remained when the page was opened, for readers without the script. `stands` means that the countdown is paused.
 */
export function renderDeadline(words: Words, { expiresAt, leftMs, stands }: Deadline): Html {
  const { say } = words;
  const time = leftMs < DAY_MS ? words.clock(expiresAt) : words.time(expiresAt);
  const left = html`<span class="unscripted">${say('timeLeftAtOpening', { duration: words.duration(leftMs) })}</span>`;
  return html`<p><strong>${say('payBy', { time })}</strong> <span class="hint">${say('laterCounts')}</span>${stands ? html`<span>${say('clockStands')}</span>` : left}</p>`;
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
