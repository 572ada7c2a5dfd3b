import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { foreignRequest } from '@quittance/devnet/node/foreign-request';
import { AppError } from '../../core/domain/errors.ts';
import { toIso, unixMs } from '../../core/domain/time.ts';
import type { Clock } from '../../core/runtime/clock.ts';
import { asObject } from '../../core/runtime/parse-object.ts';
import { verifyWebhook } from '../../core/webhooks/sign.ts';

export type InboxOptions = {
  host: string;
  /** 0 chooses a free port. */
  port: number;
  /** The file of received webhooks, as lines of JSON. Created with its directory if missing. */
  file: string;
  /** Called for each webhook, because the inbox starts before its endpoint has a secret, and the secret may be rotated later. */
  getSecret: () => Promise<string>;
  clock: Clock;
};

/**
 * The sandbox's webhook receiver, written as an integrator should write one. It verifies the raw bytes before it parses them, stores a
 * webhook before acknowledging it, and recognises repeats. `POST /` receives; `GET /?type=…&invoiceId=…` lists, newest last. Pages from
 * other websites get a 403, so they can neither read orders nor fill the list. Throws `PORT_IN_USE`.
 */
export async function startInbox(options: InboxOptions): Promise<{ url: string; stop(): Promise<void> }> {
  const store = openStore(options.file);
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (request, response) => {
    handle(options, store, request, response).catch((error: unknown) => {
      answer(response, 500, { error: `the inbox has failed: ${error instanceof Error ? error.message : error}` });
    });
  });
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  const url = await listen(server, options.host, options.port);
  return { url, stop: () => stop(server) };
}

/** A line in the file or list. `body` is the received text; the list shows it parsed. */
type Received = {
  id: string;
  type: string | null;
  receivedAt: string;
  verified: boolean;
  /** The reason why the webhook couldn't be verified. */
  reason?: string;
  attempts: number;
  headers: Record<string, string>;
  body: string;
};

const MAX_BODY_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 8 * 1024;
const REQUEST_TIMEOUT_MS = 10_000;
/** The dispatcher sends fewer webhooks than this at once. */
const MAX_CONNECTIONS = 100;
/** How many of the newest webhooks to keep: enough for a day of experiments, and a few megabytes at most. */
const MAX_VERIFIED = 1000;
const MAX_REFUSED = 100;
/** Anyone can send an unverified webhook, so only its beginning is stored. */
const MAX_REFUSED_CHARS = 2048;
const MAX_TYPE_CHARS = 100;
/** After this many new lines, the file is rewritten with only the lines to keep. */
const COMPACT_AFTER_LINES = 4000;
const SHOWN_HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'webhook-protocol', 'user-agent'];

async function handle(options: InboxOptions, store: Store, request: IncomingMessage, response: ServerResponse) {
  const foreign = foreignRequest(request, options.host);
  if (foreign !== null) return answer(response, 403, { error: foreign });
  const url = new URL(request.url ?? '/', 'http://inbox');
  if (url.pathname !== '/') return answer(response, 404, { error: 'the inbox has only one path: /' });
  if (request.method === 'GET') return answer(response, 200, { data: list(store, url.searchParams) });
  if (request.method !== 'POST') {
    response.setHeader('allow', 'GET, POST');
    return answer(response, 405, { error: 'use POST to deliver a webhook, GET to list them' });
  }
  const body = await readBody(request);
  if (body === null) {
    response.setHeader('connection', 'close');
    return answer(response, 413, { error: `a webhook has at most ${MAX_BODY_BYTES} bytes` });
  }
  receive(options, store, request, response, { body, secret: await options.getSecret() });
}

function receive(
  { clock }: InboxOptions,
  store: Store,
  request: IncomingMessage,
  response: ServerResponse,
  { body, secret }: { body: Buffer; secret: string },
): void {
  const nowMs = clock.now();
  const text = body.toString('utf8');
  const { headersDistinct } = request;
  // A header that occurs twice isn't a string, so verification fails.
  const single = Object.fromEntries(
    Object.entries(headersDistinct).map(([name, values]) => [name, values?.length === 1 ? values[0] : values]),
  );
  const checked = verifyWebhook(body, single, secret, { nowMs });
  const received = {
    type: readText(parse(text), 'type')?.slice(0, MAX_TYPE_CHARS) ?? null,
    receivedAt: toIso(unixMs(nowMs)),
    attempts: 1,
    headers: Object.fromEntries(
      SHOWN_HEADERS.flatMap((name) => (typeof single[name] === 'string' ? [[name, single[name]]] : [])),
    ),
  };
  if (checked.kind === 'invalid') {
    const id = received.headers['webhook-id'] ?? '';
    const kept = text.slice(0, MAX_REFUSED_CHARS);
    store.keep({ id, ...received, verified: false, reason: checked.reason, body: kept });
    answer(response, 400, { error: checked.reason });
    return;
  }
  store.keep({ id: checked.id, ...received, verified: true, body: text });
  answer(response, 204, null);
}

/** Reads the whole body, or returns `null` if it's too long, without reading the rest. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function list(store: Store, query: URLSearchParams): object[] {
  const [type, invoiceId] = [query.get('type'), query.get('invoiceId')];
  return store
    .all()
    .map((received) => ({ ...received, body: parse(received.body) ?? received.body }))
    .filter(
      ({ body, ...received }) =>
        (type === null || received.type === type) &&
        (invoiceId === null || readText((body as { data?: unknown }).data, 'invoiceId') === invoiceId),
    );
}

type Store = ReturnType<typeof openStore>;

/**
 * Keeps the newest webhooks in memory and in a file. Each line in the file is one `Received`. A repeat adds a line with the same id so that
 * reading the file counts the attempts again. Lines damaged by a crash are skipped.
 */
function openStore(file: string) {
  mkdirSync(dirname(file), { recursive: true });
  const kept = createShelf();
  for (const received of readLines(file)) kept.add(received);
  rewrite(file, kept.all());
  let lines = 0;
  let isTorn = false;
  return {
    keep: (received: Received) => {
      try {
        appendFileSync(file, `${isTorn ? '\n' : ''}${JSON.stringify(received)}\n`);
        isTorn = false;
      } catch (error) {
        // If the disk was full, only part of the line may have been stored.
        isTorn = true;
        throw error;
      }
      kept.add(received);
      lines += 1;
      if (lines < COMPACT_AFTER_LINES) return;
      rewrite(file, kept.all());
      lines = 0;
    },
    all: kept.all,
  };
}

/** A refused webhook is never treated as a repeat, because a forged one must not hide the genuine one with its id. */
function createShelf() {
  let shelf: Received[] = [];
  return {
    add: (received: Received) => {
      const { id, verified, attempts } = received;
      const earlier = verified && shelf.find((other) => other.verified && other.id === id);
      if (earlier) {
        earlier.attempts += attempts;
        return;
      }
      shelf.push({ ...received });
      const alike = shelf.filter((other) => other.verified === verified);
      const oldest = alike.length > (verified ? MAX_VERIFIED : MAX_REFUSED) ? alike[0] : undefined;
      if (oldest !== undefined) shelf = shelf.filter((other) => other !== oldest);
    },
    all: () => shelf,
  };
}

function readLines(file: string): Received[] {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  return text.split('\n').flatMap((line) => {
    const value = parse(line) as Partial<Received> | null;
    const isWhole =
      typeof value?.id === 'string' && typeof value.body === 'string' && typeof value.attempts === 'number';
    return isWhole ? [value as Received] : [];
  });
}

/** Rewrites the file atomically. */
function rewrite(file: string, all: Received[]): void {
  const draft = `${file}.draft`;
  writeFileSync(draft, all.map((received) => `${JSON.stringify(received)}\n`).join(''), { mode: 0o600 });
  renameSync(draft, file);
}

function parse(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

function readText(value: unknown, name: string): string | null {
  const text = asObject(value)[name];
  return typeof text === 'string' ? text : null;
}

function answer(response: ServerResponse, status: number, body: object | null): void {
  if (response.headersSent) return;
  if (body === null) response.writeHead(status).end();
  else response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    const message = `port ${port} on ${host} is in use: stop the program that listens there, or choose another port`;
    throw new AppError('PORT_IN_USE', message, { cause: error });
  });
  const { port: actual } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${actual}/`;
}

async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
