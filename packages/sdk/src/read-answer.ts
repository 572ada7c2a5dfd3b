import { QuittanceError } from './error.ts';
import { readRetryAfter } from './retry.ts';
import type { FieldError } from './types.ts';

/** No detail of the API is this long; a longer text comes from something else. */
const MAX_DETAIL = 2000;
const MAX_FIELD_ERRORS = 100;

/** Returns the JSON object of a successful response, or the error for any other response. */
export function readAnswer(
  what: string,
  response: Response,
  body: Uint8Array,
): Record<string, unknown> | QuittanceError {
  const { status, headers } = response;
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), Date.now());
  const json = parseObject(body);
  if (response.ok && json !== null) return json;
  const requestId = text(json?.['requestId']) ?? headers.get('x-request-id') ?? undefined;
  const code = text(json?.['code']);
  if (json === null || code === undefined || !/^[A-Z_]{1,64}$/.test(code)) {
    const isRedirect = response.type === 'opaqueredirect' || (status >= 300 && status < 400);
    const advice = isRedirect
      ? 'a redirect, which the SDK does not follow: correct baseUrl'
      : 'which does not come from the API';
    const type = (headers.get('content-type') ?? 'no content type').slice(0, 100);
    return new QuittanceError('UNEXPECTED_ANSWER', `${what} returned ${status} (${type}), ${advice}`, {
      status,
      requestId,
      retryAfterMs,
    });
  }
  const detail = (text(json['detail']) ?? '').slice(0, MAX_DETAIL);
  const { conflict } = json;
  return new QuittanceError(code, `${what} returned ${status} ${code}: ${detail}`, {
    status,
    requestId,
    errors: readFieldErrors(json['errors']),
    conflict: conflict === 'idempotencyKey' || conflict === 'externalId' ? conflict : undefined,
    invoiceId: text(json['invoiceId']),
    fields: texts(json['fields']),
    supported: texts(json['supported']),
    retryAfterMs,
  });
}

function parseObject(body: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

function readFieldErrors(value: unknown): FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_FIELD_ERRORS).flatMap((item: Record<string, unknown> | null) => {
    const [field, code, message] = [text(item?.['field']), text(item?.['code']), text(item?.['message'])];
    return field === undefined || code === undefined || message === undefined ? [] : [{ field, code, message }];
  });
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, MAX_FIELD_ERRORS).flatMap((item) => text(item) ?? []) : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
