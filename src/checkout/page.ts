import { renderSVG } from 'uqr';
import { type Html, html, rawHtml } from '../web/html.ts';
import type { CheckoutView } from './view.ts';

/** The payer's page, complete without JavaScript. The script polls and replaces the part inside `#invoice`. */
export function renderPage(view: CheckoutView, path: string): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<title>${titleOf(view)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/checkout.css">
<script src="/assets/checkout.js" defer></script>
</head>
<body data-path="${path}">
<main>
<p class="merchant">${view.projectName}</p>
${renderInvoice(view, path)}
</main>
</body>
</html>
`;
  return page.html;
}

/** The part that changes with the state. */
export function renderInvoice(view: CheckoutView, path: string): Html {
  return html`<div id="invoice" data-state="${view.state}" data-expires-at="${view.expiresAt}" data-blind="${view.blind ? 'yes' : 'no'}">
${view.blind && view.state !== 'paid' ? blindBanner : null}
<h1 id="state" role="status">${headingOf(view)}</h1>
${view.amount === null || view.address === null ? null : renderInstructions(view, view.amount, view.address)}
${renderTransaction(view)}
${view.state === 'paid' ? null : html`<p class="check"><a href="${path}">Check now</a></p>`}
</div>`;
}

const blindBanner = html`<p class="banner">We cannot see the TRON network right now. A payment that you have sent is safe and will be found. The deadline waits.</p>`;

function titleOf(view: CheckoutView): string {
  switch (view.state) {
    case 'paid':
      return 'Paid';
    case 'confirming':
      return 'Payment found';
    default:
      return `Pay ${view.amount} USDT`;
  }
}

function headingOf(view: CheckoutView): string {
  switch (view.state) {
    case 'waiting':
      return 'Waiting for your payment';
    case 'expired':
      return 'The time is over, but a payment still counts';
    case 'confirming':
      return 'Payment found. Do not send again';
    case 'paid':
      return 'Paid';
  }
}

function renderInstructions(view: CheckoutView, amount: string, address: string): Html {
  const dot = amount.indexOf('.');
  const [body, tail] = [amount.slice(0, dot + 3), amount.slice(dot + 3)];
  return html`<section aria-labelledby="amount-label">
<h2 id="amount-label">Send exactly</h2>
<p class="value" dir="ltr"><span id="amount">${body}<b>${tail}</b></span> USDT</p>
<button type="button" data-copy="${amount}" hidden>Copy amount</button>
<p>All digits count: the last ones tell us that it is you. If your exchange takes a fee from the amount, add it, so that exactly this amount arrives.</p>
<p class="network"><strong>USDT on TRON (TRC-20) only</strong></p>
</section>
<section aria-labelledby="address-label">
<h2 id="address-label">To this address</h2>
<p class="value address" dir="ltr"><span id="address"><b>${address.slice(0, 4)}</b>${address.slice(4, -6)}<b>${address.slice(-6)}</b></span></p>
<button type="button" data-copy="${address}" hidden>Copy address</button>
<div class="qr">${renderQr(address)}</div>
<p>The QR code holds only the address; type the amount. On another network than TRON the money would be lost.</p>
</section>
<p><strong>One transfer, exactly this amount.</strong> Parts cannot be added up, and a top-up cannot be matched.</p>
<p>${view.state === 'expired' ? 'The time to pay ended at' : 'Pay by'} <time id="deadline" datetime="${view.expiresAt}">${view.expiresAt.replace('T', ' ').slice(0, 16)} UTC</time>${
    view.state === 'expired' ? '.' : '; a later payment still counts.'
  }</p>`;
}

/** The bare address, dark on light in every colour scheme, because scanners expect that. */
function renderQr(address: string): Html {
  const svg = renderSVG(address, { border: 4, ecc: 'M', pixelSize: 4 });
  return rawHtml(svg.replace('<svg ', '<svg role="img" aria-label="QR code of the address" '));
}

function renderTransaction({ state, transaction }: CheckoutView): Html | null {
  if (transaction === null) return null;
  return html`<section>
${state === 'confirming' ? html`<p>Found in block ${transaction.blockNumber}. It becomes final when about 19 of TRON’s 27 block producers have built on it, usually within a minute. You can close this page.</p>` : null}
<dl>
<dt>Amount</dt><dd dir="ltr">${transaction.amount} USDT</dd>
<dt>Transaction</dt><dd dir="ltr" class="hash">${transaction.txId}</dd>
<dt>Block</dt><dd dir="ltr">${transaction.blockNumber}</dd>
<dt>Time</dt><dd dir="ltr"><time datetime="${transaction.blockTime}">${transaction.blockTime.replace('T', ' ').slice(0, 19)} UTC</time></dd>
</dl>
</section>`;
}

/** For every link that leads nowhere, whatever the reason. */
export const NOT_FOUND_PAGE = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<title>Not found</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/checkout.css">
</head>
<body>
<main>
<h1>There is no invoice at this link</h1>
<p>Open the link again from where you got it, or ask the shop for a new one. If you have paid already, your payment is not lost: the shop can find it by its transaction id.</p>
</main>
</body>
</html>
`.html;
