import type { FastifyInstance } from 'fastify';
import type { AdapterDeps } from './adapter-deps.ts';
import { registerEpay } from './epay.ts';
import { registerEpusdt } from './epusdt.ts';

/** Registers the routes for shops that use another system's API, each below its adapter's URL. They aren't listed in `/openapi.json`. */
export function registerAdapters(app: FastifyInstance, deps: AdapterDeps): void {
  registerEpusdt(app, deps);
  registerEpay(app, deps);
}
