import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../domain/errors.ts';
import { ACTIONS } from '../../operator/actions.ts';
import type { Logger } from '../../runtime/log.ts';
import { createTally } from '../../runtime/log-throttle.ts';
import { type Html, html } from '../../web/html.ts';
import { Problem } from '../../web/problem.ts';
import type { Page } from './layout.ts';
import { sendPage } from './send-page.ts';
import { Forbidden, type Visit } from './visit.ts';
import { type Labels, renderText } from './words.ts';

const STATUS: Readonly<Record<string, readonly [status: number, title: string]>> = {
  INVALID_ARGUMENT: [400, 'This request is not valid'],
  USAGE: [403, 'This form was rejected'],
  FORBIDDEN: [403, 'Your role does not allow this'],
  NOT_FOUND: [404, 'Not found'],
  CONFLICT: [409, 'Nothing was changed'],
  DATABASE_UNAVAILABLE: [503, 'The database is not responding'],
  NO_NODE: [503, 'No node is responding'],
  NODE_REFUSED: [503, 'The nodes gave no answer'],
  ADDRESS_DAMAGED: [503, 'An address was changed in the database'],
  ROW_CHANGED: [503, 'A row was changed in the database'],
  ADDRESS_NOT_VOUCHED: [503, 'An address is not signed'],
};

/** The same words as on the command line, one after the other. `labels`: of the fields of a form. */
export function describeProblem({ text, problems }: AppError, labels: Labels = {}): Html {
  const list = problems.map(({ message }) => html`<li>${renderText(message, labels)}</li>`);
  return html`<p>${renderText(text, labels)}</p>${list.length === 0 ? null : html`<ul>${list}</ul>`}`;
}

/** The page for an error, or `null` for one that nobody foresaw. */
function errorPage(error: unknown, requestId: string): Page | null {
  const page = (status: number, title: string, text: Html): Page => ({
    ...{ title, status },
    main: html`<section class="card" role="alert">${text}<p class="hint">Request <code>${requestId}</code></p><p><a href="/">Today</a></p></section>`,
  });
  if (error instanceof Forbidden) {
    const { role } = ACTIONS[error.action];
    const who =
      role === 'owner'
        ? 'Only an owner can do this'
        : `Only an ${role} or an owner can do this`.replace('An viewer', 'A viewer, an operator');
    return page(
      403,
      'Your role does not allow this',
      html`<p>${who}. Ask one of them, or ask an owner for another role.</p>`,
    );
  }
  if (error instanceof Problem) return page(error.status, 'This request was rejected', html`<p>${error.message}</p>`);
  if (!(error instanceof AppError)) {
    // What the server itself refuses: a form that is too large, or cannot be read.
    const { statusCode = 500, message = '' } = error as { statusCode?: number; message?: string };
    return statusCode >= 500 ? null : page(statusCode, 'This request was rejected', html`<p>${message}</p>`);
  }
  const [status, title] = STATUS[error.code] ?? [500, 'This failed'];
  const wait = status === 503 ? html`<p>Nothing was changed. Pages that only show data retry automatically.</p>` : null;
  return page(status, title, html`${describeProblem(error)}${wait}`);
}

/** For what nobody foresaw; the log has the rest. */
function failurePage(requestId: string): Page {
  return {
    ...{ title: 'Something went wrong', status: 500 },
    main: html`<section class="card" role="alert"><p>The request failed. The log of the service shows the reason.</p><p class="hint">Request <code>${requestId}</code></p></section>`,
  };
}

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
