import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { AppError, isDatabaseUnavailable, shortageBehind } from '../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../core/domain/ids.ts';
import type { UnixMs } from '../../core/domain/time.ts';
import { createTally, type Logger } from '../../core/runtime/log.ts';
import type { Metrics } from '../../core/runtime/metrics.ts';
import { boundConnections } from './bound-connections.ts';
import { type Client, proxiesOf, readClients } from './client-address.ts';
import { ANSWER_HEADERS, headerValues } from './headers.ts';
import { LIMITS } from './load-gate.ts';
import { PROBLEMS, Problem, problemOf, unavailable } from './problem.ts';
import { notesOf } from './request-notes.ts';
import { shedLoad } from './shed-load.ts';

type ServerOptions = {
  publicUrl(): string;
  /** Addresses and CIDR blocks for the proxies whose X-Forwarded-For can be relied on. If it's empty, there are none. */
  trustProxy: readonly string[];
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
  /** How long events wait for the event loop, in milliseconds. Measured by default. */
  lagMs?(): number;
  /** The fraction of the process's capacity that requests may use, from 0 to 1. The default is all of it. */
  requestShare?(): number;
  /** Whether a host name (`Host` without the port) is ours. By default every name is. */
  isOurHost?(name: string): boolean;
  /** Returns a key that is known to be valid (UUIDs), so that its requests don't have to wait behind strangers' requests. */
  recognize?(apiKey: string, client: Client): { id: string; projectId: string } | null;
  /** Whether every response is logged, and not only the ones that always are. The default is `false`. */
  requestLines?: boolean | undefined;
  /** Formats errors for URLs that don't use `application/problem+json`. */
  showProblem?(url: string, problem: Problem, id: string): { headers: Record<string, string>; body: string } | null;
  /** Called for each response when it is sent. Must not throw. */
  onAnswer?(request: FastifyRequest, reply: FastifyReply, tookMs: number): void;
};

export const MAX_BODY_BYTES = 16 * 1024;
/** A client that needs longer to send 16 KiB is broken or hostile. */
const REQUEST_TIMEOUT_MS = 15_000;
/** How often to search for requests that exceed this time. With Node's default of 30 s, they could take three times as long. */
const CHECK_MS = 1000;
const KEEP_ALIVE_MS = 65_000;

const STARTED_MS = Symbol('started');
type TimedRequest = FastifyRequest & { [STARTED_MS]?: number };

function unused(): never {
  throw new Error('the server has compilers of its own');
}

/** Creates the HTTP server with everything that routes share: request ids, problem+json, 404 and 405, metrics, limits. */
export function createServer(options: ServerOptions): FastifyInstance {
  const isProxy = proxiesOf(options.trustProxy);
  const clientErrors = createClientErrors({ ...options, newRequestId: () => newRequestId(options) });
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: REQUEST_TIMEOUT_MS * 2,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A hook refuses a missing Host so that the error looks like every other one.
    http: {
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_MS,
      maxHeaderSize: 16 * 1024,
      requireHostHeader: false,
    },
    genReqId: () => newRequestId(options),
    // Any text may be sent instead of an id, and the response is "not found", even if the text can't be decoded.
    routerOptions: { maxParamLength: 16 * 1024 },
    rewriteUrl: (request) => decodablePath(withoutOrigin(request.url ?? '/')),
    clientErrorHandler: clientErrors.answer,
    forceCloseConnections: 'idle',
    // Without these, Fastify loads Ajv and a serialiser that nothing uses, in 20 ms.
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  });
  // Routes read bodies as bytes and validate them themselves; the schemas are only documentation. Serialising by schema was slower, because
  // it tries the members of a union one by one.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  boundConnections(app.server, { ...options, isProxy });
  clientErrors.follow(app.server);
  bearOddRequests(app);
  endConnectionsAtStop(app);
  const allowed = trackMethods(app);
  app.addHook('onRequest', (request: TimedRequest, reply, done) => {
    request[STARTED_MS] = performance.now();
    reply.header('X-Request-Id', request.id).headers(ANSWER_HEADERS);
    checkHost(request.raw);
    if (options.isOurHost?.(hostName(request)) === false) answerMisdirected(request, reply);
    else done();
  });
  readClients(app, isProxy);
  boundUnsentAnswers(app);
  shedLoad(app, {
    ...options,
    lagMs: options.lagMs ?? measureLag(app),
    requestShare: options.requestShare ?? (() => 1),
    limits: LIMITS,
  });
  app.addHook('onRequest', (request, reply, done) => {
    // This is a hook, because the not-found handler runs only after the body has been read, and the body may be refused before that.
    if (request.is404 || lacksId(request)) answerMethod(request, reply, lacksId(request) ? null : allowed(request));
    else done();
  });
  tellOfAnswers(app, options);
  const refusals = createRefusals(options);
  app.setErrorHandler((error, request, reply) =>
    sendProblem(request, reply, toProblem(error, request, refusals), options),
  );
  return app;
}

function tellOfAnswers(app: FastifyInstance, options: ServerOptions): void {
  const logAnswer = createRequestLines({ ...options, isOn: options.requestLines === true });
  // This hook isn't `onResponse`, for which Fastify would add listeners to each response's stream.
  app.addHook('onSend', (request: TimedRequest, reply, payload, done) => {
    const route = request.routeOptions.url ?? 'none';
    const labels = { method: request.method, route, status: String(reply.statusCode) };
    const elapsedMs = performance.now() - (request[STARTED_MS] ?? performance.now());
    options.metrics.requestSeconds.observe(labels, elapsedMs / 1000);
    logAnswer(request, reply, elapsedMs);
    options.onAnswer?.(request, reply, elapsedMs);
    done(null, payload);
  });
}

/** `Host: [::1]:8080` becomes `[::1]`. */
function hostName({ headers }: FastifyRequest): string {
  return (headers.host ?? '').replace(/:\d*$/, '').toLowerCase();
}

/**
 * Responds to a request for another host name. A web page under that name may have sent the request, after its own name server had directed
 * the name to this address.
 */
function answerMisdirected(request: FastifyRequest, reply: FastifyReply): void {
  const detail = `This server does not serve the host ${hostName(request).slice(0, 100)}.`;
  const body = { type: 'about:blank', title: 'Misdirected Request', status: 421, code: 'MISDIRECTED', detail };
  reply
    .code(421)
    .type('application/problem+json; charset=utf-8')
    .send(JSON.stringify({ ...body, requestId: request.id }));
}

function measureLag(app: FastifyInstance): () => number {
  const lag = startLoopLag();
  app.addHook('onClose', async () => lag.stop());
  return lag.lagMs;
}

/** The paths where plugins for other payment servers send orders. */
const OF_ADAPTERS =
  /(^|\/)(create-transaction|create-order|check-status|cancel-transaction|submit\.php|mapi\.php|api\.php)(\/|$)/;

/** Returns a sentence about what the sender of a wrong path probably meant, preceded by a space, or an empty string. */
function hintOf(url: string): string {
  const path = url.split('?', 1)[0] ?? '';
  if (OF_ADAPTERS.test(path) && !path.startsWith('/adapters/')) {
    return "An adapter's URL begins with /adapters/whe_…; the operator can see it with: quittance adapter list. ";
  }
  return path.length > 1 && path.endsWith('/') ? 'Remove the slash at the end of the path. ' : '';
}

/** Whether an API path such as `/v1/invoices/` lacks the id that its route needs. */
function lacksId({ url, params }: FastifyRequest): boolean {
  return url.startsWith('/v1/') && Object.values(params ?? {}).includes('');
}

/** Responds to a request that matched no route. `methods` contains the methods of its URL, if the URL exists. */
function answerMethod(request: FastifyRequest, reply: FastifyReply, methods: string[] | null): FastifyReply {
  if (methods === null) {
    const detail = `There is nothing at ${request.url.slice(0, 200)}. ${hintOf(request.url)}All URLs are listed in /openapi.json.`;
    return reply.send(new Problem('ROUTE_NOT_FOUND', detail));
  }
  const allow = methods.join(', ');
  // The response doesn't allow any other origin, so pages from other origins can't send requests that need permission.
  if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
  const detail = `${request.method} is not allowed at this URL; use ${allow}.`;
  return reply.send(new Problem('METHOD_NOT_ALLOWED', detail, { headers: { Allow: allow } }));
}

function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
  options: Pick<ServerOptions, 'publicUrl' | 'showProblem'>,
): FastifyReply {
  notesOf(request).problem = problem;
  const { headers, body } = options.showProblem?.(request.url, problem, request.id) ?? {
    headers: { 'Content-Type': 'application/problem+json; charset=utf-8' },
    body: JSON.stringify(problemBody(problem, options.publicUrl(), request.id)),
  };
  return reply
    .code(problem.status)
    .headers({ ...problem.headers, ...headers })
    .send(body);
}

type Refusals = ReturnType<typeof createRefusals>;

/** Logs refused and failed requests once a minute per reason or place, with their number. */
function createRefusals({ log, now }: Pick<ServerOptions, 'log' | 'now'>) {
  const tally = createTally(now);
  return {
    note: (error: AppError, requestId: string): void => {
      const reason = shortageBehind(error) ?? 'the database does not respond';
      const requests = tally.note(reason);
      if (requests !== null)
        log.warn({ requestId, reason: error.message, requests }, `requests are refused: ${reason}`);
    },
    /** Records an unexpected error. Errors are grouped by their place in the program, according to message and stack. */
    noteFault: (error: unknown, { id: requestId, routeOptions: { url: route } }: FastifyRequest): void => {
      const place = error instanceof Error ? /\n +at .*/.exec(error.stack ?? '')?.[0] : String(error);
      const requests = tally.note(`${route} ${place}`);
      if (requests !== null) log.error({ requestId, err: error, route, requests }, 'requests failed');
    },
  };
}

function toProblem(error: unknown, request: FastifyRequest, refusals: Refusals): Problem {
  if (error instanceof Problem) return error;
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem('PAYLOAD_TOO_LARGE', `The body is larger than ${request.routeOptions.bodyLimit} bytes.`);
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new Problem('UNSUPPORTED_MEDIA_TYPE', 'The Content-Type header is not a media type.');
  }
  if (isDatabaseUnavailable(error)) {
    refusals.note(error, request.id);
    return unavailable(shortageBehind(error) ?? 'the database does not respond');
  }
  // The database layer logs these errors and raises their alarms, because other code reads the same rows.
  if (error instanceof AppError && error.code === 'ADDRESS_DAMAGED') return problemOf('address-damaged');
  if (error instanceof AppError && error.code === 'ROW_CHANGED') return problemOf('row-changed');
  if (error instanceof AppError && error.code === 'ADDRESS_NOT_VOUCHED') return problemOf('address-not-vouched');
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new Problem('INVALID_REQUEST', `The request could not be read: ${(error as Error).message.slice(0, 200)}`);
  }
  refusals.noteFault(error, request);
  return problemOf('internal');
}

/**
 * Closes connections that would delay a stop. Some were opened in advance by browsers, and Node.js counts them as busy until they have
 * carried a request. Others stay open behind a response in progress.
 */
function endConnectionsAtStop(app: FastifyInstance): void {
  const unused = new Set<Socket>();
  let isStopping = false;
  app.server.on('connection', (socket: Socket) => {
    if (isStopping) socket.destroy();
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.server.on('request', ({ socket }) => unused.delete(socket));
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isStopping) reply.header('Connection', 'close');
    done(null, payload);
  });
  app.addHook('preClose', (done) => {
    isStopping = true;
    for (const socket of unused) socket.destroy();
    done();
  });
}

/** Records the methods of each URL pattern, and returns them for a request that matched none of them. */
function trackMethods(app: FastifyInstance): (request: FastifyRequest) => string[] | null {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', (route) => {
    const known = methods.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) known.add(method);
    methods.set(route.url, known);
  });
  return (request) => {
    const path = request.url.split('?', 1)[0] ?? '/';
    let found: Set<string> | undefined;
    for (const [pattern, known] of methods) {
      // A pattern that ends in `*` applies only to paths without their own pattern.
      if (matches(pattern, path) && (found === undefined || !pattern.endsWith('*'))) found = known;
    }
    return found === undefined ? null : [...found, 'OPTIONS'].sort();
  };
}

/** Whether a path matches a pattern like `/v1/invoices/:id` or `/c/*`. */
function matches(pattern: string, path: string): boolean {
  if (pattern.endsWith('*')) return path.startsWith(pattern.slice(0, -1));
  const [expected, actual] = [pattern.split('/'), path.split('/')];
  if (expected.length !== actual.length) return false;
  return expected.every((part, index) => (part.startsWith(':') ? actual[index] !== '' : part === actual[index]));
}

/** Escapes the percent signs of a path that can't be decoded, so that it reaches its route as plain text. */
function decodablePath(url: string): string {
  if (!url.includes('%')) return url;
  const query = url.indexOf('?');
  const [path, rest] = query === -1 ? [url, ''] : [url.slice(0, query), url.slice(query)];
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + rest;
  }
}

function newRequestId({ now, random }: Pick<ServerOptions, 'now' | 'random'>): string {
  return encodeId('req', uuidV7(now(), random(10)));
}

/** Handles requests that Node.js would respond to on its own, or not at all. */
function bearOddRequests(app: FastifyInstance): void {
  // Reads all headers that fit into 16 KiB. By default Node.js ignores those after the 2,000th, including a second key.
  app.server.maxHeadersCount = 0;
  // Expectations other than 100-continue may be ignored (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // This server doesn't support any other protocol. Node.js loses requests that were pipelined behind such a request, so the client must
  // send them again.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.upgrade !== undefined) reply.header('Connection', 'close');
    done();
  });
}

/** A request must have exactly one Host header (RFC 9112, 3.2). Throws the problem. */
function checkHost(request: IncomingMessage): void {
  const { length } = headerValues(request, 'host');
  if (length === 1 || (length === 0 && request.httpVersion === '1.0')) return;
  throw new Problem('INVALID_REQUEST', `The Host header was sent ${length} times; send it once.`);
}

/** Removes the origin. A client that uses this server as its proxy sends `http://host/path`. */
function withoutOrigin(url: string): string {
  if (url.startsWith('/')) return url;
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '');
  return path === url || path.startsWith('/') ? path : `/${path}`;
}

type LoopLag = { lagMs(): number; stop(): void };

/** How often the event loop is sampled, and the time over which it's measured: a tenth of the delay that a client would notice. */
const [RESOLUTION_MS, WINDOW_MS] = [20, 250];

/**
 * Measures how many milliseconds an event at a random moment waits for the event loop, over the last quarter of a second. The mean length
 * of the turns isn't enough, because a hundred short turns can hide the long one that affected nearly every event.
 */
export function startLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let lagMs = 0;
  const timer = setInterval(() => {
    lagMs = lagOf(histogram.mean / 1e6, histogram.stddev / 1e6);
    histogram.reset();
  }, WINDOW_MS);
  timer.unref();
  return {
    lagMs: () => lagMs,
    stop: () => {
      clearInterval(timer);
      histogram.disable();
    },
  };
}

/** A moment falls into a turn in proportion to the turn's length, so the expected length of its turn is E[d²]/E[d]. */
export function lagOf(meanMs: number, deviationMs: number): number {
  // If no turn ended since the last window, there is nothing to measure, and the histogram returns NaN.
  if (!(meanMs > 0)) return 0;
  return Math.max(0, meanMs + deviationMs ** 2 / meanMs - RESOLUTION_MS);
}

/** Load balancers request these all the time. */
const PROBES = new Set(['/healthz', '/readyz']);

/**
 * Logs responses. 5xx responses and refused creations (4xx) are always logged. Those with the same route, status and code share one line
 * per minute, so that an outage doesn't fill the disk. With `isOn`, every other response is logged separately. A line never contains a
 * path, a query, a header or a body; the route is its pattern.
 */
function createRequestLines({ log, now, isOn }: { log: Logger; now(): number; isOn: boolean }) {
  const failures = createTally(now);
  return (request: FastifyRequest, { statusCode: status }: FastifyReply, tookMs: number): void => {
    const { method, id: requestId } = request;
    const route = request.routeOptions.url ?? 'none';
    const isCreation = method === 'POST' && route === '/v1/invoices';
    const isFailure = status >= 500 || (status >= 400 && isCreation);
    if (!isFailure && (!isOn || PROBES.has(route))) return;
    const { key, problem } = notesOf(request);
    const code = problem?.code ?? null;
    const requests = isFailure ? failures.note(`${method} ${route} ${status} ${code}`) : undefined;
    if (requests === null) return;
    const about = { requestId, key: key === null ? undefined : encodeId('key', key.id), method, route, status };
    const line = { ...about, code: code ?? undefined, ms: Math.round(tookMs), requests };
    if (status >= 500) log.warn(line, 'requests were not served');
    else log.info(line, isFailure ? 'creations were refused' : 'a request was answered');
  };
}

/** The limit for all connections together, which is a fifth of an idle process's memory and enough for four hundred slow readers. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
/** Smaller responses fit into the kernel's buffers, or are limited by the number of connections. */
const LEAST_BYTES = 4 * 1024;

/**
 * Limits the memory used by responses that clients don't read. Above 64 MiB, the connections that have been blocked longest are closed. A
 * hundred requests for a large response fit into one packet, and nothing else would stop a client that never reads. Returns a function that
 * returns the number of unsent bytes.
 */
export function boundUnsentAnswers(app: FastifyInstance, maxBytes = MAX_UNSENT_BYTES): () => number {
  const unsent = new Map<ServerResponse, { bytes: number; cut(): void }>();
  let total = 0;
  const forget = (answer: ServerResponse) => {
    total -= unsent.get(answer)?.bytes ?? 0;
    unsent.delete(answer);
  };
  app.addHook('onSend', (request, reply, payload, done) => {
    const bytes = typeof payload === 'string' || payload instanceof Uint8Array ? payload.length : 0;
    // Nothing is sent to a client that has hung up, and no second close event follows.
    if (bytes >= LEAST_BYTES && !request.raw.socket.destroyed) {
      unsent.set(reply.raw, { bytes, cut: () => request.raw.socket.destroy() });
      total += bytes;
      // A response that waits behind another one on its connection may never emit `close`. Such a response is forgotten when it's the
      // oldest one.
      reply.raw.once('close', () => forget(reply.raw));
    }
    for (const [answer, { cut }] of unsent) {
      if (total <= maxBytes) break;
      cut();
      forget(answer);
    }
    done(null, payload);
  });
  return () => total;
}

type ClientError = Error & { code?: string };
type Deps = { publicUrl(): string; newRequestId(): string };

type Exchange = { request: IncomingMessage; response: ServerResponse };
type Connection = { open: Set<Exchange>; newest: Exchange | null; isOver: boolean };

/**
 * Responds, on the raw socket, to invalid HTTP and to requests that arrive too slowly. Earlier requests on the same connection are answered
 * first so that the client doesn't mistake the refusal for one of their responses.
 */
export function createClientErrors(deps: Deps) {
  const connections = new WeakMap<Socket, Connection>();
  return {
    /** Tracks each request. */
    follow: (server: Server): void => {
      server.on('request', (request, response) => {
        const connection = connections.get(request.socket) ?? { open: new Set(), newest: null, isOver: false };
        const exchange = { request, response };
        connection.open.add(exchange);
        connection.newest = exchange;
        connections.set(request.socket, connection);
        response.once('close', () => connection.open.delete(exchange));
      });
    },
    answer: (error: ClientError, socket: Socket): void => {
      if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
      }
      const connection = connections.get(socket) ?? { open: new Set(), newest: null, isOver: false };
      connections.set(socket, connection);
      // Each further piece of an unreadable request causes another error.
      if (connection.isOver) return;
      connection.isOver = true;
      const { newest } = connection;
      const end = () => {
        const [before] = [...connection.open].filter(
          ({ request, response }) => request.complete || response.headersSent,
        );
        if (before !== undefined) before.response.once('close', end);
        // The unreadable bytes are the body of the newest request, which may have been answered before or after they arrived.
        else if (newest !== null && !newest.request.complete && newest.response.headersSent) socket.end();
        else socket.end(write(error, deps));
      };
      end();
    },
  };
}

/** Returns the whole response, in the same form as every other error. */
function write({ code }: ClientError, { publicUrl, newRequestId }: Deps): string {
  const [status, reason] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The request headers are larger than 16 KiB.']
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'The request is not valid HTTP.'];
  const requestId = newRequestId();
  const problem = problemBody(new Problem('INVALID_REQUEST', reason), publicUrl(), requestId);
  const body = JSON.stringify({ ...problem, status: Number(status.slice(0, 3)) });
  const headers = [
    `X-Request-Id: ${requestId}`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...Object.entries(ANSWER_HEADERS).map(([name, value]) => `${name}: ${value}`),
  ];
  return `HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`;
}

/** The body of an error response (RFC 9457). */
function problemBody(problem: Problem, publicUrl: string, requestId: string): Record<string, unknown> {
  const { status, title } = PROBLEMS[problem.code];
  return {
    type: `${publicUrl}/docs/errors#${problem.code}`,
    title,
    status,
    code: problem.code,
    detail: problem.message,
    requestId,
    ...problem.extensions,
  };
}
