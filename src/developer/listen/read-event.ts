import { decodeId } from '../../domain/ids.ts';
import { asObject, parseObject } from '../../runtime/parse-object.ts';

/** An event of the feed, as far as it is shown. Texts are the server's own: whoever shows them cleans them. */
export type FeedEvent = { id: string; type: string; invoiceId: string | null; externalId: string | null };

/** Reads what is shown of an event; `null` if the bytes are no event. */
export function readEvent(body: Uint8Array): FeedEvent | null {
  const { id, type, data } = parseObject(Buffer.from(body).toString());
  if (typeof id !== 'string' || decodeId('evt', id) === null || typeof type !== 'string') return null;
  const { invoiceId, externalId } = asObject(data);
  return { id, type, invoiceId: textOf(invoiceId), externalId: textOf(externalId) };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
