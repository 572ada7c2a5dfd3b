import type { FastifyInstance } from 'fastify';
import type { AdapterDeps } from './adapter-deps.ts';
import { registerEpay } from './epay.ts';
import { registerEpusdt } from './epusdt.ts';

/** Registers the routes for shops that speak another system's API, each below its adapter's URL. `/openapi.json` doesn't list them. */
export function registerAdapters(app: FastifyInstance, deps: AdapterDeps): void {
  registerEpusdt(app, deps);
  registerEpay(app, deps);
}
