import { decodeId } from '../../core/domain/ids.ts';
import { asObject, parseObject } from '../../core/runtime/parse-object.ts';

/** The displayed parts of an event in the feed. Texts are unescaped, so the code that shows them must escape them. */
export type FeedEvent = { id: string; type: string; invoiceId: string | null; externalId: string | null };

/** Reads the displayed parts of an event; `null` if the bytes aren't an event. */
export function readEvent(body: Uint8Array): FeedEvent | null {
  const { id, type, data } = parseObject(Buffer.from(body).toString());
  if (typeof id !== 'string' || decodeId('evt', id) === null || typeof type !== 'string') return null;
  const { invoiceId, externalId } = asObject(data);
  return { id, type, invoiceId: textOf(invoiceId), externalId: textOf(externalId) };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
