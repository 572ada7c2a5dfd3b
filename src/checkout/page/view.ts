import { assertNever } from '../../domain/assert-never.ts';
import { asTyped, formatAmount } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';

/**
 * The content of the payer's page and of its `/status`. Amount and address are there only while a transfer is wanted, so that no payer
 * sends twice. It holds no invoice id and no external id.
 */
export type CheckoutView = {
  state: 'waiting' | 'expired' | 'withdrawn' | 'confirming' | 'paid';
  amount: string | null;
  address: string | null;
  projectName: string;
  expiresAt: string;
  /** The newest examined block is too old: we cannot see the network, and the clock of the deadline stands still. */
  blind: boolean;
  transaction: null | { txId: string; blockNumber: number; blockTime: string; confirmations: number; amount: string };
};

/** 20 blocks of the real network. */
const BLIND_AFTER_MS = 60_000;

export function viewCheckout(invoice: CheckoutInvoice, now: UnixMs): CheckoutView {
  const state = stateOf(invoice);
  const wantsTransfer = state === 'waiting' || state === 'expired';
  const { transfer, head } = invoice;
  const amount = asTyped(formatAmount(invoice.payableMicro));
  return {
    state,
    amount: wantsTransfer ? amount : null,
    address: wantsTransfer ? invoice.address : null,
    projectName: invoice.brand.name,
    expiresAt: toIso(invoice.expiresAt),
    blind: head === null || now - head.time > BLIND_AFTER_MS,
    transaction: transfer && {
      txId: transfer.txId,
      blockNumber: transfer.blockNumber,
      blockTime: toIso(transfer.blockTime),
      confirmations: Math.max(1, (head?.number ?? transfer.blockNumber) - transfer.blockNumber + 1),
      // The only transfers that can pay an invoice are of exactly its payable amount.
      amount,
    },
  };
}

function stateOf({ status, withdrawnAt }: CheckoutInvoice): CheckoutView['state'] {
  const isWithdrawn = withdrawnAt !== null;
  switch (status) {
    case 'PENDING':
      return isWithdrawn ? 'withdrawn' : 'waiting';
    case 'EXPIRED':
      return isWithdrawn ? 'withdrawn' : 'expired';
    case 'CONFIRMING':
      return 'confirming';
    case 'PAID':
      return 'paid';
    default:
      return assertNever(status);
  }
}
