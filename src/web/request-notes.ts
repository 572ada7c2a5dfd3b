import type { FastifyRequest } from 'fastify';

/** What was learned of a request while it was answered, for the log of requests. */
export type RequestNotes = {
  /** The valid key that came with it (UUIDs). It may have been revoked a moment ago. */
  key: { id: string; projectId: string } | null;
  /** The key's request was neither over its limit nor turned away before. */
  isAdmitted: boolean;
  /** Of the problem that was answered. */
  code: string | null;
  /** Of the invoice that it was about. */
  externalId: string | null;
};

const NOTES = Symbol('notes');
type NotedRequest = FastifyRequest & { [NOTES]?: RequestNotes };

/** The notes of a request, to read and to write. */
export function notesOf(request: NotedRequest): RequestNotes {
  request[NOTES] ??= { key: null, isAdmitted: false, code: null, externalId: null };
  return request[NOTES];
}
