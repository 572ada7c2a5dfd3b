import { createRequire } from 'node:module';
import type undici from 'undici';

/**
 * The parts of undici that a service uses. The whole package brings its fetch, caches and mocks too: 3 MB more that are always in use, and
 * the collector lets the heap grow to four times of what is in use.
 */
const part = createRequire(import.meta.url);

export const Agent = part('undici/lib/dispatcher/agent.js') as typeof undici.Agent;
export type Agent = undici.Agent;
export const buildConnector = part('undici/lib/core/connect.js') as typeof undici.buildConnector;

type Ask = (this: Agent, options: undici.Dispatcher.RequestOptions) => Promise<undici.Dispatcher.ResponseData>;
const { request: ask } = part('undici/lib/api/index.js') as { request: Ask };

/** `request` of undici by an agent. */
export function request(agent: Agent, url: string, options: Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path'>) {
  const { origin, pathname, search } = new URL(url);
  return ask.call(agent, { ...options, origin, path: pathname + search });
}
