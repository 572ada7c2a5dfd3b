import { EVENT_TYPE_WIDTH } from '../../domain/event.ts';
import { printable } from '../../operator/input/printable.ts';

/** The members of an event's body that a line shows; which of them `data` has depends on the type. */
type EventText = {
  id: string;
  type: string;
  timestamp: string;
  data: {
    invoiceId?: string;
    externalId?: string;
    status?: string;
    payment?: { payableAmount: string };
    transferId?: string;
    amount?: string;
    endpointId?: string;
    reason?: string;
  };
};

/**
 * The stored body of an event in one line: time (UTC), type, id, and what it is about.
 * `2026-11-21 02:42:35  invoice.paid        evt_01m7…  inv_01m7…  PAID  25.000137  order-1001`
 */
export function describeEvent(body: string): string {
  const { id, type, timestamp, data } = JSON.parse(body) as EventText;
  const { transferId, invoiceId, endpointId, status, payment, amount, externalId, reason } = data;
  const subjects = [transferId, invoiceId, endpointId, status, payment?.payableAmount ?? amount, externalId, reason];
  const time = timestamp.slice(0, 19).replace('T', ' ');
  const parts = [time, type.padEnd(EVENT_TYPE_WIDTH), id, ...subjects.filter((part) => part !== undefined)];
  return printable(parts.join('  ').trimEnd());
}
