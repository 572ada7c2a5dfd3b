import { formatAmount } from '../../domain/money.ts';
import { keyMode, WIRE_ASSET, WIRE_NETWORK } from '../../domain/network.ts';
import type { Receipt } from '../../domain/receipt/receipt.ts';
import { toIso } from '../../domain/time.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';
import type { Site } from '../page/page-state.ts';

/**
 * `null` before the invoice is paid, where the chain denies its payment, where this process does not know the token of its network, and
 * for real money while `QUITTANCE_PUBLIC_URL` is not set: no reader could find out who `http://127.0.0.1:8080` is.
 */
export function composeReceipt(
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
