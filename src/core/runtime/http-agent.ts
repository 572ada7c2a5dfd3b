import { createRequire } from 'node:module';
import type undici from 'undici';

/**
 * The parts of undici that a service uses. The whole package also loads its fetch, caches and mocks, which need 3 MB more live memory. The
 * garbage collector lets the heap grow to four times that.
 */
const part = createRequire(import.meta.url);

export const Agent = part('undici/lib/dispatcher/agent.js') as typeof undici.Agent;
export type Agent = undici.Agent;
export const buildConnector = part('undici/lib/core/connect.js') as typeof undici.buildConnector;

type Ask = (this: Agent, options: undici.Dispatcher.RequestOptions) => Promise<undici.Dispatcher.ResponseData>;
const { request: ask } = part('undici/lib/api/index.js') as { request: Ask };

/** undici's `request` with an explicit agent. */
export function request(agent: Agent, url: string, options: Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path'>) {
  const { origin, pathname, search } = new URL(url);
  return ask.call(agent, { ...options, origin, path: pathname + search });
}
