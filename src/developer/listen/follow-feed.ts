import { setTimeout as delay } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { assertNever } from '../../core/domain/assert-never.ts';
import { type AppError, invalidArgument, notFound } from '../../core/domain/errors.ts';
import { decodeId } from '../../core/domain/ids.ts';
import { unlessAborted } from '../../core/runtime/concurrency.ts';
import { type Backoff, backoffMs } from '../../core/runtime/loop.ts';
import { asObject, parseObject } from '../../core/runtime/parse-object.ts';
import { readRetryAfter } from '../../core/webhooks/send.ts';
import { printable } from '../../faces/operator/input/problems.ts';

export type FeedReader = ReturnType<typeof createFeedReader>;

const AWAY = { firstMs: 1000, longestMs: 30_000 };
/** Rate limits and failovers take less time. A longer wait would look as if the command hangs. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/** Creates a reader that retries temporary failures. Throws on permanent problems, with the fix, and throws the signal's reason. */
export function createFeedReader(
  source: FeedSource,
  { note, signal }: { note: (text: string) => void; signal: AbortSignal },
) {
  const { server } = source;
  let failures = 0;
  return {
    /** Returns the page after an event, or the first page for `null`. Waits while the server is unavailable, and says so once. */
    read: async (after: string | null, limit: number): Promise<FeedPage> => {
      for (;;) {
        const answer = await unlessAborted(signal, () => readFeed(source, { after, limit }));
        switch (answer.kind) {
          case 'page':
            if (leadsNoFurther(answer.page, after))
              throw noFeed(server, 'its feed returned a page that does not advance past the requested position');
            if (failures > 0) note(`${server} responds again`);
            failures = 0;
            return answer.page;
          case 'away': {
            failures += 1;
            if (failures === 1) note(`cannot read the feed of ${server}: ${answer.reason}; retrying until it responds`);
            const asked = Math.min(answer.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
            await pause(Math.max(asked, backoff(failures, AWAY)), signal);
            break;
          }
          case 'key-refused':
            throw invalidArgument`${server} does not accept the API key: the key belongs to another server, has expired, was revoked, or is not allowed from this address. Create another key on that server with "quittance key create"`;
          case 'cursor-unknown':
            throw notFound`${server} has no event ${String(after)} in this project: the server's data was recreated, or the id belongs to another project. Choose where to start: --after latest (new events only) or --after beginning (all events)`;
          case 'no-feed':
            throw noFeed(server, answer.reason);
          default:
            return assertNever(answer);
        }
      }
    },
  };
}

/** A reader that continued after such a page would read it again without a pause. */
function leadsNoFurther({ events, hasMore }: FeedPage, after: string | null): boolean {
  const last = events.at(-1);
  return last === undefined ? hasMore : readEvent(last)?.id === after;
}

function noFeed(server: string, reason: string): AppError {
  return invalidArgument`${server} does not respond like a Quittance server: ${printable(reason)}`;
}

/** Waits for some time. If the signal is aborted, rejects with its reason. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** The pause after several failures in a row, minus a random part of up to one half. */
export function backoff(failures: number, limits: Backoff): number {
  return backoffMs(failures, limits) * (0.5 + Math.random() / 2);
}

/** The displayed parts of an event in the feed. Texts are unescaped, so the code that shows them must escape them. */
export type ShownEvent = { id: string; type: string; invoiceId: string | null; externalId: string | null };

/** Reads the displayed parts of an event; `null` if the bytes aren't an event. */
export function readEvent(body: Uint8Array): ShownEvent | null {
  const { id, type, data } = parseObject(Buffer.from(body).toString());
  if (typeof id !== 'string' || decodeId('evt', id) === null || typeof type !== 'string') return null;
  const { invoiceId, externalId } = asObject(data);
  return { id, type, invoiceId: textOf(invoiceId), externalId: textOf(externalId) };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The maximum number of events that the feed returns at a time. */
export const PAGE = 100;

/** The outcome of reading the feed once. Only `away` may be temporary. Texts are as the server sent them, shortened but unescaped. */
type FeedAnswer =
  | { kind: 'page'; page: FeedPage }
  | { kind: 'away'; reason: string; retryAfterMs: number | null }
  | { kind: 'key-refused' }
  | { kind: 'cursor-unknown' }
  | { kind: 'no-feed'; reason: string };

/** `server` is a URL without a trailing slash. */
type FeedSource = { server: string; apiKey: string; dispatcher?: Dispatcher };

/** This is more than enough for a page of 100 events, each of which has less than 20 KB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 15_000;
/** The maximum number of characters to show of an answer. */
const MAX_SHOWN = 300;

/** Reads one page: the oldest `limit` events (1 to 100) after the event `after`, or from the first one. Never throws. */
async function readFeed(
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

/** A page from the feed. `events` holds the exact bytes of each event as the server stored and sent it. */
type FeedPage = {
  events: Uint8Array[];
  hasMore: boolean;
  /** The project's newest event, `evt_…`; `null` if it has none yet. */
  latest: string | null;
};

/**
 * Splits a response to `GET /v1/events` into its events without re-serialising them: a signature covers bytes, and parsing and writing JSON
 * could change them. Returns `null` for any other answer. Time and memory are proportional to the length. A real answer:
 * `{"data":[{"id":"evt_…","type":"invoice.paid",…}],"hasMore":false,"latest":"evt_…"}`.
 */
export function splitFeed(body: Uint8Array): FeedPage | null {
  const { data, hasMore, latest } = asObject(parse(body));
  if (!Array.isArray(data) || typeof hasMore !== 'boolean') return null;
  if (latest !== null && (typeof latest !== 'string' || decodeId('evt', latest) === null)) return null;
  const events = sliceData(body);
  // With two members called `data`, the parser and the scanner could disagree.
  return events?.length === data.length ? { events, hasMore, latest } : null;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return null;
  }
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Returns the elements of the array `data` in an object. The scan relies only on the bytes being valid JSON, which has been checked. */
function sliceData(body: Uint8Array): Uint8Array[] | null {
  let found: Uint8Array[] | null = null;
  for (const member of partsOf(body)) {
    const colon = separatorsOf(member, COLON)[0] ?? 0;
    if (parse(member.subarray(0, colon)) !== 'data') continue;
    if (found !== null) return null;
    found = partsOf(member.subarray(colon + 1)).map(trim);
  }
  return found;
}

/** Returns the parts between the commas of an array or object; none if it contains only whitespace. */
function partsOf(value: Uint8Array): Uint8Array[] {
  const inside = trim(trim(value).subarray(1, -1));
  if (inside.length === 0) return [];
  const ends = [...separatorsOf(inside, COMMA), inside.length];
  return ends.map((end, index) => inside.subarray(index === 0 ? 0 : (ends[index - 1] ?? 0) + 1, end));
}

/** Finds a separator outside strings and inner arrays or objects. */
function separatorsOf(inside: Uint8Array, separator: number): number[] {
  const found: number[] = [];
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < inside.length; at += 1) {
    const byte = inside[at] ?? 0;
    if (byte === QUOTE) isInString = !isInString;
    else if (isInString) at += byte === BACKSLASH ? 1 : 0;
    else if (OPENING.has(byte)) depth += 1;
    else if (CLOSING.has(byte)) depth -= 1;
    else if (depth === 0 && byte === separator) found.push(at);
  }
  return found;
}

function trim(slice: Uint8Array): Uint8Array {
  const isText = (byte: number) => byte > 0x20;
  return slice.subarray(Math.max(0, slice.findIndex(isText)), slice.findLastIndex(isText) + 1);
}
