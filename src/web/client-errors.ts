import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ANSWER_HEADERS } from './answer-headers.ts';
import { Problem, problemBody } from './problem.ts';

type ClientError = Error & { code?: string };
type Deps = { publicUrl(): string; newRequestId(): string };

type Exchange = { request: IncomingMessage; response: ServerResponse };
type Connection = { open: Set<Exchange>; newest: Exchange | null; isOver: boolean };

/**
 * Answers bytes that are not HTTP, and requests that come too slowly, on the bare socket. Requests that came before on the same connection
 * are answered first, so that no client takes the refusal for their answer.
 */
export function createClientErrors(deps: Deps) {
  const connections = new WeakMap<Socket, Connection>();
  return {
    /** Hears of each request. */
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
      // Each further piece of an unreadable request is an error again.
      if (connection.isOver) return;
      connection.isOver = true;
      const { newest } = connection;
      const end = () => {
        const [before] = [...connection.open].filter(
          ({ request, response }) => request.complete || response.headersSent,
        );
        if (before !== undefined) before.response.once('close', end);
        // The unreadable bytes are the body of the newest request, which may have been answered before they came, or since.
        else if (newest !== null && !newest.request.complete && newest.response.headersSent) socket.end();
        else socket.end(write(error, deps));
      };
      end();
    },
  };
}

/** The whole answer, like that to every other error. */
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
