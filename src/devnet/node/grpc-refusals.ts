import type { ServerHttp2Stream } from 'node:http2';
import type { Fault } from '../faults/faults.ts';
import { DEFAULT_BOMB_BYTES, DRIP_BYTES, DRIP_MS, REFUSALS } from '../faults/refusals.ts';

export const GRPC_HEADERS = { ':status': 200, 'content-type': 'application/grpc' };

/**
 * The statuses with which java-tron, or a server before it, ends a call; other refusals are those of a proxy, which answers with its
 * own page. java-tron's message is empty for a limit (`RateLimiterInterceptor`), and this for a lite node (`LiteFnQueryGrpcInterceptor`).
 */
const STATUSES: ReadonlyMap<Fault['kind'], { readonly status: number; readonly message: string }> = new Map([
  ['error-200', { status: 8, message: '' }],
  ['limited-429', { status: 8, message: '' }],
  ['bare-text', { status: 14, message: 'this API is closed because this node is a lite fullnode' }],
  ['unavailable-503', { status: 14, message: '' }],
]);

/** Ends a call in place of the node, or never; false when the node itself is to answer. */
export function refuseCall(faults: readonly Fault[], stream: ServerHttp2Stream): boolean {
  for (const { kind } of faults) {
    if (kind === 'hang') return true;
    if (kind === 'reset') {
      stream.session?.destroy();
      return true;
    }
    const ended = STATUSES.get(kind);
    if (ended !== undefined) {
      const message = ended.message === '' ? {} : { 'grpc-message': ended.message };
      stream.respond({ ...GRPC_HEADERS, 'grpc-status': String(ended.status), ...message }, { endStream: true });
      return true;
    }
    const refusal = REFUSALS.get(kind);
    if (refusal === undefined) continue;
    stream.respond({ ':status': refusal.status, 'content-type': refusal.type });
    stream.end(refusal.body);
    return true;
  }
  return false;
}

/** A list message of about so many bytes that has only empty elements: field 1 of every list is one. */
export function floodOf({ bytes = DEFAULT_BOMB_BYTES }: Fault) {
  const element = Buffer.from('0a00', 'hex');
  const count = Math.ceil(bytes / element.length);
  const piece = Buffer.concat(Array.from({ length: 32 * 1024 }, () => element));
  return {
    length: count * element.length,
    *pieces() {
      for (let left = count * element.length; left > 0; left -= piece.length) yield piece.subarray(0, left);
    },
  };
}

/** A few bytes a second; after a minute the connection breaks. */
export function dripBytes(stream: ServerHttp2Stream, message: readonly Uint8Array[]): void {
  const bytes = Buffer.concat(message);
  let sent = 0;
  const timer = setInterval(() => {
    // A short answer stops before its end, and nothing says that it has ended.
    if (sent < Math.min(DRIP_BYTES, bytes.length - 1)) stream.write(bytes.subarray(sent, sent + 1));
    else if (sent >= DRIP_BYTES) stream.session?.destroy();
    sent += 1;
  }, DRIP_MS / DRIP_BYTES);
  stream.once('close', () => clearInterval(timer));
}
