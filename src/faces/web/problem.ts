/** Every error that the API returns: the HTTP status, the title, and the documentation's advice. */
export const PROBLEMS = {
  INVALID_JSON: { status: 400, title: 'The body is not valid JSON', advice: 'Send one JSON object in UTF-8.' },
  INVALID_REQUEST: {
    status: 400,
    title: 'The request is not valid',
    advice:
      '`errors` lists every problem with its field. Correct all problems, and send the request again with the same Idempotency-Key.',
  },
  IDEMPOTENCY_KEY_REQUIRED: {
    status: 400,
    title: 'The Idempotency-Key header is missing',
    advice: 'Choose a unique key for each order attempt, store it, and send it with every retry of that attempt.',
  },
  IDEMPOTENCY_KEY_INVALID: {
    status: 400,
    title: 'The Idempotency-Key header is not valid',
    advice: 'Send the header once, with 1 to 255 visible ASCII characters (no spaces).',
  },
  UNAUTHENTICATED: {
    status: 401,
    title: 'The API key is not accepted',
    advice:
      'Send the project’s secret key in the X-Api-Key header. The key may be missing, malformed, unknown, expired, revoked, or not allowed from your IP address.',
  },
  INSUFFICIENT_SCOPE: {
    status: 403,
    title: 'The API key lacks the required scope',
    advice:
      '`scope` names the missing scope. The operator can create a key with this scope: quittance key create --scopes, with every scope that the new key needs.',
  },
  INVOICE_NOT_FOUND: {
    status: 404,
    title: 'The invoice does not exist',
    advice: 'Check the invoice id, and that the key belongs to the project that created it.',
  },
  ENDPOINT_NOT_FOUND: {
    status: 404,
    title: 'The webhook endpoint does not exist',
    advice: 'Check the endpoint’s id, and that the key belongs to its project.',
  },
  ROUTE_NOT_FOUND: { status: 404, title: 'There is nothing at this URL', advice: 'See /openapi.json for all URLs.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    title: 'The method is not allowed at this URL',
    advice: 'Use one of the methods in the Allow header.',
  },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'The body is too large', advice: 'Send at most 16 KiB.' },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    title: 'The content type is not supported',
    advice: 'Send Content-Type: application/json.',
  },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    title: 'The request conflicts with an earlier request',
    advice:
      '`conflict` says which rule was broken. `idempotencyKey`: the key was already used with different input; use a new key for a new order attempt. `externalId`: this id already has an invoice; read that invoice, or use a new id for a new order attempt.',
  },
  AMOUNT_UNAVAILABLE: {
    status: 409,
    title: 'No free payable amount is left for this amount',
    advice:
      'The operator can add a receiving address (quittance address add). The request had no effect: retry with the same Idempotency-Key.',
  },
  PROJECT_ARCHIVED: {
    status: 409,
    title: 'The project accepts no new invoices',
    advice:
      "The operator archived the project, and the request had no effect. Use another project's key, or ask the operator to reactivate the project (quittance project unarchive) and then retry with the same Idempotency-Key. Existing invoices can still be read and paid.",
  },
  INVOICE_PAID: {
    status: 409,
    title: 'The invoice is paid',
    advice: 'A paid invoice cannot be withdrawn. Deliver the order, or send the money back yourself.',
  },
  ENDPOINT_CONFLICT: {
    status: 409,
    title: 'The state of the webhook endpoint does not allow this request',
    advice:
      '`detail` says why: another endpoint in the project has this URL, the endpoint is already disabled, its previous secret is still in use, or the project has the maximum number of endpoints.',
  },
  UNSUPPORTED_ASSET: { status: 422, title: 'The asset is not supported', advice: 'Use asset "USDT".' },
  UNSUPPORTED_NETWORK: { status: 422, title: 'The network is not supported', advice: 'Use network "TRON".' },
  RATE_LIMITED: {
    status: 429,
    title: 'Too many requests',
    advice: 'Wait as long as Retry-After says, and retry with the same Idempotency-Key.',
  },
  TOO_MANY_UNPAID: {
    status: 429,
    title: 'The project has too many unpaid invoices',
    advice:
      'Wait as long as Retry-After says, and retry with the same Idempotency-Key: the request had no effect. If your shop does not have that many sales, someone is flooding it with orders: limit the number of orders per visitor. If it does have that many sales, the operator can raise the limits (quittance project update).',
  },
  INTERNAL: {
    status: 500,
    title: 'Internal error',
    advice: 'Retry with the same Idempotency-Key. If the error persists, give the operator the requestId.',
  },
  UNAVAILABLE: {
    status: 503,
    title: 'The service is temporarily unavailable',
    advice: 'Wait as long as Retry-After says, and retry with the same Idempotency-Key. Nothing is lost.',
  },
  INTEGRITY: {
    status: 503,
    title: 'The stored data cannot be trusted',
    advice:
      'Do not rely on this invoice, and do not let anyone pay it. The operator must check the database. Nothing is lost.',
  },
  RATE_UNAVAILABLE: {
    status: 503,
    title: "No current rate is known for the price's currency",
    advice:
      'Wait as long as Retry-After says, and retry with the same Idempotency-Key: the request had no effect. Or send an amount in USDT. The operator can see why with: quittance adapter list.',
  },
  OVERLOADED: {
    status: 503,
    title: 'The server is overloaded',
    advice:
      'Wait as long as Retry-After says, and retry with the same Idempotency-Key. The server refused the request before processing it.',
  },
} as const satisfies Record<string, { status: number; title: string; advice: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

export type FieldError = { field: string; code: string; message: string };

/** An error response. `detail` says what failed, with the values seen and what to do, without secrets. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly extensions: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { extensions?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(detail);
    this.code = code;
    this.extensions = more.extensions ?? {};
    this.headers = more.headers ?? {};
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }
}

/** How long a client should wait if the service is unavailable: about as long as a database failover takes. */
const UNAVAILABLE_RETRY_SECONDS = 5;

/** The wait if an operator has to fix the damage first. */
const DAMAGED_RETRY_SECONDS = 60;

/** `reason` must be safe to publish. It starts with a lower-case letter and has no full stop. */
export function unavailable(reason: string, retryAfterSeconds = UNAVAILABLE_RETRY_SECONDS): Problem {
  const sentence = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
  return retryLater('UNAVAILABLE', `${sentence}. Nothing was changed; retry in a few seconds.`, retryAfterSeconds);
}

/** Returns a temporary problem, with `Retry-After`. */
export function retryLater(code: ProblemCode, detail: string, seconds: number): Problem {
  return new Problem(code, detail, { headers: { 'Retry-After': String(seconds) } });
}

/** `reason` must be safe to publish. */
const damaged = (code: 'INTEGRITY' | 'UNAVAILABLE', reason: string) => retryLater(code, reason, DAMAGED_RETRY_SECONDS);

const PROBLEM_OF = {
  'address-damaged': () =>
    damaged(
      'INTEGRITY',
      "This invoice's address was changed in the database, so Quittance does not show it. Do not pay this invoice. The operator has been notified.",
    ),
  'row-changed': () =>
    damaged(
      'INTEGRITY',
      'Something other than Quittance changed this record in the database, so Quittance does not show it. Do not rely on this record. The operator has been notified.',
    ),
  'address-not-vouched': () =>
    damaged(
      'INTEGRITY',
      "No signed manifest contains this invoice's address, so payment is suspended. Quittance does not show the address. Do not pay this invoice. The operator has been notified.",
    ),
  'rule-not-signed': () =>
    damaged(
      'UNAVAILABLE',
      "The project's settings differ from its signed manifest, so no invoice was created. The operator has been notified. Retry with the same Idempotency-Key.",
    ),
  unavailable: () => unavailable('the database does not respond'),
  internal: () =>
    new Problem('INTERNAL', 'The request failed. The operator can find the reason in the log under this requestId.'),
  unauthenticated: () =>
    new Problem(
      'UNAUTHENTICATED',
      "The request has no X-Api-Key header, or this server does not accept its key. Send the project's secret key, as it was shown when it was created.",
      { headers: { 'WWW-Authenticate': 'ApiKey realm="Quittance", header="X-Api-Key"' } },
    ),
};

export const problemOf = (kind: keyof typeof PROBLEM_OF): Problem => PROBLEM_OF[kind]();

/** The clocks are compared every five seconds. */
const CLOCKS_RETRY_SECONDS = 5;

/** Returns the problem for clocks that disagree. No invoice is created while its deadline would be uncertain. */
export function clocksApart(problem: string): Problem {
  const detail = `No invoice was created. ${problem} Then retry with the same Idempotency-Key.`;
  return retryLater('UNAVAILABLE', detail, CLOCKS_RETRY_SECONDS);
}
