import { decodeId } from '../../core/domain/ids.ts';
import { asObject } from '../../core/runtime/parse-object.ts';

/** A page from the feed. `events` holds the exact bytes of each event as the server stored and sent it. */
export type FeedPage = {
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
