import { connect } from 'node:net';

export type SlowClient = { name: string; start: string; drip: string };

/** Clients that hold a connection and never finish: each sends its start at once, and then a byte of its drip from time to time. */
export const SLOW_CLIENTS: readonly SlowClient[] = [
  { name: 'headers that never end', start: 'GET /healthz HTTP/1.1\r\nHost: q\r\nX-Slow: ', drip: 'x' },
  { name: 'a body that never ends', start: head('Content-Length: 10000'), drip: ' ' },
  { name: 'chunks that never end', start: head('Transfer-Encoding: chunked'), drip: '1\r\n \r\n' },
  {
    name: 'half a request behind a whole one',
    start: 'GET /healthz HTTP/1.1\r\nHost: q\r\n\r\nGET /nowhere',
    drip: '',
  },
  { name: 'nothing at all', start: '', drip: '' },
];

function head(length: string): string {
  return `POST /v1/invoices HTTP/1.1\r\nHost: q\r\nX-Api-Key: {{key}}\r\nIdempotency-Key: slow\r\nContent-Type: application/json\r\n${length}\r\n\r\n`;
}

const DRIP_MS = 400;

/** Reports how the server ended a slow client, and after how long. Rejects if it doesn't within the limit. */
export function endure(
  port: number,
  client: SlowClient,
  limitMs: number,
): Promise<{ answer: string; afterMs: number }> {
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(client.start));
    const drip = setInterval(() => {
      if (client.drip !== '' && socket.writable) socket.write(client.drip);
    }, DRIP_MS);
    const limit = setTimeout(() => socket.destroy(new Error(`${client.name}: held for ${limitMs} ms`)), limitMs);
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    // A client that is refused while writing may see a reset.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      clearInterval(drip);
      clearTimeout(limit);
      resolve({ answer, afterMs: performance.now() - startedMs });
    });
  });
}
