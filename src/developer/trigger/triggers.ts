import type { EventType } from '../../core/domain/event.ts';

/** How to make each event happen. Only types are imported so that showing help stays fast. */
export const TRIGGERS = {
  'invoice.confirming': 'an invoice is created and paid exactly',
  'invoice.paid': 'the same, until its block is irreversible',
  'invoice.pending': 'an invoice is paid, and then the block leaves the chain again',
  'invoice.expired': 'the deadline of a new invoice is brought forward',
  'transfer.unmatched': 'a new invoice receives 1 USDT too little',
  'transfer.duplicate': 'a new invoice is paid twice',
  'transfer.refunded': 'an address that is created for it returns a transfer to its sender',
  'transfer.claimed': 'the same as for transfer.unmatched, and then its payer looks the transfer up',
  'transfer.resolved': 'the same as for transfer.unmatched, and then it is accepted for the invoice',
  'endpoint.disabled': 'an endpoint created for this event returns 410 Gone',
  ping: 'no preparation is needed',
} as const satisfies Record<EventType, string>;

export type Trigger = keyof typeof TRIGGERS;
