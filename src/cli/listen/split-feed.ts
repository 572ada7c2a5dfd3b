import { decodeId } from '../../domain/ids.ts';

/** One page of the feed. `events` are the exact bytes of each, as the server stored and sent them. */
export type FeedPage = {
  events: Uint8Array[];
  hasMore: boolean;
  /** The newest event of the project, `evt_…`; `null` if it has none yet. */
  latest: string | null;
};

/**
 * Cuts an answer of `GET /v1/events` into its events without writing them anew: a signature covers bytes, and JSON that was
 * parsed and written again may have others. `null` for what is no such answer. Time and memory are in proportion to the length.
 * A real answer: `{"data":[{"id":"evt_…","type":"invoice.paid",…}],"hasMore":false,"latest":"evt_…"}`.
 */
export function splitFeed(body: Uint8Array): FeedPage | null {
  const answer = parse(body);
  if (!isAnswer(answer)) return null;
  const events = sliceData(body);
  // Two members of the name `data` would be one to the parser and another to the scanner.
  if (events === null || events.length !== answer.data.length) return null;
  return { events, hasMore: answer.hasMore, latest: answer.latest };
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return null;
  }
}

function isAnswer(value: unknown): value is { data: unknown[]; hasMore: boolean; latest: string | null } {
  if (typeof value !== 'object' || value === null) return false;
  const { data, hasMore, latest } = value as Record<string, unknown>;
  if (!Array.isArray(data) || typeof hasMore !== 'boolean') return false;
  return latest === null || (typeof latest === 'string' && decodeId('evt', latest) !== null);
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);
const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The elements of the array `data` in an object. The bytes are known to be valid JSON, which is all that the scan relies on. */
function sliceData(body: Uint8Array): Uint8Array[] | null {
  let found: Uint8Array[] | null = null;
  for (const member of slicesInside(body)) {
    const colon = endOfValue(body, member.start, COLON);
    if (parse(body.subarray(member.start, colon)) !== 'data') continue;
    if (found !== null) return null;
    found = slicesInside(body.subarray(colon + 1, member.end)).map(({ start, end }) =>
      trim(body.subarray(colon + 1 + start, colon + 1 + end)),
    );
  }
  return found;
}

type Slice = { start: number; end: number };

/** What stands between the commas of the first array or object, without what stands around it. */
function slicesInside(body: Uint8Array): Slice[] {
  const slices: Slice[] = [];
  let start = body.findIndex((byte) => OPENING.has(byte)) + 1;
  for (;;) {
    const end = endOfValue(body, start, COMMA);
    const isEmpty = body.subarray(start, end).every((byte) => WHITESPACE.has(byte));
    if (!isEmpty) slices.push({ start, end });
    if (body[end] !== COMMA) return slices;
    start = end + 1;
  }
}

/** Where the next `separator` stands that is in no string and no inner array or object; else the end of the one around it. */
function endOfValue(body: Uint8Array, start: number, separator: number): number {
  let depth = 0;
  let isInString = false;
  for (let at = start; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (OPENING.has(byte)) depth += 1;
    else if (depth === 0 && (byte === separator || CLOSING.has(byte))) return at;
    else if (CLOSING.has(byte)) depth -= 1;
  }
  return body.length;
}

function trim(slice: Uint8Array): Uint8Array {
  const start = slice.findIndex((byte) => !WHITESPACE.has(byte));
  const end = slice.findLastIndex((byte) => !WHITESPACE.has(byte)) + 1;
  return slice.subarray(start, end);
}
