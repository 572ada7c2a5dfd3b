import { assertNever } from '../../domain/assert-never.ts';
import { asTyped, formatAmount } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { CheckoutInvoice } from '../../store/ledger/checkout.ts';
import { isReadable, type LinkPage } from './page-state.ts';
import { type Suspension, suspensionOf } from './suspension.ts';

/**
 * The content of the payer's page and of its `/status`. Amount and address are there only while a transfer is wanted, so that no payer
 * sends twice. It holds no invoice id and no external id.
 */
export type CheckoutView = {
  state: 'waiting' | 'expired' | 'withdrawn' | 'settled' | 'suspended' | 'confirming' | 'paid';
  amount: string | null;
  address: string | null;
  /** Why payment is suspended, in the state `suspended`; else `null`. */
  suspended: Suspension | null;
  /** These two are `null` where nothing of the invoice may be shown. */
  projectName: string | null;
  expiresAt: string | null;
  /** The newest examined block is too old: we cannot see the network, and the clock of the deadline stands still. */
  blind: boolean;
  transaction: null | { txId: string; blockNumber: number; blockTime: string; confirmations: number; amount: string };
};

/** 20 blocks of the real network. */
const BLIND_AFTER_MS = 60_000;

export function viewPage(page: LinkPage): CheckoutView {
  if (isReadable(page)) return viewCheckout(page.invoice, page.now);
  return {
    ...{ state: 'suspended', suspended: page.invoice.suspended, blind: false },
    ...{ amount: null, address: null, projectName: null, expiresAt: null, transaction: null },
  };
}

export function viewCheckout(invoice: CheckoutInvoice, now: UnixMs): CheckoutView {
  const state = stateOf(invoice);
  const wantsTransfer = state === 'waiting' || state === 'expired';
  const { transfer, head } = invoice;
  const amount = asTyped(formatAmount(invoice.payableMicro));
  return {
    state,
    amount: wantsTransfer ? amount : null,
    address: wantsTransfer ? invoice.address : null,
    suspended: state === 'suspended' ? suspensionOf(invoice) : null,
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

function stateOf(invoice: CheckoutInvoice): CheckoutView['state'] {
  const { status } = invoice;
  switch (status) {
    case 'PENDING':
    case 'EXPIRED':
      if (invoice.isSettled) return 'settled';
      if (invoice.withdrawnAt !== null) return 'withdrawn';
      if (suspensionOf(invoice) !== null) return 'suspended';
      return status === 'PENDING' ? 'waiting' : 'expired';
    case 'CONFIRMING':
      return 'confirming';
    case 'PAID':
      return 'paid';
    default:
      return assertNever(status);
  }
}
