import type { FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from './refusal.ts';

/** What the routes of a form have in common. Orders are kept by no cache and in no index; `refuse` answers in the form. */
export function routeOptions(refuse: (refusal: Refusal, request: FastifyRequest, reply: FastifyReply) => unknown) {
  return {
    schema: { hide: true },
    onRequest: async (_request: FastifyRequest, reply: FastifyReply) => {
      reply.headers({ 'Cache-Control': 'no-store', 'X-Robots-Tag': 'noindex' });
    },
    errorHandler: async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      if (!(error instanceof Refusal)) throw error;
      return refuse(error, request, reply);
    },
  };
}
