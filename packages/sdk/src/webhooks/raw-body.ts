/** Every event is smaller than 20 KB, so a larger body wasn't sent by Quittance. */
export const MAX_BODY_BYTES = 64 * 1024;

/** How to get the raw bytes; part of the error messages. */
export const RAW_BODY_ADVICE =
  'Pass the raw bytes, the exact string, or its base64 with isBase64Encoded. Express: mount this route before express.json(). Next.js pages: set api.bodyParser to false. Request: await request.text()';

/**
 * Returns a copy of the raw bytes, so that exactly the bytes that were verified are parsed, whatever happens to the buffer in the meantime.
 * A string is encoded as UTF-8. Returns null for anything else, and for a string with a lone surrogate, which can't come from UTF-8. Bytes
 * are recognised by their tag, because they may come from another realm.
 */
export function copyBytes(body: unknown): Uint8Array<ArrayBuffer> | null {
  if (typeof body === 'string') return /\p{Surrogate}/u.test(body) ? null : new TextEncoder().encode(body);
  const tag = Object.prototype.toString.call(body);
  if (tag === '[object Uint8Array]' && ArrayBuffer.isView(body)) return new Uint8Array(body as Uint8Array);
  if (tag === '[object ArrayBuffer]') return new Uint8Array(body as ArrayBuffer).slice();
  return null;
}
