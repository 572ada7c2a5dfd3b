import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { AppError } from '../../core/domain/errors.ts';
import { ANSWER_HEADERS } from './headers.ts';

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

type Served = {
  registry: Registry;
  /** This function runs each time before the metrics are read. */
  refresh(): void;
  readiness(): Promise<{ isReady: boolean; body: object }>;
};

/**
 * Serves operators on a separate internal port: `GET /metrics` for Prometheus, `GET /readyz` with the reasons and the open alarms (the
 * public port doesn't show them), and `GET /healthz`. Refuses requests from a web page whose name resolves here (DNS rebinding).
 */
export async function startMetricsServer(
  { host, port }: { host: string; port: number },
  { registry, refresh, readiness }: Served,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(ANSWER_HEADERS)) response.setHeader(name, value);
    const send = (status: number, type: string, text: string) =>
      response.writeHead(status, { 'Content-Type': type }).end(text);
    const asked = hostOf(request);
    if (!isInternalName(asked, host)) {
      const fix = 'use an IP address, "localhost", a name without a dot, or the name in QUITTANCE_METRICS_HOST';
      return send(421, TEXT, `this port does not serve the host ${asked.slice(0, 100)}: ${fix}\n`);
    }
    const fail = (error: Error) => send(500, TEXT, `${error.message}\n`);
    switch (request.url) {
      case '/healthz':
        return send(200, TEXT, 'ok\n');
      case '/readyz':
        return readiness().then(
          ({ isReady, body }) => send(isReady ? 200 : 503, JSON_TYPE, JSON.stringify(body)),
          fail,
        );
      case '/metrics':
        refresh();
        return registry.metrics().then((text) => send(200, registry.contentType, text), fail);
      default:
        return send(404, TEXT, 'see /metrics and /readyz\n');
    }
  });
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const message = `the metrics port ${port} on ${host} cannot be used (${error.code}): set QUITTANCE_METRICS_PORT to another port, 0 for any free port, or off`;
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

/** Returns a request's host without its port: `[::1]:9464` becomes `::1`. */
function hostOf({ headers }: IncomingMessage): string {
  const [, name = ''] = /^\[?(.*?)\]?(?::\d*)?$/.exec(headers.host ?? '') ?? [];
  return name.toLowerCase().replace(/\.$/, '');
}

/**
 * These names are reserved for private networks (RFC 6761, 6762, 8375, and names in Kubernetes), so no stranger's name server can resolve
 * them.
 */
const OWN_SUFFIX = /\.(?:localhost|local|internal|home\.arpa|svc)$/;

/**
 * Whether a name resolves to this machine without a stranger's name server: an address, a name without a dot, one of this machine's own
 * names, or the configured one.
 */
function isInternalName(name: string, host: string): boolean {
  if (isIP(name) !== 0 || (!name.includes('.') && name !== '')) return true;
  return name === host.toLowerCase() || name === hostname().toLowerCase() || OWN_SUFFIX.test(name);
}
