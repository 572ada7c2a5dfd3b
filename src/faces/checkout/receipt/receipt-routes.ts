import type { FastifyInstance } from 'fastify';
import { showsInvoiceId } from '../../../core/domain/brand/brand.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { asTyped, formatAmount } from '../../../core/domain/money.ts';
import { keyMode, WIRE_ASSET, WIRE_NETWORK } from '../../../core/domain/network.ts';
import {
  formatReceipt,
  type Receipt,
  type SignedReceipt,
  signReceipt,
  toJwkSet,
} from '../../../core/domain/receipt/receipt.ts';
import { toIso } from '../../../core/domain/time.ts';
import { readPublicReceiptKeys } from '../../../core/store/access/receipt-keys.ts';
import type { CheckoutInvoice } from '../../../core/store/ledger/checkout.ts';
import type { PayingTransfer } from '../../../core/store/ledger/payments.ts';
import { type Html, html } from '../../web/html.ts';
import { Problem } from '../../web/problem.ts';
import { type Page, pageUrl, type Site } from '../page/page-state.ts';
import {
  copyTextsOf,
  ltr,
  renderCopyButton,
  renderIcon,
  renderMerchant,
  renderProofLink,
  renderTestNotice,
  renderTransaction,
} from '../page/pieces.ts';
import { answerPage, type CheckoutDeps, DATA_HEADERS, findPage, UNKNOWN_LINK } from '../page/register.ts';
import { renderDocument, renderHeader, renderSupport } from '../page/render-document.ts';
import { NETWORK_NAMES } from '../page/wallets.ts';
import type { ReceiptSigner } from './receipt-signer.ts';

type ReceiptDeps = CheckoutDeps & { signer: ReceiptSigner };

const NOT_PAID = { error: 'this invoice is not paid yet; its receipt is available as soon as its payment is final' };
const DENIED = {
  error: "this invoice's payment is not on the chain, so there is no receipt for it: ask the shop",
};

const UNSIGNED =
  'This service cannot sign receipts at the moment. It needs QUITTANCE_MASTER_KEY, nodes for this network, and for the main network QUITTANCE_PUBLIC_URL with https; see the log for the reason. This does not affect the payment.';

/** The time is short, so that readers get a new key soon. Old keys remain listed permanently. */
const KEYS_CACHE = 'public, max-age=300';

/** Registers `GET /c/:token/receipt` (a page), `/c/:token/receipt.json` (signed), and the list of signing keys. */
export function registerReceipts(app: FastifyInstance, deps: ReceiptDeps): void {
  const schema = { hide: true };
  app.get('/c/:token/receipt', { schema }, (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const page = await findPage(deps, request);
      if (page === null) return null;
      const { status, transfer, isDenied } = page.invoice;
      if (status !== 'PAID' || transfer === null || isDenied) return { redirectTo: pageUrl(page) };
      const isSigned = composeReceipt(page.invoice, deps.site) !== null && (await deps.signer.currentKey()) !== null;
      return { html: renderReceipt(page, { transfer, isSigned, nonce }) };
    }),
  );
  app.get('/c/:token/receipt.json', { schema }, async (request, reply) => {
    const page = await findPage(deps, request);
    reply.headers(DATA_HEADERS);
    if (page === null) return reply.code(404).send(UNKNOWN_LINK);
    if (page.invoice.status !== 'PAID') return reply.code(404).send(NOT_PAID);
    if (page.invoice.isDenied) return reply.code(404).send(DENIED);
    const signed = await sign(deps, page);
    if (signed === null) throw new Problem('UNAVAILABLE', UNSIGNED);
    return reply
      .type('application/json; charset=utf-8')
      .header('Content-Disposition', `attachment; filename="${fileNameOf(signed)}"`)
      .send(formatReceipt(signed));
  });
  app.get('/.well-known/quittance-receipt-keys.json', { schema }, async (_request, reply) => {
    const keys = toJwkSet(await readPublicReceiptKeys(deps.db));
    return reply.header('Cache-Control', KEYS_CACHE).send(keys);
  });
}

async function sign({ site, signer }: ReceiptDeps, { invoice }: Page): Promise<SignedReceipt | null> {
  const receipt = composeReceipt(invoice, site);
  const key = receipt && (await signer.currentKey());
  if (receipt === null || key === null) return null;
  const addressProof = site.proofOf(invoice.network, invoice.address);
  return { ...signReceipt(receipt, key), ...(addressProof === null ? {} : { addressProof }) };
}

/** The name contains only the beginning of the transaction id, because 64 hex digits look like a private key to people and scanners. */
function fileNameOf({ receipt }: SignedReceipt): string {
  return `receipt-${receipt.transaction.txId.slice(0, 16)}.json`;
}

/**
 * Returns `null` if the invoice isn't paid, its payment turned out not to be on the chain, or this process doesn't know the network's
 * token. Also returns `null` for real money if `QUITTANCE_PUBLIC_URL` isn't set, because no reader could find out which server
 * `http://127.0.0.1:8080` was.
 */
function composeReceipt(
  { network, status, transfer, isDenied, ...invoice }: CheckoutInvoice,
  site: Site,
): Receipt | null {
  const contract = site.usdt[network];
  if (status !== 'PAID' || isDenied || transfer === null || transfer.blockId === null || contract === undefined)
    return null;
  const issuer = site.publicUrl();
  if (keyMode(network) === 'live' && !issuer.startsWith('https:')) return null;
  const { txId, logIndex, blockNumber, blockId, blockTime } = transfer;
  return {
    version: 1,
    issuer,
    merchant: invoice.brand.name,
    network: WIRE_NETWORK,
    chain: network,
    asset: WIRE_ASSET,
    contract,
    amount: formatAmount(invoice.payableMicro),
    from: transfer.from,
    to: invoice.address,
    transaction: { txId, logIndex, blockNumber, blockId, blockTime: toIso(blockTime) },
  };
}

/**
 * Renders a paid invoice's receipt for people, on screen and on paper. `isSigned` means that there's also a signed receipt for programs.
 */
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

/** Renders the reader's local time, which only the script knows, and UTC for other readers: `2026-11-21 03:17:00 UTC`. */
function renderTime({ words }: Page, iso: string): Html {
  return html`<span class="scripted">${words.time(iso)}<br></span>${ltr(`${iso.slice(0, 19).replace('T', ' ')} UTC`)}`;
}
