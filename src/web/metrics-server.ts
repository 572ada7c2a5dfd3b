import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { AppError } from '../domain/errors.ts';
import { ANSWER_HEADERS } from './answer-headers.ts';

/** Serves `GET /metrics` for Prometheus and `GET /healthz` on an internal port of their own. `refresh` runs before each read. */
export async function startMetricsServer(
  { host, port }: { host: string; port: number },
  registry: Registry,
  refresh: () => void,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(ANSWER_HEADERS)) response.setHeader(name, value);
    if (request.url === '/healthz') {
      response.end('ok\n');
      return;
    }
    if (request.url !== '/metrics') {
      response.writeHead(404).end('see /metrics\n');
      return;
    }
    refresh();
    registry.metrics().then(
      (text) => response.setHeader('Content-Type', registry.contentType).end(text),
      (error: Error) => response.writeHead(500).end(`${error.message}\n`),
    );
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message = `the metrics port ${port} on ${host} cannot be used (${error.code}): set QUITTANCE_METRICS_PORT to another port, 0 for any free one, or off`;
      reject(new AppError('PORT_IN_USE', message, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
