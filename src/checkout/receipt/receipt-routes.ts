import type { FastifyInstance } from 'fastify';
import { toJwkSet } from '../../domain/receipt/receipt-key.ts';
import { formatReceipt, type SignedReceipt, signReceipt } from '../../domain/receipt/receipt-signature.ts';
import { readPublicReceiptKeys } from '../../store/access/receipt-keys.ts';
import { Problem } from '../../web/problem.ts';
import { answerPage } from '../page/answer-page.ts';
import { DATA_HEADERS } from '../page/headers.ts';
import type { Page } from '../page/page-state.ts';
import { pageUrl } from '../page/page-url.ts';
import { type CheckoutDeps, findPage, UNKNOWN_LINK } from '../page/register.ts';
import { composeReceipt } from './compose-receipt.ts';
import { renderReceipt } from './receipt-page.ts';
import type { ReceiptSigner } from './receipt-signer.ts';

export type ReceiptDeps = CheckoutDeps & { signer: ReceiptSigner };

const NOT_PAID = { error: 'this invoice is not paid yet; it has a receipt as soon as its payment is final' };
const DENIED = {
  error: 'the chain does not have the payment of this invoice, so no receipt is signed for it: ask the shop',
};

const UNSIGNED =
  'This service signs no receipts at the moment. It needs QUITTANCE_MASTER_KEY, the nodes of this network, and for the main network QUITTANCE_PUBLIC_URL with https; the log says more. The payment itself is not touched by this.';

/** Short enough for a new key to be known soon, and old ones are there for ever. */
const KEYS_CACHE = 'public, max-age=300';

/** `GET /c/:token/receipt` (a page), `/c/:token/receipt.json` (signed), and the keys that sign. */
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

/** Not the whole id of the transaction: 64 hex digits look like a private key, to people and to scanners. */
function fileNameOf({ receipt }: SignedReceipt): string {
  return `receipt-${receipt.transaction.txId.slice(0, 16)}.json`;
}
