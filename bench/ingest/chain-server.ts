import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createGrpcServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type DayPlan, FIRST_SHOWN, makeDay, publishedAtMs, SOLID_DEPTH } from './day.ts';
import { type Floor, measureFloor } from './floor.ts';
import { answerOf, grpcAnswerOf, type View } from './node-answers.ts';

/** The server's settings, sent in its first message. */
export type ChainServerPlan = {
  day: DayPlan;
  nodes: number;
  /** The longest delay between a block's time and its appearance; the shortest is a seventh of it. */
  delayMs: number;
  /** The delay of each response; none if absent. */
  latencyMs?: number;
  /** Whether the nodes have no JSON-RPC, like a java-tron with default settings. */
  isWithoutLogs?: boolean;
  /** Whether the nodes use gRPC instead of JSON. */
  isGrpc?: boolean;
};

/** `show` makes the blocks up to `head` available. `live` makes the later ones available by the clock. */
type ChainOrder =
  | { kind: 'show'; head: number }
  | { kind: 'live' }
  | { kind: 'counts' }
  | { kind: 'floor'; first: number; blocks: number };

/** Requests by node and path since the last query, and when each block was first returned to a client. */
export type ChainCounts = { requests: Record<string, number>[]; bytes: number; shownAt: [number, number][] };

export type ChainReady = { urls: string[]; madeMs: number; residentBytes: number };

/** Whether the message is compressed, and its length. */
const GRPC_PREFIX_BYTES = 5;

const [plan] = (await once(process, 'message')) as [ChainServerPlan];
const started = performance.now();
const day = makeDay(plan.day);
const state = { shown: plan.day.firstNumber + FIRST_SHOWN, isLive: false, revealed: 0 };
const counts: ChainCounts = { requests: [], bytes: 0, shownAt: [] };

function headNumber(): number {
  if (!state.isLive) return state.shown;
  const now = Date.now();
  while (state.shown < day.last && publishedAtMs(plan.day, plan.delayMs, state.shown + 1) <= now) state.shown += 1;
  return state.shown;
}

async function serve(node: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const path = request.url ?? '';
  const parameters =
    chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>);
  if (plan.latencyMs !== undefined) await delay(plan.latencyMs);
  const head = headNumber();
  const top = path.startsWith('/walletsolidity/') ? head - SOLID_DEPTH : head;
  const of = counts.requests[node];
  if (of !== undefined) of[path] = (of[path] ?? 0) + 1;
  if (path === '/jsonrpc' && plan.isWithoutLogs === true) return void response.writeHead(405).end();
  const view: View = { day, plan: plan.day, top };
  const { parts, newest } = answerOf(view, path.slice(path.lastIndexOf('/') + 1), parameters);
  reveal(newest);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  counts.bytes += length;
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.cork();
  for (const part of parts) response.write(part);
  response.end();
}

/** The same node over gRPC, with both of its services at one port. */
async function listenGrpc(node: number): Promise<string> {
  const server = createGrpcServer({ maxSessionMemory: 1000 });
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => undefined);
    serveGrpc(node, path, stream).catch((error: unknown) => {
      console.error(error);
      stream.close();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return `${url}#solidity=${url}`;
}

async function serveGrpc(node: number, path: string, stream: ServerHttp2Stream): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  if (plan.latencyMs !== undefined) await delay(plan.latencyMs);
  const head = headNumber();
  const top = path.includes('WalletSolidity') ? head - SOLID_DEPTH : head;
  const of = counts.requests[node];
  if (of !== undefined) of[path] = (of[path] ?? 0) + 1;
  const request = Buffer.concat(chunks).subarray(GRPC_PREFIX_BYTES);
  const answer = grpcAnswerOf({ day, plan: plan.day, top }, path.slice(path.lastIndexOf('/') + 1), request);
  if (stream.destroyed) return;
  const headers = { ':status': 200, 'content-type': 'application/grpc' };
  if (answer === null) return stream.respond({ ...headers, 'grpc-status': '12' }, { endStream: true });
  reveal(answer.newest);
  const prefix = Buffer.alloc(GRPC_PREFIX_BYTES);
  const length = answer.parts.reduce((sum, part) => sum + part.length, 0);
  prefix.writeUInt32BE(length, 1);
  counts.bytes += length;
  stream.respond(headers, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.concat([prefix, ...answer.parts]));
}

/** Records when a live block was first returned to a client. */
function reveal(newest: number): void {
  if (!state.isLive) return;
  if (state.revealed === 0) state.revealed = newest;
  for (; state.revealed < newest; state.revealed += 1) counts.shownAt.push([state.revealed + 1, Date.now()]);
}

async function listen(node: number): Promise<string> {
  counts.requests[node] = {};
  if (plan.isGrpc === true) return listenGrpc(node);
  const server = createServer((request, response) => {
    serve(node, request, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  });
  server.keepAliveTimeout = 75_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function obey(order: ChainOrder): ChainCounts | Floor | { done: true } {
  if (order.kind === 'show') state.shown = order.head;
  if (order.kind === 'live') state.isLive = true;
  if (order.kind === 'floor') return measureFloor(day, order.first, order.blocks);
  if (order.kind !== 'counts') return { done: true };
  const copy = structuredClone(counts);
  counts.requests = counts.requests.map(() => ({}));
  counts.bytes = 0;
  return copy;
}

process.on('message', (order: ChainOrder) => process.send?.(obey(order)));
process.on('disconnect', () => process.exit());
const urls = await Promise.all(Array.from({ length: plan.nodes }, (_, node) => listen(node)));
const ready: ChainReady = { urls, madeMs: performance.now() - started, residentBytes: process.memoryUsage.rss() };
process.send?.(ready);
