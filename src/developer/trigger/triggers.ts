import type { EventType } from '../../core/domain/event.ts';

/** How to make each event happen. Only types are imported so that showing help stays fast. */
export const TRIGGERS = {
  'invoice.confirming': 'an invoice is created and paid exactly',
  'invoice.paid': 'an invoice is paid, and then the block becomes irreversible',
  'invoice.pending': 'an invoice is paid, and then the block is orphaned',
  'invoice.expired': 'the deadline of a new invoice is brought forward',
  'transfer.unmatched': 'a new invoice receives 1 USDT too little',
  'transfer.duplicate': 'a new invoice is paid twice',
  'transfer.refunded': 'an address created for this event returns a transfer to its sender',
  'transfer.claimed': 'a new invoice receives 1 USDT too little, and then the payer looks up the transfer',
  'transfer.resolved': 'a new invoice receives 1 USDT too little, and then the transfer is accepted for the invoice',
  'endpoint.disabled': 'an endpoint created for this event returns 410 Gone',
  ping: 'no preparation is needed',
} as const satisfies Record<EventType, string>;

export type Trigger = keyof typeof TRIGGERS;
