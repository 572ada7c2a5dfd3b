import { showsInvoiceId } from '../../domain/brand/brand.ts';
import { encodeId } from '../../domain/ids.ts';
import { asTyped, formatAmount } from '../../domain/money.ts';
import { WIRE_ASSET } from '../../domain/network.ts';
import { toIso } from '../../domain/time.ts';
import type { PayingTransfer } from '../../store/ledger/paying-transfer.ts';
import { type Html, html } from '../../web/html.ts';
import { renderSupport } from '../page/brand-links.ts';
import { renderHeader } from '../page/header.ts';
import { copyTextsOf, renderProofLink, renderTestNotice } from '../page/page.ts';
import type { Page } from '../page/page-state.ts';
import { pageUrl } from '../page/page-url.ts';
import { ltr, renderCopyButton, renderIcon, renderMerchant, renderTransaction } from '../page/pieces.ts';
import { renderDocument } from '../page/render-document.ts';
import { NETWORK_NAMES } from '../page/wallets.ts';

/** The receipt of a paid invoice for people, on screen and on paper. `isSigned`: there is one for programs as well. */
export function renderReceipt(
  page: Page,
  { transfer, isSigned, nonce }: { transfer: PayingTransfer; isSigned: boolean; nonce: string },
): string {
  const { words, invoice } = page;
  const { say } = words;
  const signed = html`<p><a href="${pageUrl(page, '/receipt.json')}">${say('receiptSigned')}</a></p>
<p class="hint">${say('receiptProof')}</p>`;
  const reference = showsInvoiceId(invoice.brand.returnUrl)
    ? html`<dt>${say('receiptInvoice')}</dt><dd class="hash">${ltr(encodeId('inv', invoice.id))}</dd>
`
    : null;
  return renderDocument({
    title: words.text('titleReceipt', { merchant: invoice.brand.name }),
    words,
    nonce,
    accent: invoice.brand.accent,
    script: { path: `/c/${invoice.checkoutToken}`, texts: copyTextsOf(words) },
    main: html`${renderHeader(page)}
${renderTestNotice(page)}<div data-state="paid">
<h1>${renderIcon('paid')}<span>${say('receipt')}</span></h1>
<p><strong>${say('paid')}</strong></p>
<dl>
<dt>${say('receiptPaidTo')}</dt><dd>${renderMerchant(invoice.brand)}</dd>
<dt>${say('amount')}</dt><dd>${ltr(`${asTyped(formatAmount(invoice.payableMicro))} ${WIRE_ASSET}`)}</dd>
<dt>${say('time')}</dt><dd>${renderTime(page, toIso(transfer.blockTime))}</dd>
<dt>${say('receiptNetwork')}</dt><dd>${ltr(`${NETWORK_NAMES[invoice.network]} (TRC20)`)}</dd>
<dt>${say('receiptFrom')}</dt><dd class="hash">${ltr(transfer.from)}</dd>
<dt>${say('receiptTo')}</dt><dd class="hash">${ltr(invoice.address)}</dd>
${reference}<dt>${say('transaction')}</dt><dd class="hash"><div id="transaction">${renderTransaction(invoice.network, transfer.txId)}</div>${renderCopyButton(words, 'transaction', transfer.txId)}</dd>
<dt>${say('block')}</dt><dd>${ltr(transfer.blockNumber)}</dd>
</dl>
</div>
<div class="no-print">
<p><button type="button" data-print hidden>${say('print')}</button></p>
${isSigned ? signed : null}
<p><a href="${pageUrl(page)}">${say('backToPayment')}</a></p>
</div>
<footer>${renderSupport(page)}${renderProofLink(page)}</footer>
<p id="said" class="unseen" role="status"></p>`,
  });
}

/** The reader's own time, which only the script knows, and UTC for others who get the receipt: `2026-11-21 03:17:00 UTC`. */
function renderTime({ words }: Page, iso: string): Html {
  return html`<span class="scripted">${words.time(iso)}<br></span>${ltr(`${iso.slice(0, 19).replace('T', ' ')} UTC`)}`;
}
