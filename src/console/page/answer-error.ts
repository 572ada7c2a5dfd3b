import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../domain/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import { createTally } from '../../runtime/seldom.ts';
import { sendPage } from './send-page.ts';
import { errorPage, failurePage } from './show-error.ts';
import type { Visit } from './visit.ts';

type AnswerError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/**
 * Answers every error of a page with a page. The log has each that nobody foresaw, and once a minute, for each code, why pages are
 * refused for now; of what is refused before it begins the load gate tells.
 */
export function createAnswerError(
  { log, now }: { log: Logger; now(): number },
  visitOf: (request: FastifyRequest) => Visit | null,
): AnswerError {
  const tally = createTally(now);
  return (error, request, reply) => {
    const route = request.routeOptions.url;
    const known = errorPage(error, request.id);
    if (known === null) log.error({ requestId: request.id, err: error, route }, 'a page of the console failed');
    const page = known ?? failurePage(request.id);
    if (page.status === 503) {
      reply.headers({ 'Retry-After': '5', ...(request.method === 'GET' ? { Refresh: '5' } : {}) });
      const requests = error instanceof AppError ? tally.note(error.code) : null;
      if (error instanceof AppError && requests !== null) {
        const { code, message: reason } = error;
        log.warn({ requestId: request.id, route, code, reason, requests }, 'pages of the console are refused');
      }
    }
    return sendPage(request, reply, visitOf(request), page);
  };
}
