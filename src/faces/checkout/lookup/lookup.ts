import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isCheckoutToken } from '../../../core/domain/checkout-token.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { type LookUpDeps, lookUpTransaction } from '../../../core/payments/look-up-transaction.ts';
import { clientOf } from '../../web/client-address.ts';
import { checkJsonHeaders } from '../../web/headers.ts';
import { readJsonObject } from '../../web/json-body.ts';
import { Problem } from '../../web/problem.ts';
import { createTokenBuckets, type RateLimit, refuseLimited, type Verdict } from '../../web/rate-limit.ts';
import { DATA_HEADERS } from '../page/headers.ts';
import { UNKNOWN_LINK } from '../page/register.ts';

export type LookupRouteDeps = LookUpDeps & { now(): UnixMs; limits: LookupLimits };

/**
 * The limit per client. Several people may share an address, and a person may paste, correct and paste again. Each link has the same limit,
 * for all addresses together, so that payers who have waited for one limit aren't stopped by the other.
 */
const LIMIT: RateLimit = { perSecond: 1, burst: 10 };

/** Limits how often clients and links may request look-ups, through the form or as a program. */
export type LookupLimits = { takeOfClient(network: string): Verdict; takeOfLink(checkoutToken: string): Verdict };

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
