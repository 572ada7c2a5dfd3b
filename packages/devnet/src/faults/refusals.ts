import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { repeat } from '../wire/json-text.ts';
import { type Fault, hasFault } from './faults.ts';

/** A drip lasts longer than any client's timeout, but it ends eventually. */
export const DRIP_MS = 60_000;
export const DRIP_BYTES = 240;

/** A slow response is sent in steps of this length. 256 KiB per second is 2 Mbit/s. */
const STEP_MS = 50;
const DEFAULT_BYTES_PER_SECOND = 256 * 1024;

/** This exceeds the 24 MiB that a client may accept for most responses. */
export const DEFAULT_BOMB_BYTES = 32 * 1024 * 1024;

/** Real responses from nodes and from the proxies in front of them, byte for byte. */
export const REFUSALS: ReadonlyMap<Fault['kind'], { status: number; type: string; body: string }> = new Map([
  ['error-200', json(200, '{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}')],
  ['bare-text', { status: 200, type: 'text/plain', body: 'this API is closed because this node is a lite fullnode' }],
  [
    'html',
    html(
      502,
      '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n',
    ),
  ],
  [
    'suspended-403',
    json(
      403,
      '{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}',
    ),
  ],
  [
    'not-found-404',
    html(
      404,
      '<html>\n<head>\n<title>Error 404 Not Found</title>\n</head>\n<body><h2>HTTP ERROR 404 Not Found</h2></body>\n</html>\n',
    ),
  ],
  [
    'not-allowed-405',
    html(
      405,
      '<html>\n<head>\n<title>Error 405 HTTP method POST is not supported by this URL</title>\n</head>\n<body><h2>HTTP ERROR 405 HTTP method POST is not supported by this URL</h2></body>\n</html>\n',
    ),
  ],
  [
    'too-large-413',
    html(413, '<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body></body>\r\n</html>\r\n'),
  ],
  ['limited-429', json(429, '{"Error":"Too Many Requests"}')],
  [
    'unavailable-503',
    html(
      503,
      '<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n',
    ),
  ],
]);

/** Responds instead of the node, or doesn't respond at all. Returns false if the node itself should respond. */
export function refuseWith(faults: readonly Fault[], response: ServerResponse): boolean {
  for (const { kind, bytes } of faults) {
    if (kind === 'hang') return true;
    if (kind === 'reset') {
      response.socket?.resetAndDestroy();
      return true;
    }
    if (kind === 'bracket-bomb') {
      response.writeHead(200, { 'content-type': 'application/json;charset=utf-8' });
      void sendPieces(response, bracketBomb(bytes));
      return true;
    }
    const refusal = REFUSALS.get(kind);
    if (refusal === undefined) continue;
    response.writeHead(refusal.status, { 'content-type': refusal.type });
    response.end(refusal.body);
    return true;
  }
  return false;
}

/** Sends a response as a node with these faults does: whole, cut in half, slowly, or so slowly that it never ends. */
export async function send(
  faults: readonly Fault[],
  response: ServerResponse,
  answer: Iterable<string>,
): Promise<void> {
  if (!response.hasHeader('content-type')) response.setHeader('content-type', 'application/json;charset=utf-8');
  if (hasFault(faults, 'slow-drip')) return drip(response, [...answer].join(''));
  if (!hasFault(faults, 'truncated')) return sendPieces(response, paced(faults, answer));
  const body = [...answer].join('');
  response.end(body.slice(0, Math.floor(body.length / 2)));
}

/**
 * Writes as fast as the client reads. Like Jetty, sends a small response together with its length. It isn't an error if the client
 * disconnects.
 */
async function sendPieces(response: ServerResponse, pieces: Iterable<string> | AsyncIterable<string>): Promise<void> {
  if (Array.isArray(pieces)) return void response.end(pieces.join(''));
  await pipeline(Readable.from(pieces), response).catch(() => undefined);
}

/** Yields about this many bytes of JSON, which need far more memory when they are parsed. */
function* bracketBomb(bytes = DEFAULT_BOMB_BYTES): Generator<string> {
  yield '[';
  yield* repeat('{},', Math.max(0, Math.ceil(bytes / 3) - 1));
  yield '{}]';
}

/**
 * Sends as many bytes per second as the fault allows, in steps, so that the response never pauses. Without the fault, sends everything
 * immediately.
 */
export function paced<Piece extends string | Uint8Array>(
  faults: readonly Fault[],
  pieces: Iterable<Piece>,
): Iterable<Piece> | AsyncIterable<Piece> {
  const slow = faults.find(({ kind }) => kind === 'slow-large-answer');
  return slow === undefined ? pieces : slowly(pieces, slow.bytesPerSecond ?? DEFAULT_BYTES_PER_SECOND);
}

async function* slowly<Piece extends string | Uint8Array>(
  pieces: Iterable<Piece>,
  bytesPerSecond: number,
): AsyncGenerator<Piece> {
  const stepBytes = Math.max(1, Math.ceil((bytesPerSecond * STEP_MS) / 1000));
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += stepBytes) {
      yield piece.slice(at, at + stepBytes) as Piece;
      await setTimeout(STEP_MS);
    }
  }
}

/** Sends a few bytes per second, with spaces before a short response. After a minute, the connection breaks. */
function drip(response: ServerResponse, body: string): void {
  const bytes = Buffer.from(body.padStart(DRIP_BYTES + 1)).subarray(0, DRIP_BYTES);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < bytes.length) response.write(bytes.subarray(sent, sent + 1));
    else response.destroy();
    sent += 1;
  }, DRIP_MS / DRIP_BYTES);
  // The client has disconnected, or the node is stopping.
  response.once('close', () => clearInterval(timer));
}

function json(status: number, body: string) {
  return { status, type: 'application/json', body };
}

function html(status: number, body: string) {
  return { status, type: 'text/html', body };
}
