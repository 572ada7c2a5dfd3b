import { type Dispatcher, request } from 'undici';
import { parseObject } from '../../core/runtime/parse-object.ts';
import { readRetryAfter } from '../../core/webhooks/send.ts';
import { type FeedPage, splitFeed } from './split-feed.ts';

/** The outcome of reading the feed once. Only `away` may be temporary. Texts are as the server sent them, shortened but unescaped. */
export type FeedAnswer =
  | { kind: 'page'; page: FeedPage }
  | { kind: 'away'; reason: string; retryAfterMs: number | null }
  | { kind: 'key-refused' }
  | { kind: 'cursor-unknown' }
  | { kind: 'no-feed'; reason: string };

/** `server` is a URL without a trailing slash. */
export type FeedSource = { server: string; apiKey: string; dispatcher?: Dispatcher };

/** This is more than enough for a page of 100 events, each of which has less than 20 KB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 15_000;
/** The maximum number of characters to show of an answer. */
const MAX_SHOWN = 300;

/** Reads one page: the oldest `limit` events (1 to 100) after the event `after`, or from the first one. Never throws. */
export async function readFeed(
  { server, apiKey, dispatcher }: FeedSource,
  { after, limit }: { after: string | null; limit: number },
): Promise<FeedAnswer> {
  const query = `limit=${limit}${after === null ? '' : `&after=${after}`}`;
  try {
    const { statusCode, headers, body } = await request(`${server}/v1/events?${query}`, {
      ...(dispatcher === undefined ? {} : { dispatcher }),
      headers: { 'x-api-key': apiKey, accept: 'application/json' },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      signal: AbortSignal.timeout(2 * TIMEOUT_MS),
    });
    const bytes = await readBounded(body);
    if (bytes === null) return { kind: 'no-feed', reason: `the response has more than ${MAX_ANSWER_BYTES} bytes` };
    return judge(statusCode, headers, bytes);
  } catch (error) {
    return { kind: 'away', reason: describeConnectionFailure(error), retryAfterMs: null };
  }
}

async function readBounded(body: Dispatcher.ResponseData['body']): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function judge(status: number, headers: Dispatcher.ResponseData['headers'], bytes: Buffer): FeedAnswer {
  const text = bytes.toString();
  if (status === 200) {
    const page = splitFeed(bytes);
    if (page !== null) return { kind: 'page', page };
    return { kind: 'no-feed', reason: `it returned 200, but not a page of events: ${excerpt(text)}` };
  }
  // `{"code":"INVALID_REQUEST","detail":"…","errors":[{"field":"after","code":"…","message":"…"}]}`, or anything else.
  const { detail, errors } = parseObject(text);
  if (status === 401) return { kind: 'key-refused' };
  if (status === 400 && Array.isArray(errors) && errors.some((error) => error?.field === 'after'))
    return { kind: 'cursor-unknown' };
  if (status === 429 || status >= 500) {
    const retryAfterMs = readRetryAfter(headers['retry-after'], Date.now());
    return { kind: 'away', reason: `it returned ${status}`, retryAfterMs };
  }
  if (status >= 300 && status < 400) {
    return {
      kind: 'no-feed',
      reason: `it returned ${status}, but Quittance does not follow redirects: use the final URL`,
    };
  }
  return { kind: 'no-feed', reason: `it returned ${status}: ${excerpt(typeof detail === 'string' ? detail : text)}` };
}

function excerpt(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Describes a connection failure in a few words, without any part of the URL. */
export function describeConnectionFailure(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  const label = String(code ?? name);
  if (label === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)';
  if (/^(ENOTFOUND|EAI_)/.test(label)) return `its name does not resolve (${label})`;
  if (/TIMEOUT|^ETIMEDOUT$|^TimeoutError$/.test(label)) return 'it does not respond in time';
  if (/CERT|TLS|SSL|SIGNATURE|^EPROTO$/.test(label)) return `its certificate is not accepted (${label})`;
  return `the connection failed (${/^\w{1,60}$/.test(label) ? label : 'unknown'})`;
}
