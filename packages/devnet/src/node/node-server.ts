import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeElement } from '@quittance/tron/protobuf';
import { txIdOf } from '@quittance/tron/transaction';
import { type Block, headerBytes, transactionBytesOf } from '../chain/block.ts';
import type { Ledger, LedgerView } from '../chain/ledger.ts';
import { ParameterError, type Parameters } from '../chain/parameters.ts';
import { type Fault, faultsAt, hasFault, type SettledFault } from '../faults/faults.ts';
import { DEFAULT_BOMB_BYTES, DRIP_BYTES, DRIP_MS, paced, REFUSALS } from '../faults/refusals.ts';
import { resultBytesOf, unsignedBytes } from '../wire/hidden-fields.ts';
import { decodeMessage, encodeMessage, type Schema } from '../wire/protobuf-json.ts';
import {
  ACCOUNT,
  ACCOUNT_REQUEST,
  BLOCK_LIMIT,
  BLOCK_REQUEST,
  BYTES_MESSAGE,
  CHAIN_PARAMETERS,
  CONTRACT_CALL,
  NUMBER_MESSAGE,
  TRANSACTION_EXTENTION,
  TRANSACTION_INFO,
  TRANSACTION_INFO_LIST,
  WITNESS_LIST,
} from '../wire/schemas.ts';
import { findBlock, rangeOf } from './find-block.ts';
import { type Control, type HttpApi, type Listener, startHttpServer } from './http-server.ts';
import { type Answering, answerRequest, fallSick, type Sickness, viewAt } from './node-answers.ts';

/** A node that serves a ledger on four ports, like java-tron. Several nodes can serve the same ledger, each with its own faults. */
export interface NodeServer {
  /** The JSON API's URL, with JSON-RPC at `/jsonrpc`. Example: `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Serves only the part of the API below `/walletsolidity`. */
  readonly solidityUrl: string;
  /** Serves `protocol.Wallet` without TLS. Example: `grpc://127.0.0.1:40125`. */
  readonly grpcUrl: string;
  /** Serves `protocol.WalletSolidity`. */
  readonly grpcSolidityUrl: string;
  /**
   * Replaces the faults; without arguments, the node is healthy again. Requests that are already hanging keep hanging until the node stops.
   */
  setFault(...faults: readonly Fault[]): void;
  /** Closes the ports and every connection. */
  stop(): Promise<void>;
}

/** If a port is 0 or absent, a free port is used. */
export interface NodePorts {
  readonly port?: number;
  readonly solidityPort?: number;
  readonly grpcPort?: number;
  readonly grpcSolidityPort?: number;
  /** Whether the first port refuses `/walletsolidity`, which java-tron does but big providers don't. */
  readonly separatePorts?: boolean;
}

export async function startNodeServer({
  ledger,
  now,
  host,
  ports,
  control,
}: {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly host: string;
  readonly ports: NodePorts;
  readonly control: Control | null;
}): Promise<NodeServer> {
  const { port = 0, solidityPort = 0, grpcPort = 0, grpcSolidityPort = 0, separatePorts = false } = ports;
  let sickness = fallSick(ledger, []);
  const context = { ledger, now, sickness: () => sickness };
  const apis: HttpApi[] = separatePorts ? ['/wallet', '/jsonrpc'] : ['/wallet', '/jsonrpc', '/walletsolidity'];
  const starts = [
    () => startHttpServer({ ...context, control, apis }, { host, port }),
    () => startHttpServer({ ...context, control: null, apis: ['/walletsolidity'] }, { host, port: solidityPort }),
    () => startGrpcServer({ ...context, service: 'Wallet' }, { host, port: grpcPort }),
    () => startGrpcServer({ ...context, service: 'WalletSolidity' }, { host, port: grpcSolidityPort }),
  ];
  const listeners: Listener[] = [];
  const stop = async () => {
    await Promise.all(listeners.map((listener) => listener.stop()));
  };
  try {
    for (const start of starts) listeners.push(await start());
  } catch (error) {
    await stop();
    throw error;
  }
  const [http, solidity, grpc, grpcSolidity] = listeners.map(
    (listener) => `${host.includes(':') ? `[${host}]` : host}:${listener.port}`,
  );
  return {
    url: `http://${http}`,
    solidityUrl: `http://${solidity}`,
    grpcUrl: `grpc://${grpc}`,
    grpcSolidityUrl: `grpc://${grpcSolidity}`,
    setFault(...next) {
      sickness = fallSick(ledger, next);
    },
    stop,
  };
}

interface GrpcContext {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly service: GrpcService;
  readonly sickness: () => Sickness;
}

/** java-tron's limits for requests and headers. It doesn't limit responses. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const SETTINGS = { initialWindowSize: 1024 * 1024, maxHeaderListSize: 8192 };

/** Each message starts with a byte that says whether it's compressed (it never is), followed by its length. */
const PREFIX_BYTES = 5;

const PIECE_BYTES = 64 * 1024;

/** grpc-java closes a connection at the third PING in a row. */
const MAX_PINGS = 2;

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM } = { NGHTTP2_CANCEL: 8, NGHTTP2_ENHANCE_YOUR_CALM: 11 };
const INTERNAL = 13;

/** Serves one service of a node's gRPC API over HTTP/2 without TLS, like java-tron. Port 0 selects a free port. */
async function startGrpcServer(
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
    // A client that disconnects isn't an error.
    stream.on('error', () => undefined);
    const { ':method': verb = '', ':path': path = '', 'content-type': type = '' } = headers;
    if (verb !== 'POST') return refuseHttp(stream, 405, `Method '${verb}' is not supported`);
    if (!type.startsWith('application/grpc')) return refuseHttp(stream, 415, `Content-Type '${type}' is not supported`);
    handle(stream, path, context).catch((error: unknown) => {
      // Only a bug of the devnet itself leads here. The message shows the error to the developer.
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

/** Returns the only message of a request, or null if the request was invalid and the call has been ended. */
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

/** Sends a message as a node with these faults does: whole, cut in half, slowly, or so slowly that it never ends. */
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

/** If there's no message, the status is in the headers. */
function endWith(stream: ServerHttp2Stream, status: number, message: string): void {
  if (stream.closed || stream.destroyed || stream.headersSent) return;
  stream.respond(
    { ...GRPC_HEADERS, 'grpc-status': String(status), 'grpc-message': percentEncoded(message) },
    { endStream: true },
  );
}

/** Encodes a message as gRPC does: only characters outside printable ASCII are encoded. */
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

const GRPC_HEADERS = { ':status': 200, 'content-type': 'application/grpc' };

/**
 * The statuses with which java-tron, or a server in front of it, ends a call. All other refusals come from a proxy, which responds with its
 * own page. If java-tron limits requests, its message is empty (`RateLimiterInterceptor`). A lite node sends the text below
 * (`LiteFnQueryGrpcInterceptor`).
 */
const STATUSES: ReadonlyMap<Fault['kind'], { readonly status: number; readonly message: string }> = new Map([
  ['error-200', { status: 8, message: '' }],
  ['limited-429', { status: 8, message: '' }],
  ['bare-text', { status: 14, message: 'this API is closed because this node is a lite fullnode' }],
  ['unavailable-503', { status: 14, message: '' }],
]);

/** Ends a call instead of the node, or never ends it. Returns false if the node itself should respond. */
function refuseCall(faults: readonly Fault[], stream: ServerHttp2Stream): boolean {
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

/**
 * Returns a list message of about this many bytes that contains only empty elements. It's valid for every list type, because each has its
 * elements in field 1.
 */
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

/** Sends a few bytes per second. After a minute, the connection breaks. */
function dripBytes(stream: ServerHttp2Stream, message: readonly Uint8Array[]): void {
  const bytes = Buffer.concat(message);
  let sent = 0;
  const timer = setInterval(() => {
    // A truncated response stops before its end, and nothing shows that no more will follow.
    if (sent < Math.min(DRIP_BYTES, bytes.length - 1)) stream.write(bytes.subarray(sent, sent + 1));
    else if (sent >= DRIP_BYTES) stream.session?.destroy();
    sent += 1;
  }, DRIP_MS / DRIP_BYTES);
  stream.once('close', () => clearInterval(timer));
}

export type GrpcService = 'Wallet' | 'WalletSolidity';

/** A call that ends with a non-zero status. */
class GrpcError extends Error {
  override name = 'GrpcError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** gRPC status codes. */
const [UNKNOWN, INVALID_ARGUMENT, UNIMPLEMENTED] = [2, 3, 12];

interface Call {
  readonly view: LedgerView;
  readonly request: Parameters;
  readonly shows: (block: Block) => readonly Uint8Array[];
  /** Returns the JSON API's response at the corresponding path. */
  readonly json: (parameters: Parameters) => unknown;
}

interface Method {
  readonly request: Schema;
  readonly run: (call: Call) => Uint8Array;
}

/** A missing block, an unknown id and an empty list are all represented by a message without fields. */
const NOTHING = new Uint8Array(0);

const BOTH: Readonly<Record<string, Method>> = {
  GetNowBlock: method({}, ({ view, shows }) => plainBlock(view.block(view.headNumber), shows)),
  GetNowBlock2: method({}, ({ view, shows }) => extendedBlock(view.block(view.headNumber), shows)),
  GetBlockByNum: method(NUMBER_MESSAGE, ({ view, request, shows }) => plainBlock(view.block(numberOf(request)), shows)),
  GetBlockByNum2: method(NUMBER_MESSAGE, ({ view, request, shows }) =>
    extendedBlock(view.block(numberOf(request)), shows),
  ),
  GetBlock: method(BLOCK_REQUEST, ({ view, request, shows }) => {
    const block = findBlock(view, String(request['id_or_num'] ?? ''));
    return extendedBlock(block, request['detail'] === true ? shows : () => []);
  }),
  GetTransactionById: method(BYTES_MESSAGE, ({ view, request }) => {
    const found = view.transaction(String(request['value'] ?? ''));
    return found === null ? NOTHING : transactionBytesOf(found.transaction);
  }),
  GetTransactionInfoById: method(BYTES_MESSAGE, ({ request, json }) =>
    encodeMessage(TRANSACTION_INFO, json({ value: request['value'] ?? '' }) as object),
  ),
  GetTransactionInfoByBlockNum: method(NUMBER_MESSAGE, ({ request, json }) => {
    const infos = json({ num: numberOf(request) });
    return encodeMessage(TRANSACTION_INFO_LIST, { transactionInfo: Array.isArray(infos) ? infos : [] });
  }),
  ListWitnesses: method({}, ({ json }) => encodeMessage(WITNESS_LIST, json({}) as object)),
  GetAccount: method(ACCOUNT_REQUEST, ({ request, json }) => {
    const address = String(request['address'] ?? '');
    // In gRPC, text that isn't an address is treated as an account that doesn't exist.
    return /^41.{40}$/.test(address) ? encodeMessage(ACCOUNT, json({ address }) as object) : NOTHING;
  }),
  TriggerConstantContract: method(CONTRACT_CALL, constantCall),
};

const METHODS: Readonly<Record<GrpcService, Readonly<Record<string, Method>>>> = {
  Wallet: {
    ...BOTH,
    GetChainParameters: method({}, ({ json }) => encodeMessage(CHAIN_PARAMETERS, json({}) as object)),
    GetBlockByLimitNext: method(BLOCK_LIMIT, ({ view, request, shows }) => blockList(view, request, plainBlock, shows)),
    GetBlockByLimitNext2: method(BLOCK_LIMIT, ({ view, request, shows }) =>
      blockList(view, request, extendedBlock, shows),
    ),
  },
  WalletSolidity: BOTH,
};

/**
 * Returns the corresponding path of the JSON API, so that the path's faults also apply to the method. `Wallet`'s `GetBlock` is
 * `/wallet/getblock`.
 */
function pathOfMethod(service: GrpcService, name: string): string {
  return `/${service}/${name.replace(/2$/, '')}`.toLowerCase();
}

/** Returns the message that answers a call, with the raw bytes of headers and transactions. Throws a GrpcError. */
export function answerCall(node: Answering, service: GrpcService, name: string, request: Uint8Array): Uint8Array {
  const called = Object.hasOwn(METHODS[service], name) ? METHODS[service][name] : undefined;
  if (called === undefined) throw new GrpcError(UNIMPLEMENTED, `Method not found: protocol.${service}/${name}`);
  const decoded = decodeMessage(called.request, request);
  if (decoded === null) throw new GrpcError(UNKNOWN, 'Application error processing RPC');
  const path = pathOfMethod(service, name);
  const { view, faults } = viewAt(node, path, service === 'Wallet' ? 'full' : 'solid');
  const shows = (block: Block) => (hasFault(faults, 'empty-block') ? [] : block.transactions.map(transactionBytesOf));
  const json = (parameters: Parameters) => answerRequest(node, path, parameters);
  try {
    return called.run({ view, request: decoded, shows, json });
  } catch (error) {
    if (error instanceof ParameterError) throw new GrpcError(INVALID_ARGUMENT, error.message);
    throw error;
  }
}

function method(request: Schema, run: Method['run']): Method {
  return { request, run };
}

function numberOf({ num = 0 }: Parameters): number {
  return Number(num);
}

/** `Block`. */
function plainBlock(block: Block | null, shows: Call['shows']): Uint8Array {
  if (block === null) return NOTHING;
  return concatBytes(...shows(block).map((each) => writeElement(1, each)), writeElement(2, header(block)));
}

/** `BlockExtention`: each Transaction with its id and `Return{result: true}`. */
function extendedBlock(block: Block | null, shows: Call['shows']): Uint8Array {
  if (block === null) return NOTHING;
  const transactions = shows(block).map((bytes, index) => {
    const id = hexToBytes(block.transactions[index]?.id ?? '');
    return writeElement(1, concatBytes(writeElement(1, bytes), writeBytes(2, id), hexToBytes('22020801')));
  });
  return concatBytes(...transactions, writeElement(2, header(block)), writeBytes(3, hexToBytes(block.id)));
}

function header(block: Block): Uint8Array {
  return concatBytes(writeElement(1, headerBytes(block)), writeBytes(2, hexToBytes(block.signature)));
}

function blockList(
  view: LedgerView,
  { startNum = 0, endNum = 0 }: Parameters,
  encode: typeof plainBlock,
  shows: Call['shows'],
): Uint8Array {
  const blocks = rangeOf(view, Number(startNum), Number(endNum)) ?? [];
  return concatBytes(...blocks.map((block) => writeElement(1, encode(block, shows))));
}

/**
 * `TriggerConstantContract` returns a `TransactionExtention`. Unlike in the JSON API, a call doesn't need an owner, and an error has a
 * prefix.
 */
function constantCall({ request, json }: Call): Uint8Array {
  const owner = request['owner_address'] ?? `41${'00'.repeat(20)}`;
  const answer = json({ ...request, owner_address: owner }) as {
    readonly result: { readonly code?: string; readonly message?: string };
    readonly transaction?: { readonly raw_data_hex: string; readonly ret: readonly { readonly ret?: string }[] };
  };
  const { transaction, result } = answer;
  if (transaction === undefined) {
    const prefix = Buffer.from('Contract validate error : ').toString('hex');
    return encodeMessage(TRANSACTION_EXTENTION, { result: { ...result, message: prefix + (result.message ?? '') } });
  }
  const rawData = hexToBytes(transaction.raw_data_hex);
  const whole = unsignedBytes(rawData, resultBytesOf(transaction.ret[0] ?? {}));
  return concatBytes(
    writeElement(1, whole),
    encodeMessage(TRANSACTION_EXTENTION, { ...answer, txid: txIdOf(rawData) }),
  );
}
