import type { FastifyRequest } from 'fastify';
import type { Problem } from './problem.ts';

/** Facts about a request that are found while it's answered, for the request log. */
export type RequestNotes = {
  /** The request's valid key (UUIDs). The key may have been revoked a moment ago. */
  key: { id: string; projectId: string } | null;
  /** Whether the key's request was within its limit and hadn't been refused earlier. */
  isAdmitted: boolean;
  /** The problem in the response. */
  problem: Problem | null;
  /** The external id of the invoice that the request is about. */
  externalId: string | null;
};

const NOTES = Symbol('notes');
type NotedRequest = FastifyRequest & { [NOTES]?: RequestNotes };

export function notesOf(request: NotedRequest): RequestNotes {
  request[NOTES] ??= { key: null, isAdmitted: false, problem: null, externalId: null };
  return request[NOTES];
}
