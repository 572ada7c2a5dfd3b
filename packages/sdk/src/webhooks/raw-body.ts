/** No event has 20 KB; what is larger was not sent by Quittance. */
export const MAX_BODY_BYTES = 64 * 1024;

/** How to get at the bytes, said where it is needed. */
export const RAW_BODY_ADVICE =
  'Pass the raw bytes or the exact string, or its base64 with isBase64Encoded. Express: mount this route before express.json(). Next.js pages: set api.bodyParser to false. Request: await request.text()';

/**
 * A copy of the raw bytes, so that what is verified is what is parsed, whatever becomes of the buffer meanwhile. A string stands for its
 * UTF-8. Returns null for anything else, and for a string with a lone surrogate, which no UTF-8 decodes to. The tag tells bytes apart,
 * because they may come from another realm.
 */
export function copyBytes(body: unknown): Uint8Array<ArrayBuffer> | null {
  if (typeof body === 'string') return /\p{Surrogate}/u.test(body) ? null : new TextEncoder().encode(body);
  const tag = Object.prototype.toString.call(body);
  if (tag === '[object Uint8Array]' && ArrayBuffer.isView(body)) return new Uint8Array(body as Uint8Array);
  if (tag === '[object ArrayBuffer]') return new Uint8Array(body as ArrayBuffer).slice();
  return null;
}
