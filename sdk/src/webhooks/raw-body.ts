/** No event has 20 KB; what is larger was not sent by Quittance. */
export const MAX_BODY_BYTES = 64 * 1024;

/** How to get at the bytes, said where it is needed. */
export const RAW_BODY_ADVICE =
  'A string or a parsed object does not hold the bytes that were signed. Express: mount this route before express.json(), or use express.raw({ type: "application/json" }). Next.js pages: export const config = { api: { bodyParser: false } }. With a Request: new Uint8Array(await request.arrayBuffer()). @quittance/sdk/express and its like do it for you';

/**
 * A copy of the raw bytes, so that what is verified is what is parsed, whatever becomes of the buffer meanwhile; null for anything
 * but bytes. Told by the tag, because the bytes may come from another realm.
 */
export function copyBytes(body: unknown): Uint8Array<ArrayBuffer> | null {
  const tag = Object.prototype.toString.call(body);
  if (tag === '[object Uint8Array]' && ArrayBuffer.isView(body)) return new Uint8Array(body as Uint8Array);
  if (tag === '[object ArrayBuffer]') return new Uint8Array(body as ArrayBuffer).slice();
  return null;
}
