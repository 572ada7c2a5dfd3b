import { decodeId } from '../../domain/ids.ts';
import { asObject, parseObject } from '../../runtime/parse-object.ts';
import { printable } from '../terminal.ts';
import type { Forwarded } from './forward.ts';

/** What a line says of one event. Texts are the server's own: they are cleaned before they are shown. */
export type FeedEvent = { id: string; type: string; invoiceId: string | null; externalId: string | null };

type Answered = Extract<Forwarded, { kind: 'answered' }>;

/** Reads what is shown of an event; `null` if the bytes are no event. */
export function readEvent(body: Uint8Array): FeedEvent | null {
  const { id, type, data } = parseObject(Buffer.from(body).toString());
  if (typeof id !== 'string' || decodeId('evt', id) === null || typeof type !== 'string') return null;
  const { invoiceId, externalId } = asObject(data);
  return { id, type, invoiceId: textOf(invoiceId), externalId: textOf(externalId) };
}

/** One line for people: `12:04:05  invoice.paid  evt_…  inv_… order-17  → 200 in 12 ms`, red where the answer is no success. */
export function eventLine(
  event: FeedEvent,
  { status, elapsedMs, answer, code }: Answered,
  { now, hasColor }: { now: Date; hasColor: boolean },
): string {
  const subject = [event.invoiceId, event.externalId].filter((part) => part !== null).join(' ');
  const parts = [now.toTimeString().slice(0, 8), event.type.padEnd(TYPE_WIDTH), event.id, subject];
  const said = [code, answer].filter((part) => part !== null).join(': ');
  const result = `→ ${status} in ${elapsedMs} ms${said === '' ? '' : `  ${said}`}`;
  const isGood = status >= 200 && status < 300;
  const line = parts
    .filter((part) => part !== '')
    .map(printable)
    .join('  ');
  return `${line}  ${isGood || !hasColor ? result : `${RED}${result}${RESET}`}`;
}

/** The same as one object. */
export function eventRecord(event: FeedEvent, { status, elapsedMs, answer, code }: Answered, now: Date): object {
  return { kind: 'event', at: now.toISOString(), ...event, status, elapsedMs, answer, code };
}

/** The longest type of event is `endpoint.disabled`, or `transfer.duplicate`. */
const TYPE_WIDTH = 'transfer.duplicate'.length;
const RED = '\u001b[31m';
const RESET = '\u001b[39m';

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
