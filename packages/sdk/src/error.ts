import type { ApiErrorCode, FieldError } from './types.ts';

/**
 * The API's codes, and what can go wrong before one arrives: no answer in time, no connection, an answer that is not the API's
 * (a proxy's page, a redirect, another invoice than asked for), one of more than 4 MiB.
 */
export type ErrorCode = ApiErrorCode | 'TIMEOUT' | 'CONNECTION_FAILED' | 'UNEXPECTED_ANSWER' | 'ANSWER_TOO_LARGE';

type Facts = {
  status?: number | undefined;
  requestId?: string | undefined;
  errors?: readonly FieldError[] | undefined;
  fields?: readonly string[] | undefined;
  supported?: readonly string[] | undefined;
  retryAfterMs?: number | undefined;
  conflict?: 'idempotencyKey' | 'externalId' | undefined;
  invoiceId?: string | undefined;
};

/** A request that failed, after all its retries. Decide by `code`; a later release of the API may have others. */
export class QuittanceError extends Error {
  override readonly name = 'QuittanceError';
  readonly code: ErrorCode | (string & {});
  /** The HTTP status; undefined if no answer came. */
  readonly status: number | undefined;
  /** What the operator finds the request by. */
  readonly requestId: string | undefined;
  /** For invalid input: every field that is wrong. */
  readonly errors: readonly FieldError[];
  /** For `IDEMPOTENCY_CONFLICT`: which of the two was used before, and the invoice that it made. */
  readonly conflict: 'idempotencyKey' | 'externalId' | undefined;
  readonly invoiceId: string | undefined;
  /** For `IDEMPOTENCY_CONFLICT`: the fields that differ from the earlier request. */
  readonly fields: readonly string[];
  /** For `UNSUPPORTED_ASSET` and `UNSUPPORTED_NETWORK`: what the API takes. */
  readonly supported: readonly string[];
  /** How long the API asks to wait, in milliseconds; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode | (string & {}), message: string, facts: Facts = {}) {
    super(message);
    this.code = code;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.errors = facts.errors ?? [];
    this.conflict = facts.conflict;
    this.invoiceId = facts.invoiceId;
    this.fields = facts.fields ?? [];
    this.supported = facts.supported ?? [];
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** For an answer that is not what was asked for. */
export function strange(what: string): QuittanceError {
  return new QuittanceError('UNEXPECTED_ANSWER', `the API answered with ${what}; nothing of it was used`);
}
