import type { UnixMs } from '../domain/time.ts';
import { type Html, html } from '../web/html.ts';
import { describeRemaining, describeTime } from './describe-time.ts';
import { renderDocument } from './render-document.ts';
import { renderQr } from './render-qr.ts';
import type { CheckoutView } from './view.ts';

export type PageInput = {
  view: CheckoutView;
  /** `/c/<token>` */
  path: string;
  now: UnixMs;
  /** The reader has already seen a payment here; if it is gone now, its block was orphaned. */
  hadPayment: boolean;
};

/** The payer's page, complete without JavaScript. */
export function renderPage(input: PageInput): string {
  const main = html`<p class="merchant">Payment to <bdi>${input.view.projectName}</bdi></p>
${renderInvoice(input)}
<p id="said" class="unseen" role="status"></p>`;
  return renderDocument({ title: titleOf(input.view), path: input.path, main });
}

/**
 * What changes with the state. The script polls it and replaces each part with `data-part` whose HTML changed, so `#status`,
 * which screen readers announce, must hold nothing that changes within a state, and a count or a clock has a part of its own.
 */
export function renderInvoice(input: PageInput): Html {
  const { view, path } = input;
  const hadPayment = input.hadPayment || view.state === 'confirming';
  return html`<div id="invoice" data-state="${view.state}" data-title="${titleOf(view)}">
<div id="status" role="status" data-part>${renderStatus(input)}</div>
<div id="pay" data-part>${view.amount === null || view.address === null ? null : renderInstructions(view.amount, view.address)}</div>
<p id="when" data-part>${renderDeadline(input)}</p>
<div id="progress" data-part>${renderProgress(view)}</div>
<div id="found" data-part>${renderTransaction(view)}</div>
<p id="check" data-part>${view.state === 'paid' ? null : html`<a href="${path}${hadPayment ? '?seen=payment' : ''}">Check now</a>`}</p>
</div>`;
}

function titleOf({ state, amount, projectName }: CheckoutView): string {
  switch (state) {
    case 'paid':
      return `Paid: ${projectName}`;
    case 'confirming':
      return `Payment found: ${projectName}`;
    default:
      return `Pay ${amount} USDT to ${projectName}`;
  }
}

function renderStatus({ view, hadPayment }: PageInput): Html {
  const isBlind = view.blind && view.state !== 'paid';
  const { heading, text } = wordsOf(view.state);
  const isGone = hadPayment && (view.state === 'waiting' || view.state === 'expired');
  return html`<h1>${ICONS[view.state]}<span>${isGone ? 'Waiting for your payment again' : heading}</span></h1>${
    text === null || isGone ? null : html`<p>${text}</p>`
  }${isGone ? GONE : null}${isBlind ? BLIND : null}`;
}

function wordsOf(state: CheckoutView['state']): { heading: string; text: Html | null } {
  switch (state) {
    case 'waiting':
      return { heading: 'Waiting for your payment', text: null };
    case 'expired':
      return {
        heading: 'The time is over, but you can still pay',
        text: html`A payment of exactly this amount still counts. If you have sent it already, there is nothing more to do.`,
      };
    case 'confirming':
      return { heading: 'Payment found', text: html`<strong>Do not send again.</strong> You can close this page.` };
    case 'paid':
      return { heading: 'Paid', text: html`Your payment is final. There is nothing more to do.` };
  }
}

const GONE = html`<p class="notice">The network has replaced the block that your payment was in. That happens now and then, and your transfer usually comes back by itself within minutes. <strong>Do not send again</strong> unless your wallet says that the transfer failed.</p>`;

const BLIND = html`<p class="notice">We cannot see the TRON network right now. A payment that you have sent is safe and will be found.</p>`;

/** Drawn with the colour of the text; the words beside them say the same. */
const ICONS = {
  waiting: icon(html`<path d="M12 7v5l3 2"/>`),
  expired: icon(html`<path d="M12 7v5l3 2"/>`),
  confirming: icon(html`<path d="M7.5 12h.01M12 12h.01M16.5 12h.01"/>`),
  paid: icon(html`<path d="m7.5 12.5 3 3 6-6.5"/>`),
};

function icon(drawing: Html): Html {
  return html`<svg class="icon" aria-hidden="true" width="28" height="28" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/>${drawing}</svg>`;
}

function renderInstructions(amount: string, address: string): Html {
  // The digits after the requested cents are what tells this payment from others.
  const tail = amount.indexOf('.') + 3;
  return html`<section aria-labelledby="amount-label">
<div class="row"><h2 id="amount-label">Send exactly</h2>${renderCopyButton('amount', amount)}</div>
<p class="amount${amount.length > 12 ? ' long' : ''}" dir="ltr"><span id="amount">${amount.slice(0, tail)}<b>${amount.slice(tail)}</b></span> <span class="unit">USDT</span></p>
<p class="network">USDT on TRON (TRC-20) only</p>
<p class="hint">All digits count: the last ones tell us that the payment is yours. Check that your wallet shows them all.</p>
</section>
<section aria-labelledby="address-label">
<div class="row"><h2 id="address-label">To this address</h2>${renderCopyButton('address', address)}</div>
<p class="address" dir="ltr"><span id="address"><b>${address.slice(0, 4)}</b>${address.slice(4, -6)}<b>${address.slice(-6)}</b></span></p>
<div class="scan">${renderQr(address)}<p class="hint">The QR code holds only the address; type the amount. Money sent on any network but TRON is lost.</p></div>
</section>
<ul class="hint">
<li><strong>One transfer, exactly this amount.</strong> Parts and top-ups cannot be matched.</li>
<li>If your exchange takes its fee from the amount, add the fee, so that exactly this amount arrives.</li>
<li>Never copy the address from your wallet’s history.</li>
</ul>`;
}

/** Shown by the script; its place is kept free without it. */
function renderCopyButton(what: string, text: string): Html {
  return html`<button type="button" data-copy="${text}" data-from="${what}" hidden>Copy<span class="unseen"> the ${what}</span></button>`;
}

function renderDeadline({ view, now }: PageInput): Html | null {
  const time = renderTime(view.expiresAt);
  if (view.state === 'expired') return html`The time to pay ended: ${time}.`;
  if (view.state !== 'waiting') return null;
  const left = view.blind
    ? 'The time to pay waits.'
    : html`${describeRemaining(view.expiresAt, now)} left<span class="unscripted"> when this page was opened</span>.`;
  return html`Pay by <strong>${time}</strong><br>${left} A later payment still counts.`;
}

/** With 27 producers a block is irreversible once 19 of them have built on it. */
const PRODUCERS = 19;

function renderProgress({ state, transaction }: CheckoutView): Html | null {
  if (state !== 'confirming' || transaction === null) return null;
  const built = Math.min(transaction.confirmations, PRODUCERS);
  return html`<label for="built">Found in block ${transaction.blockNumber}. It is final when about ${PRODUCERS} block producers have confirmed it, usually within a minute.</label>
<p class="built"><progress id="built" max="${PRODUCERS}" value="${built}"></progress> <span>${built} of ${PRODUCERS}</span></p>`;
}

function renderTransaction({ transaction }: CheckoutView): Html | null {
  if (transaction === null) return null;
  return html`<dl>
<dt>Amount</dt><dd dir="ltr">${transaction.amount} USDT</dd>
<dt>Time</dt><dd>${renderTime(transaction.blockTime)}</dd>
<dt>Block</dt><dd dir="ltr">${transaction.blockNumber}</dd>
<dt>Transaction</dt><dd dir="ltr" class="hash" id="transaction">${transaction.txId}</dd>
</dl>`;
}

function renderTime(iso: string): Html {
  return html`<time datetime="${iso}">${describeTime(iso)}</time>`;
}
