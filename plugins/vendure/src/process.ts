import {
  type Injector,
  type OrderProcess,
  OrderService,
  type OrderState,
  type PaymentProcess,
  PaymentService,
} from '@vendure/core';
import { QuittanceService } from './quittance.service';
import { readStored } from './stored';

declare module '@vendure/core' {
  interface PaymentStates {
    AwaitingTransfer: never;
  }
}

/** The state of a payment whose invoice nobody has paid yet. It covers the order, so that no second invoice is made, and settles nothing. */
export const paymentProcess: PaymentProcess<'AwaitingTransfer'> = {
  transitions: {
    Created: { to: ['AwaitingTransfer'], mergeStrategy: 'merge' },
    AwaitingTransfer: { to: ['Settled', 'Cancelled', 'Error', 'Declined'] },
  },
};

let orders: OrderService;
let payments: PaymentService;
let service: QuittanceService;

/** An order in one of these states asks for another amount, or for none, because it changes, is cancelled or was paid by another method. */
const WITHDRAWING: readonly OrderState[] = ['AddingItems', 'Cancelled', 'PaymentAuthorized', 'PaymentSettled'];

/** Withdraws the invoice of such an order. */
export const orderProcess: OrderProcess<OrderState> = {
  init(injector: Injector) {
    orders = injector.get(OrderService);
    payments = injector.get(PaymentService);
    service = injector.get(QuittanceService);
  },
  async onTransitionEnd(_from, to, { ctx, order }) {
    if (!WITHDRAWING.includes(to)) return;
    for (const payment of await orders.getOrderPayments(ctx, order.id)) {
      const isOpen = payment.state === 'AwaitingTransfer' && readStored(payment) !== null;
      // Otherwise a customer who has just paid and edits the order would be asked for the whole new total.
      const isKept = isOpen && to === 'AddingItems' && (await service.readPageState(payment)) === 'paid';
      if (isOpen && !isKept) await payments.cancelPayment(ctx, payment.id);
    }
  },
};
