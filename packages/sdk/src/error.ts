import type { ApiErrorCode, FieldError } from './types.ts';

/**
 * The API's error codes, and the failures that can happen before one arrives: a timeout, no connection, a response that doesn't come from
 * the API (a proxy's page, a redirect, a different invoice than requested), and a response of more than 4 MiB.
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

/** A request that failed after all its retries. Use `code` to decide what to do; later releases of the API may add codes. */
export class QuittanceError extends Error {
  override readonly name = 'QuittanceError';
  readonly code: ErrorCode | (string & {});
  /** The HTTP status, or undefined if there was no response. */
  readonly status: number | undefined;
  /** The operator can find the request by this id. */
  readonly requestId: string | undefined;
  /** If the input was invalid: every invalid field. */
  readonly errors: readonly FieldError[];
  /** For `IDEMPOTENCY_CONFLICT`: which of the two identifiers was used before, and the invoice that was created with it. */
  readonly conflict: 'idempotencyKey' | 'externalId' | undefined;
  readonly invoiceId: string | undefined;
  /** For `IDEMPOTENCY_CONFLICT`: the fields that differ from the earlier request. */
  readonly fields: readonly string[];
  /** For `UNSUPPORTED_ASSET` and `UNSUPPORTED_NETWORK`: the supported values. */
  readonly supported: readonly string[];
  /** How long the API asks you to wait, in milliseconds, or undefined if it doesn't say. */
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

/** Returns the error for a response that isn't what was requested. */
export function strange(what: string): QuittanceError {
  return new QuittanceError('UNEXPECTED_ANSWER', `the API returned ${what}`);
}
