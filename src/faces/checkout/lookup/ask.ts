import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../../../core/domain/checkout-token.ts';
import type { LookupAnswer } from '../../../core/domain/lookup/lookup.ts';
import { type LookUpDeps, lookUpTransaction } from '../../../core/payments/look-up-transaction.ts';
import { clientOf } from '../../web/client-address.ts';
import type { Html } from '../../web/html.ts';
import { answerPage } from '../page/answer-page.ts';
import { MAX_FIELD_CHARACTERS, type Question } from '../page/help.ts';
import { renderPage } from '../page/page.ts';
import type { Page } from '../page/page-state.ts';
import { pageUrl } from '../page/page-url.ts';
import { type CheckoutDeps, findPage, originsOf } from '../page/register.ts';
import { renderAnswer, renderLimited } from './answer.ts';
import type { LookupLimits } from './lookup.ts';

export type AskDeps = CheckoutDeps & LookUpDeps & { limits: LookupLimits };

/** This is enough for a field of 500 characters of three bytes each, which become nine characters each when percent-encoded. */
const MAX_BODY_BYTES = 5000;

/**
 * `POST /c/:token/ask` accepts the page's forms. Each has one field: `fee`, `paste` or `transaction`. The response is the page with the
 * answer.
 */
export function registerAsk(app: FastifyInstance, deps: AskDeps): void {
  const schema = { hide: true };
  app.post('/c/:token/ask', { schema, bodyLimit: MAX_BODY_BYTES }, (request, reply) =>
    answerPage(request, reply, async (nonce) => {
      const question = readQuestion(request);
      const client = clientOf(request).network;
      const before = await findPage(deps, request);
      let found = question?.field === 'transaction' ? await lookUp(deps, request, question.text) : null;
      // The look-up may take seconds, so read the page again, because the page and the answer must describe the same moment.
      const page = question?.field === 'transaction' ? await findPage(deps, request) : before;
      if (page === null) return null;
      if (question !== null && found?.kind === 'answered' && page.invoice.status !== before?.invoice.status) {
        const { checkoutToken } = page.invoice;
        found = { kind: 'answered', answer: await lookUpTransaction(deps, checkoutToken, question.text, client) };
      }
      if (found?.kind === 'limited') reply.code(429).header('Retry-After', String(found.retryAfterSeconds));
      // The page itself answers the other questions.
      const exchange = question && { question, answer: found && renderFound(page, found) };
      return { html: renderPage(page, nonce, exchange), ...originsOf(page) };
    }),
  );
  // This helps readers who reload an answer's URL.
  app.get('/c/:token/ask', { schema }, (request, reply) =>
    answerPage(request, reply, async () => {
      const page = await findPage(deps, request);
      return page && { redirectTo: pageUrl(page) };
    }),
  );
}

type Found = { kind: 'limited'; retryAfterSeconds: number } | { kind: 'answered'; answer: LookupAnswer | null };

async function lookUp(deps: AskDeps, request: FastifyRequest, pasted: string): Promise<Found> {
  const { token } = request.params as { token: string };
  const { network } = clientOf(request);
  const ofClient = deps.limits.takeOfClient(network);
  if (ofClient.kind === 'limited') return ofClient;
  if (!isCheckoutToken(token)) return { kind: 'answered', answer: null };
  const ofLink = deps.limits.takeOfLink(token);
  if (ofLink.kind === 'limited') return ofLink;
  return { kind: 'answered', answer: await lookUpTransaction(deps, token, pasted, network) };
}

function renderFound(page: Page, found: Found): Html | null {
  if (found.kind === 'limited') return renderLimited(page, found.retryAfterSeconds);
  return found.answer && renderAnswer(page, found.answer);
}

const FIELDS = ['fee', 'paste', 'transaction'] as const;

/** Reads a body such as `transaction=0ca1…8ae`. For any other body, there is no question, and the response is just the page. */
function readQuestion({ body }: FastifyRequest): Question | null {
  const fields = new URLSearchParams(Buffer.isBuffer(body) ? body.toString('utf8') : '');
  for (const field of FIELDS) {
    const text = fields.get(field);
    if (text !== null) return { field, text: text.slice(0, MAX_FIELD_CHARACTERS) };
  }
  return null;
}
