import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Problem } from '../web/problem.ts';

/** A refused request; the response has the form that the adapter's system uses. `code` is an epusdt code. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: number;
  /** Whether no adapter matches the request and its signature. */
  readonly isUnknown: boolean;

  constructor(code: number, message: string, { isUnknown = false } = {}) {
    super(message);
    this.code = code;
    this.isUnknown = isUnknown;
  }
}

/** The error codes of epusdt and its successor, because shops look them up in those systems' documentation. */
export const CODES = {
  system: 400,
  signature: 401,
  orderExists: 10002,
  amount: 10004,
  noFreeAmount: 10005,
  rate: 10006,
  noOrder: 10008,
  fields: 10009,
  orderState: 10010,
  network: 10014,
  asset: 10016,
  notifyUrl: 10041,
  returnUrl: 10044,
} as const;

/** The response is the same if the adapter doesn't exist, if it's disabled, and if the signature is wrong. */
export function notHere(): Refusal {
  return new Refusal(
    CODES.signature,
    "signature verification failed: check the adapter's URL, the pid and the secret, and make sure that the adapter is enabled",
    { isUnknown: true },
  );
}

const PREFIX = '/adapters/';

type Shown = { headers: Record<string, string>; body: string };
type Said = { code: number; message: string; requestId: string };

/** Orders must not be cached or listed by search engines. */
const HEADERS = { 'Cache-Control': 'no-store', 'X-Robots-Tag': 'noindex' };

const shown = (type: string, body: string): Shown => ({
  headers: { ...HEADERS, 'Content-Type': `${type}; charset=utf-8` },
  body,
});
const inJson = (body: object) => shown('application/json', JSON.stringify(body));

/** Formats an error for the path's protocol. If no protocol matches the path, the response has the members of all protocols. */
function showError(path: string, { code, message, requestId }: Said): Shown {
  // The payer sees this in a browser.
  if (path.includes('submit.php')) return shown('text/plain', `${message}\n`);
  const ofEpay = { code: -1, msg: message };
  if (/\/m?api\.php/.test(path)) return inJson(ofEpay);
  const ofEpusdt = { status_code: code, message, data: null, request_id: requestId };
  return inJson(/\/(api\/v1|pay|payments)\//.test(path) ? ofEpusdt : { ...ofEpusdt, ...ofEpay });
}

const pathOf = (url: string) => url.split('?', 1)[0] ?? '';

/** Formats a problem in the adapter's protocol. Returns `null` if the URL isn't below an adapter's URL. */
export function showProblem(url: string, problem: Problem, requestId: string): Shown | null {
  const path = pathOf(url);
  if (!path.startsWith(PREFIX)) return null;
  const below = path.slice(PREFIX.length).replace(/^[^/]*/, '');
  const message =
    problem.code === 'ROUTE_NOT_FOUND'
      ? `No adapter has the path ${JSON.stringify(below.slice(0, 100))}: check the URL in the shop's plugin against docs/guides/adapters.md. Some plugins add a path to the URL themselves`
      : problem.message;
  return showError(path, { code: problem.status, message, requestId });
}

/** The options shared by all adapter routes. `refusedStatus` is the HTTP status for a refusal. */
export function routeOptions(refusedStatus: number, codeOf = ({ code }: Refusal, _request: FastifyRequest) => code) {
  return {
    schema: { hide: true },
    onRequest: async (_request: FastifyRequest, reply: FastifyReply) => {
      reply.headers(HEADERS);
    },
    errorHandler: async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      if (!(error instanceof Refusal)) throw error;
      const { message, isUnknown } = error;
      const code = codeOf(error, request);
      const { headers, body } = showError(pathOf(request.url), { code, message, requestId: request.id });
      return reply
        .code(isUnknown ? 404 : refusedStatus)
        .headers(headers)
        .send(body);
    },
  };
}
