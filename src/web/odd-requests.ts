import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { headerValues } from './header-values.ts';
import { Problem } from './problem.ts';

/** What Node would answer by itself, or not at all. */
export function bearOddRequests(app: FastifyInstance): void {
  // All that 16 KiB hold: Node passes over those behind the 2,000th, also a second key.
  app.server.maxHeadersCount = 0;
  // An expectation other than 100-continue may be passed over (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // Nobody here speaks another protocol. Node loses what was pipelined behind such a request, so the client must send it again.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.upgrade !== undefined) reply.header('Connection', 'close');
    done();
  });
}

/** A request says once which host it is for (RFC 9112, 3.2). Throws the problem. */
export function checkHost(request: IncomingMessage): void {
  const { length } = headerValues(request, 'host');
  if (length === 1 || (length === 0 && request.httpVersion === '1.0')) return;
  throw new Problem('INVALID_REQUEST', `The Host header came ${length} times; send it once.`);
}

/** What a client writes that takes us for its proxy: `http://host/path`. */
export function withoutOrigin(url: string): string {
  if (url.startsWith('/')) return url;
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '');
  return path === url || path.startsWith('/') ? path : `/${path}`;
}
