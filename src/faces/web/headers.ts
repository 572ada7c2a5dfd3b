import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

/**
 * Accepts any parameters, even empty ones, because they have no meaning (RFC 8259, section 11). A charset must be UTF-8. Blanks can be
 * matched in only one way: otherwise, the time would multiply with each parameter, and a header of 60 characters would stop the process.
 */
const JSON_TYPE =
  /^application\/json[ \t]*(;[ \t]*((charset=("utf-8"|utf-8)|(?!charset=)[\w!#$&^.+-]+=([\w!#$%&'*+.^`|~-]+|"[^"\\]{0,100}"))[ \t]*)?)*$/i;

/** Checks a body's headers before it is read: JSON in UTF-8, not compressed, at most `maxBytes`. Throws the problem. */
export function checkJsonHeaders(request: FastifyRequest, maxBytes: number): void {
  const type = singleHeader(request, 'content-type');
  if (type === undefined || !JSON_TYPE.test(type)) {
    const seen = request.headers['content-type'];
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      seen === undefined
        ? 'The Content-Type header is missing; send application/json.'
        : `The content type is ${seen.slice(0, 100)}; send application/json.`,
    );
  }
  const transfer = request.headers['transfer-encoding'];
  if (transfer !== undefined && transfer.trim().toLowerCase() !== 'chunked') {
    throw new Problem(
      'UNSUPPORTED_MEDIA_TYPE',
      `The body is sent as ${transfer.slice(0, 100)}; send it plain or chunked.`,
    );
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new Problem('UNSUPPORTED_MEDIA_TYPE', `The body is encoded as ${encoding.slice(0, 100)}; send it plain.`);
  }
  const bytes = Number(request.headers['content-length'] ?? 0);
  if (bytes > maxBytes)
    throw new Problem('PAYLOAD_TOO_LARGE', `The body has ${bytes} bytes; send at most ${maxBytes}.`);
}

/** Returns a header that must occur once. A repeated header counts as absent. */
export function singleHeader(request: FastifyRequest, name: string): string | undefined {
  const values = headerValues(request.raw, name);
  return values.length === 1 ? values[0] : undefined;
}

/**
 * Returns the raw values of a header, one per occurrence; Node.js joins them with a comma. `name` is in lower case. Node's
 * `headersDistinct` returns the same, but it sorts each request's headers.
 */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [key = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (key.length === name.length && key.toLowerCase() === name) values.push(value);
  }
  return values;
}

/**
 * The headers of every response, unless it sets stricter ones. Browsers must not guess a response's type, load anything for it, or show it
 * in a frame.
 */
export const ANSWER_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
