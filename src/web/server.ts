import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { AppError } from '../domain/errors.ts';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { Problem, problemBody, problemOf } from './problem.ts';

export type ServerOptions = {
  publicUrl(): string;
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is believed; empty: none. */
  trustProxy: readonly string[];
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  log: Logger;
  metrics: Metrics;
};

export const MAX_BODY_BYTES = 16 * 1024;
/** A client that needs longer to send 16 KiB is broken or hostile. */
const REQUEST_TIMEOUT_MS = 15_000;
const KEEP_ALIVE_MS = 65_000;

/** The HTTP server with what all routes share: request ids, problem+json, 404 and 405, metrics, limits. */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: REQUEST_TIMEOUT_MS * 2,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { headersTimeout: REQUEST_TIMEOUT_MS, maxHeaderSize: 16 * 1024 },
    trustProxy: options.trustProxy.length === 0 ? false : [...options.trustProxy],
    genReqId: () => encodeId('req', uuidV7(options.now(), options.random(10))),
    // Any text can stand where an id is expected, and the answer is "not found", also for text that does not decode.
    routerOptions: { maxParamLength: 16 * 1024 },
    rewriteUrl: (request) => decodablePath(request.url ?? '/'),
    clientErrorHandler: answerClientError,
    forceCloseConnections: 'idle',
  });
  // Bodies are read as bytes and checked by the routes; the schemas document and serialise.
  app.setValidatorCompiler(() => () => true);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  const allowed = trackMethods(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('X-Request-Id', request.id);
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    const labels = { method: request.method, route, status: String(reply.statusCode) };
    options.metrics.requestSeconds.observe(labels, reply.elapsedTime / 1000);
  });
  app.setNotFoundHandler((request, reply) => {
    const methods = allowed(request);
    if (methods === null) {
      const detail = `There is nothing at ${request.url.slice(0, 200)}. All URLs are listed in /openapi.json.`;
      return sendProblem(request, reply, new Problem('ROUTE_NOT_FOUND', detail), options);
    }
    const allow = methods.join(', ');
    const detail = `${request.method} is not allowed at this URL; use ${allow}.`;
    return sendProblem(
      request,
      reply,
      new Problem('METHOD_NOT_ALLOWED', detail, { headers: { Allow: allow } }),
      options,
    );
  });
  app.setErrorHandler((error, request, reply) =>
    sendProblem(request, reply, toProblem(error, request, options), options),
  );
  return app;
}

/** Sends an error answer. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
  options: Pick<ServerOptions, 'publicUrl'>,
): FastifyReply {
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .type('application/problem+json; charset=utf-8')
    .send(JSON.stringify(problemBody(problem, options.publicUrl(), request.id)));
}

function toProblem(error: unknown, request: FastifyRequest, { log }: ServerOptions): Problem {
  if (error instanceof Problem) return error;
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem('PAYLOAD_TOO_LARGE', `The body is larger than ${MAX_BODY_BYTES} bytes.`);
  }
  if (error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE') {
    log.warn({ requestId: request.id, err: error }, 'a request was refused: the database does not answer');
    return problemOf('unavailable');
  }
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new Problem('INVALID_REQUEST', `The request could not be read: ${(error as Error).message.slice(0, 200)}`);
  }
  log.error({ requestId: request.id, err: error, route: request.routeOptions.url }, 'a request failed');
  return problemOf('internal');
}

/** Remembers which methods each URL pattern has, and answers for a request that matched none of its URL's methods. */
function trackMethods(app: FastifyInstance): (request: FastifyRequest) => string[] | null {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', (route) => {
    const known = methods.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) known.add(method);
    methods.set(route.url, known);
  });
  return (request) => {
    const path = request.url.split('?', 1)[0] ?? '/';
    for (const [pattern, known] of methods) {
      if (matches(pattern, path)) return [...known].sort();
    }
    return null;
  };
}

/** Whether a path matches a pattern like `/v1/invoices/:id`. */
function matches(pattern: string, path: string): boolean {
  const [expected, actual] = [pattern.split('/'), path.split('/')];
  if (expected.length !== actual.length) return false;
  return expected.every((part, index) => (part.startsWith(':') ? actual[index] !== '' : part === actual[index]));
}

/** Escapes the percent signs of a path that does not decode, so that it reaches its route as plain text. */
function decodablePath(url: string): string {
  const query = url.indexOf('?');
  const [path, rest] = query === -1 ? [url, ''] : [url.slice(0, query), url.slice(query)];
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + rest;
  }
}

/** Answers what is not HTTP, or came too slowly, on the bare socket. There is no request, so there is no request id. */
function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, reason] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The request headers are larger than 16 KiB.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'The request is not valid HTTP.'];
  const body = JSON.stringify({
    type: 'about:blank',
    title: reason,
    status: Number(status.slice(0, 3)),
    code: 'INVALID_REQUEST',
    detail: reason,
  });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** The values of a header as they came, one for each time it was sent; Node's own view joins them with a comma. */
export function headerValues(message: IncomingMessage, name: string): string[] {
  return message.headersDistinct[name] ?? [];
}
