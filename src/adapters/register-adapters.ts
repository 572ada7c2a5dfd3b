import type { FastifyInstance } from 'fastify';
import type { AdapterDeps } from './adapter-deps.ts';
import { registerEpay } from './epay.ts';
import { registerEpusdt } from './epusdt.ts';

/** The routes by which shops order that speak another system's API, each below the URL of its adapter. They are no part of `/openapi.json`. */
export function registerAdapters(app: FastifyInstance, deps: AdapterDeps): void {
  registerEpusdt(app, deps);
  registerEpay(app, deps);
}
