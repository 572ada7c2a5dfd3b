import {
  type Injector,
  type OrderProcess,
  OrderService,
  type OrderState,
  type PaymentProcess,
  PaymentService,
} from '@vendure/core';
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

/** An order in one of these states asks for another amount, or for none, because it changes, is cancelled or was paid by another method. */
const WITHDRAWING: readonly OrderState[] = ['AddingItems', 'Cancelled', 'PaymentAuthorized', 'PaymentSettled'];

/** Withdraws the invoice of such an order. */
export const orderProcess: OrderProcess<OrderState> = {
  init(injector: Injector) {
    orders = injector.get(OrderService);
    payments = injector.get(PaymentService);
  },
  async onTransitionEnd(_from, to, { ctx, order }) {
    if (!WITHDRAWING.includes(to)) return;
    for (const payment of await orders.getOrderPayments(ctx, order.id)) {
      const isOpen = payment.state === 'AwaitingTransfer' && readStored(payment) !== null;
      if (isOpen) await payments.cancelPayment(ctx, payment.id);
    }
  },
};
