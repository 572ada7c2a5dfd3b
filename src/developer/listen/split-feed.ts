import { decodeId } from '../../domain/ids.ts';
import { asObject } from '../../runtime/parse-object.ts';

/** A page of the feed. `events` holds the exact bytes of each event, as the server stored and sent them. */
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
  const { data, hasMore, latest } = asObject(parse(body));
  if (!Array.isArray(data) || typeof hasMore !== 'boolean') return null;
  if (latest !== null && (typeof latest !== 'string' || decodeId('evt', latest) === null)) return null;
  const events = sliceData(body);
  // Two members of the name `data` would be one to the parser and another to the scanner.
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

/** The elements of the array `data` in an object. The bytes are known to be valid JSON, which is all that the scan relies on. */
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

/** The parts between the commas of an array or object; none if it holds only whitespace. */
function partsOf(value: Uint8Array): Uint8Array[] {
  const inside = trim(trim(value).subarray(1, -1));
  if (inside.length === 0) return [];
  const ends = [...separatorsOf(inside, COMMA), inside.length];
  return ends.map((end, index) => inside.subarray(index === 0 ? 0 : (ends[index - 1] ?? 0) + 1, end));
}

/** Where a separator stands that is in no string and no inner array or object. */
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
