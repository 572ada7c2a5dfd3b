import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Ledger } from '../chain/ledger.ts';
import { faultsAt, hasFault, type SettledFault } from '../faults/faults.ts';
import { paced } from '../faults/refusals.ts';
import { answerCall, GrpcError, type GrpcService, pathOfMethod } from './grpc-methods.ts';
import { dripBytes, floodOf, GRPC_HEADERS, refuseCall } from './grpc-refusals.ts';
import type { Listener } from './http-server.ts';
import type { Sickness } from './node-answers.ts';

interface GrpcContext {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly service: GrpcService;
  readonly sickness: () => Sickness;
}

/** java-tron's bounds for requests and for headers. It has none for answers. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const SETTINGS = { initialWindowSize: 1024 * 1024, maxHeaderListSize: 8192 };

/** A message is preceded by whether it is compressed (never), and its length. */
const PREFIX_BYTES = 5;

/** Large messages are written in pieces. */
const PIECE_BYTES = 64 * 1024;

/** grpc-java ends a connection at the third PING in a row. */
const MAX_PINGS = 2;

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM } = { NGHTTP2_CANCEL: 8, NGHTTP2_ENHANCE_YOUR_CALM: 11 };
const INTERNAL = 13;

/** Answers one service of a node's gRPC API over HTTP/2 without TLS, as java-tron does; port 0 takes a free one. */
export async function startGrpcServer(
  context: GrpcContext,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listener> {
  const server = createServer({ settings: SETTINGS });
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    let pings = 0;
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => undefined);
    session.on('stream', () => {
      pings = 0;
    });
    session.on('ping', () => {
      pings += 1;
      if (pings > MAX_PINGS) session.goaway(NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
    });
  });
  server.on('stream', (stream, headers) => {
    // A client that goes away is no fault of ours.
    stream.on('error', () => undefined);
    const { ':method': verb = '', ':path': path = '', 'content-type': type = '' } = headers;
    if (verb !== 'POST') return refuseHttp(stream, 405, `Method '${verb}' is not supported`);
    if (!type.startsWith('application/grpc')) return refuseHttp(stream, 415, `Content-Type '${type}' is not supported`);
    handle(stream, path, context).catch((error: unknown) => {
      // Only a fault of the devnet itself gets here; the message tells the developer what it was.
      endWith(stream, INTERNAL, error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
  });
  return {
    port: await listen(server, host, port),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  };
}

async function handle(stream: ServerHttp2Stream, path: string, context: GrpcContext): Promise<void> {
  const { ledger, now, service } = context;
  const sickness = context.sickness();
  const [, called = '', name = ''] = /^\/([^/]+)\/(.+)$/.exec(path) ?? [];
  const faults = faultsAt(sickness.faults, pathOfMethod(service, name));
  const request = await readRequest(stream);
  if (request === null || refuseCall(faults, stream)) return;
  const flood = faults.find(({ kind }) => kind === 'bracket-bomb');
  if (flood !== undefined) return sendMessage(stream, floodOf(flood), faults);
  let message: Uint8Array;
  try {
    if (called !== `protocol.${service}`) throw new GrpcError(12, `Method not found: ${path.slice(1)}`);
    message = answerCall({ ledger, now, sickness }, service, name, request);
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    return endWith(stream, error.status, error.message);
  }
  await sendMessage(stream, { length: message.length, pieces: () => piecesOf(message) }, faults);
}

/** The one message of a request; null when the call has ended because it is none. */
async function readRequest(stream: ServerHttp2Stream): Promise<Uint8Array | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    chunks.push(chunk);
    if (length > PREFIX_BYTES + MAX_REQUEST_BYTES) break;
  }
  const bytes = Buffer.concat(chunks);
  const whole = PREFIX_BYTES + (bytes.length < PREFIX_BYTES ? 0 : bytes.readUInt32BE(1));
  if (length > PREFIX_BYTES + MAX_REQUEST_BYTES || bytes[0] === 1) stream.close(NGHTTP2_CANCEL);
  else if (bytes.length < whole) endWith(stream, INTERNAL, 'Half-closed without a request');
  else if (bytes.length > whole) endWith(stream, INTERNAL, 'Too many requests');
  else return bytes.subarray(PREFIX_BYTES);
  return null;
}

/** Sends a message as a node with these faults does: whole, half of it and then the end, slowly, or so slowly that it never ends. */
async function sendMessage(
  stream: ServerHttp2Stream,
  { length, pieces }: { readonly length: number; readonly pieces: () => Iterable<Uint8Array> },
  faults: readonly SettledFault[],
): Promise<void> {
  if (stream.closed || stream.destroyed) return;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(length, 1);
  const isCut = hasFault(faults, 'truncated');
  const headers = { ...GRPC_HEADERS, 'grpc-encoding': 'identity', 'grpc-accept-encoding': 'gzip' };
  stream.respond(headers, { waitForTrailers: !isCut });
  if (!isCut) stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  if (hasFault(faults, 'slow-drip')) return dripBytes(stream, [prefix, ...pieces()]);
  if (isCut) return void stream.end(Buffer.concat([prefix, ...pieces()]).subarray(0, PREFIX_BYTES + (length >> 1)));
  const framed = function* () {
    yield prefix as Uint8Array;
    yield* pieces();
  };
  await pipeline(Readable.from(paced(faults, framed())), stream).catch(() => undefined);
}

function* piecesOf(message: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < message.length; at += PIECE_BYTES) yield message.subarray(at, at + PIECE_BYTES);
}

/** A status without a message stands in the headers. */
function endWith(stream: ServerHttp2Stream, status: number, message: string): void {
  if (stream.closed || stream.destroyed || stream.headersSent) return;
  stream.respond(
    { ...GRPC_HEADERS, 'grpc-status': String(status), 'grpc-message': percentEncoded(message) },
    { endStream: true },
  );
}

/** gRPC's way to write a message: only characters that are not printable ASCII are encoded. */
function percentEncoded(message: string): string {
  return message.replace(/[^ -$&-~]/gu, (character) => encodeURIComponent(character));
}

function refuseHttp(stream: ServerHttp2Stream, status: number, message: string): void {
  stream.respond({
    ':status': status,
    'content-type': 'text/plain; charset=utf-8',
    'grpc-status': '13',
    'grpc-message': message,
  });
  stream.end(message);
}

function listen(server: Http2Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
