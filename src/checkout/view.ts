import { assertNever } from '../domain/assert-never.ts';
import { formatAmount } from '../domain/money.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { InvoicePayment } from '../store/payments.ts';

/**
 * What the payer's page shows and its script polls. Amount and address are there only while a transfer is wanted, so that
 * nobody sends twice. It holds no invoice id and no external id.
 */
export type CheckoutView = {
  state: 'waiting' | 'expired' | 'confirming' | 'paid';
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

export function viewCheckout(invoice: InvoicePayment, now: UnixMs): CheckoutView {
  const state = stateOf(invoice);
  const wantsTransfer = state === 'waiting' || state === 'expired';
  const { transaction } = invoice;
  return {
    state,
    amount: wantsTransfer ? formatAmount(invoice.payableMicro) : null,
    address: wantsTransfer ? invoice.address : null,
    projectName: invoice.projectName,
    expiresAt: toIso(invoice.expiresAt),
    blind: invoice.examinedAt === null || now - invoice.examinedAt > BLIND_AFTER_MS,
    transaction: transaction && {
      txId: transaction.txId,
      blockNumber: transaction.blockNumber,
      blockTime: toIso(transaction.blockTime),
      confirmations: Math.max(1, transaction.headNumber - transaction.blockNumber + 1),
      amount: formatAmount(transaction.amountMicro),
    },
  };
}

function stateOf({ status }: InvoicePayment): CheckoutView['state'] {
  switch (status) {
    case 'PENDING':
      return 'waiting';
    case 'EXPIRED':
      return 'expired';
    case 'CONFIRMING':
      return 'confirming';
    case 'PAID':
      return 'paid';
    default:
      return assertNever(status);
  }
}
