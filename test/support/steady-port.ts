import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { inject } from 'vitest';

/** Below the range of automatically assigned ports, so that a request for any free port never gets one of these. */
const FIRST = 20_000;
const COUNT = 12_000;
const MAX_TRIES = 100;

/**
 * Finds a port for a server that needs the same port after a restart: nothing listens there now, and nothing gets it by chance while the
 * server is down.
 */
export async function findSteadyPort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`of ${MAX_TRIES} ports from ${FIRST} on none is free`);
}

/** Returns whether no other test of the run has the port: the first one to create its directory keeps it, even while nothing listens there. */
async function claim(port: number): Promise<boolean> {
  const ports = join(inject('runDirectory'), 'ports');
  return (await mkdir(join(ports, String(port)), { recursive: true })) !== undefined;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
