import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { headerValues } from './header-values.ts';
import { Problem } from './problem.ts';

/** Answers requests that Node would answer by itself, or not at all. */
export function bearOddRequests(app: FastifyInstance): void {
  // Reads all headers that 16 KiB hold: by default Node ignores those after the 2,000th, also a second key.
  app.server.maxHeadersCount = 0;
  // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // This server speaks no other protocol. Node loses requests that were pipelined behind such a request, so the client must send them
  // again.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.upgrade !== undefined) reply.header('Connection', 'close');
    done();
  });
}

/** A request names its host once (RFC 9112, 3.2). Throws the problem. */
export function checkHost(request: IncomingMessage): void {
  const { length } = headerValues(request, 'host');
  if (length === 1 || (length === 0 && request.httpVersion === '1.0')) return;
  throw new Problem('INVALID_REQUEST', `The Host header came ${length} times; send it once.`);
}

/** A client that takes us for its proxy writes `http://host/path`. */
export function withoutOrigin(url: string): string {
  if (url.startsWith('/')) return url;
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '');
  return path === url || path.startsWith('/') ? path : `/${path}`;
}
