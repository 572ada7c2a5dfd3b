import { createRequire } from 'node:module';
import type undici from 'undici';

/**
 * Loads only the parts of undici that a service uses. The whole package would also load its fetch, caches and mocks. They would keep 3 MB
 * more in memory, and the garbage collector would let the heap grow by four times as much.
 */
const part = createRequire(import.meta.url);

export const Agent = part('undici/lib/dispatcher/agent.js') as typeof undici.Agent;
export type Agent = undici.Agent;
export const buildConnector = part('undici/lib/core/connect.js') as typeof undici.buildConnector;

type Ask = (this: Agent, options: undici.Dispatcher.RequestOptions) => Promise<undici.Dispatcher.ResponseData>;
const { request: ask } = part('undici/lib/api/index.js') as { request: Ask };

/** Like undici's `request`, but with an explicit agent. */
export function request(agent: Agent, url: string, options: Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path'>) {
  const { origin, pathname, search } = new URL(url);
  return ask.call(agent, { ...options, origin, path: pathname + search });
}
