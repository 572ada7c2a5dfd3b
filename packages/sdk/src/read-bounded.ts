/** Reads a body of at most `maxBytes`. Returns null if it's larger, without reading the rest. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) {
      // The cancellation isn't awaited, because the sender could delay it indefinitely.
      reader.cancel().catch(() => undefined);
      return null;
    }
    chunks.push(value);
  }
  return joinBytes(chunks, size);
}

/** `size` is the total length of the chunks. */
export function joinBytes(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.byteLength;
  }
  return joined;
}
