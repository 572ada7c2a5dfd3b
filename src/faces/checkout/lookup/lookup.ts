import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../../../core/domain/ids.ts';
import type { LookupAnswer } from '../../../core/domain/lookup/lookup.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { type LookUpDeps, lookUpTransaction } from '../../../core/payments/look-up-transaction.ts';
import { clientOf } from '../../web/client-address.ts';
import { checkJsonHeaders } from '../../web/headers.ts';
import type { Html } from '../../web/html.ts';
import { readJsonObject } from '../../web/json-body.ts';
import { Problem } from '../../web/problem.ts';
import { createTokenBuckets, type RateLimit, refuseLimited, type Verdict } from '../../web/rate-limit.ts';

import { MAX_FIELD_CHARACTERS, type Question, renderPage } from '../page/page.ts';
import { type Page, pageUrl } from '../page/page-state.ts';
import { answerPage, type CheckoutDeps, DATA_HEADERS, findPage, originsOf, UNKNOWN_LINK } from '../page/register.ts';
import { renderAnswer, renderLimited } from './answer.ts';

type LookupRouteDeps = LookUpDeps & { now(): UnixMs; limits: LookupLimits };

/**
 * The limit per client. Several people may share an address, and a person may paste, correct and paste again. Each link has the same limit,
 * for all addresses together, so that payers who have waited for one limit aren't stopped by the other.
 */
const LIMIT: RateLimit = { perSecond: 1, burst: 10 };

/** Limits how often clients and links may request look-ups, through the form or as a program. */
type LookupLimits = { takeOfClient(network: string): Verdict; takeOfLink(checkoutToken: string): Verdict };

export function createLookupLimits(now: () => UnixMs): LookupLimits {
  const byClient = createTokenBuckets(LIMIT);
  const byLink = createTokenBuckets(LIMIT);
  return {
    takeOfClient: (network) => byClient.take(network, now()),
    takeOfLink: (token) => byLink.take(token, now()),
  };
}

/** A link to a block explorer takes about a hundred bytes. */
const MAX_BODY_BYTES = 4096;

/** `POST /c/:token/lookup` with `{"transaction":"<id or link>"}` returns what that transaction means for this invoice (`LookupAnswer`). */
export function registerLookup(app: FastifyInstance, deps: LookupRouteDeps): void {
  app.post('/c/:token/lookup', {
    schema: { hide: true },
    onRequest: async (request, reply) => {
      reply.headers(DATA_HEADERS);
      refuseLimited(deps.limits.takeOfClient(clientOf(request).network), LIMIT);
      // A page from another origin would need permission to send this content type, which this server never grants.
      checkJsonHeaders(request, MAX_BODY_BYTES);
    },
    handler: async (request, reply) => {
      const { token } = request.params as { token: string };
      const pasted = readTransactionField(request);
      if (!isCheckoutToken(token)) return reply.code(404).send(UNKNOWN_LINK);
      // Unknown links are counted as well; otherwise the response would reveal which links exist.
      refuseLimited(deps.limits.takeOfLink(token), LIMIT);
      return (
        (await lookUpTransaction(deps, token, pasted, clientOf(request).network)) ?? reply.code(404).send(UNKNOWN_LINK)
      );
    },
  });
}

function readTransactionField({ body }: FastifyRequest): string {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  if (bytes.length > MAX_BODY_BYTES) {
    throw new Problem('PAYLOAD_TOO_LARGE', `The body has ${bytes.length} bytes; send at most ${MAX_BODY_BYTES}.`);
  }
  const read = readJsonObject(bytes);
  if (read.kind === 'invalid-json') throw new Problem('INVALID_JSON', read.detail);
  const transaction = read.kind === 'ok' ? read.value['transaction'] : undefined;
  if (typeof transaction === 'string') return transaction;
  const message = 'must be a string: a transaction id, or text that contains a transaction id, such as a link';
  throw new Problem('INVALID_REQUEST', `transaction ${message}.`, {
    extensions: { errors: [{ field: 'transaction', code: 'WRONG_TYPE', message }] },
  });
}

type AskDeps = CheckoutDeps & LookUpDeps & { limits: LookupLimits };

/** This is enough for a field of 500 characters of three bytes each, which become nine characters each when percent-encoded. */
const MAX_FORM_BYTES = 5000;

/**
 * `POST /c/:token/ask` accepts the page's forms. Each has one field: `fee`, `paste` or `transaction`. The response is the page with the
 * answer.
 */
export function registerAsk(app: FastifyInstance, deps: AskDeps): void {
  const schema = { hide: true };
  app.post('/c/:token/ask', { schema, bodyLimit: MAX_FORM_BYTES }, (request, reply) =>
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
