import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { AppError } from '../core/domain/errors.ts';

/** Starts listening and returns the URL. Throws `PORT_IN_USE` or `CONFIG_INVALID`. */
export async function listenOn(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
  variables = { port: 'QUITTANCE_PORT', host: 'QUITTANCE_HOST' },
): Promise<string> {
  await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE') {
      throw new AppError(
        'PORT_IN_USE',
        `port ${port} on ${host} is in use: stop the other program, or set ${variables.port} to another port (0 picks any free one)`,
        { cause: error },
      );
    }
    if (error.code === 'EACCES' || error.code === 'EADDRNOTAVAIL') {
      throw new AppError(
        'CONFIG_INVALID',
        `cannot listen on ${host}:${port} (${error.code}): set ${variables.host} and ${variables.port} to an address and a port of this machine that this user is allowed to use`,
        { cause: error },
      );
    }
    throw error;
  });
  const { address, port: actual } = app.server.address() as AddressInfo;
  // A link needs an address that can be opened, which wildcard addresses can't.
  const shown = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${actual}`;
}
