import type { FastifyReply, FastifyRequest } from 'fastify';
import { encodeId } from '../domain/ids.ts';
import type { Logger } from '../runtime/log.ts';
import { createTally } from '../runtime/seldom.ts';
import { notesOf } from './request-notes.ts';

/** Load balancers ask these all the time. */
const PROBES = new Set(['/healthz', '/readyz']);

export type RequestLines = { onAnswer(request: FastifyRequest, reply: FastifyReply, tookMs: number): void };

/**
 * Lines of the log about answers. Always: those with 5xx, and creations that were refused (4xx), of which those with one route, status and
 * code are summed up to a line a minute, so that an outage fills no disk. With `isOn` every other answer has a line of its own. Never a
 * path, a query, a header or a body: the route is its pattern.
 */
export function createRequestLines({ log, now, isOn }: { log: Logger; now(): number; isOn: boolean }): RequestLines {
  const failures = createTally(now);
  return {
    onAnswer: (request, { statusCode: status }, tookMs) => {
      const { method, id: requestId } = request;
      const route = request.routeOptions.url ?? 'none';
      const isCreation = method === 'POST' && route === '/v1/invoices';
      const isFailure = status >= 500 || (status >= 400 && isCreation);
      if (!isFailure && (!isOn || PROBES.has(route))) return;
      const { key, code } = notesOf(request);
      const requests = isFailure ? failures.note(`${method} ${route} ${status} ${code}`) : undefined;
      if (requests === null) return;
      const about = { requestId, key: key === null ? undefined : encodeId('key', key.id), method, route, status };
      const line = { ...about, code: code ?? undefined, ms: Math.round(tookMs), requests };
      if (status >= 500) log.warn(line, 'requests were not served');
      else log.info(line, isFailure ? 'creations were refused' : 'a request was answered');
    },
  };
}
