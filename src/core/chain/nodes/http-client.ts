import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { NodeSpec } from '../../domain/node.ts';
import { Agent, request } from '../../runtime/http-agent.ts';
import { createJsonReader, type JsonReader, type JsonShape, NotJson, TooMuchJson } from './json-reader.ts';
import {
  AnswerTooLarge,
  afterReached,
  type Caller,
  type CallLimits,
  isAboutSolid,
  type Question,
  readNodePause,
  shown,
  TransportRefusal,
} from './node.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** Enough connections to read ahead while catching up, but few enough for providers that limit them. */
export const MAX_CONNECTIONS = 16;
/** With these statuses the node refuses the caller or the request rate, whatever the question is. */
const LIMITING_STATUSES: readonly number[] = [401, 403, 429];
const MAX_HELD_BYTES = 8 * 1024 * 1024;
/** Chunks that are already buffered arrive without letting the event loop run in between, so Quittance yields after this many bytes. */
const YIELD_BYTES = 512 * 1024;
/** Refusals are HTML pages or short texts. */
const REFUSAL_BYTES = 16 * 1024;

type Body = AsyncIterable<Buffer>;
type ReadLimits = Pick<CallLimits, 'maxBytes' | 'onBytes'>;

export function createHttpCaller({ url, solidityUrl, jsonRpcUrl, apiKey, apiKeyHeader }: NodeSpec): Caller {
  const agent = new Agent({
    connections: MAX_CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: 10_000,
  });
  const headers = { 'content-type': 'application/json', ...(apiKey === null ? {} : { [apiKeyHeader]: apiKey }) };
  return {
    ask: async (question, limits) => {
      const { signal } = limits;
      const { path, body } = question.http;
      const base = path === '/jsonrpc' ? (jsonRpcUrl ?? url) : isAboutSolid(question) ? solidityUrl : url;
      const sent = { method: 'POST', headers, body: JSON.stringify(body), signal } as const;
      const response = await request(agent, base + path, sent);
      const { statusCode: status } = response;
      const brokenOff = (error: unknown) => {
        throw afterReached(error);
      };
      if (status === 200) return readAnswer(question, response.body, limits, response.headers).catch(brokenOff);
      const text = await readBeginning(response.body).catch(brokenOff);
      const retryAfterMs = readNodePause(response.headers, text);
      const isLimit = retryAfterMs !== null || LIMITING_STATUSES.includes(status);
      const reason = `HTTP ${status}: ${shown(text)}${explain(status, question, url === solidityUrl)}`;
      throw new TransportRefusal({ reason, retryAfterMs, wasReached: true, isLimit });
    },
    close: () => agent.destroy(),
  };
}

/** A plain java-tron node serves its two APIs on two ports. On the wrong port it responds with 404 or 405 and HTML. */
function explain(status: number, question: Question<unknown>, isOnePlace: boolean): string {
  if ((status !== 404 && status !== 405) || !isOnePlace || question.http.path === '/jsonrpc') return '';
  const api = isAboutSolid(question) ? '/walletsolidity' : '/wallet';
  return ` (it does not serve ${api} here: a self-hosted java-tron serves /wallet at one port and /walletsolidity at another; set both, as in http://host:8090#solidity=http://host:8091)`;
}

/**
 * Reads an answer, or throws if it's a refusal, which can have any status and body. Two were seen with status 200: `{"Error":"class
 * java.lang.RuntimeException : lack of computing resources"}` and the plain text `this API is closed because this node is a lite fullnode`.
 */
export async function readAnswer<Answer>(
  question: Question<Answer>,
  body: Body,
  { maxBytes, onBytes }: ReadLimits,
  headers: Record<string, string | string[] | undefined>,
): Promise<Answer> {
  const { shape = {}, read } = question.http;
  const reader = createAnswerReader(shape, question.maxHeldBytes ?? MAX_HELD_BYTES);
  let beginning = '';
  let bytes = 0;
  let unyielded = 0;
  const refuse = (what: string) => {
    const retryAfterMs = readNodePause(headers, beginning);
    const reason = `${what}: ${shown(beginning)}`;
    return new TransportRefusal({ reason, retryAfterMs, wasReached: true, isLimit: retryAfterMs !== null });
  };
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      onBytes(chunk.length);
      if (beginning.length < REFUSAL_BYTES) beginning += chunk.toString('latin1', 0, REFUSAL_BYTES);
      if (bytes > maxBytes) throw new AnswerTooLarge(`the response is larger than ${maxBytes} bytes`);
      reader.push(chunk);
      unyielded += chunk.length;
      if (unyielded < YIELD_BYTES) continue;
      unyielded = 0;
      await yieldToOthers();
    }
    const answer = reader.end();
    if (typeof answer !== 'object' || answer === null) throw refuse('neither an object nor an array');
    if ('Error' in answer) throw refuse(`error: ${String(answer.Error)}`.slice(0, REFUSAL_BYTES));
    return read(answer);
  } catch (error) {
    if (error instanceof NotJson) throw refuse(`not JSON (${error.message})`);
    if (error instanceof TooMuchJson) throw new AnswerTooLarge(error.message);
    throw error;
  }
}

async function readBeginning(body: Body): Promise<string> {
  let text = '';
  for await (const chunk of body) {
    text += chunk.toString('latin1');
    if (text.length > REFUSAL_BYTES) break;
  }
  return text;
}

/** A three-character object takes about 64 bytes of memory, so this much text needs at most 11 MB. */
const UNSCANNED_BYTES = 512 * 1024;
/** Approximate memory per value. */
const VALUE_BYTES = 64;
const MAX_DEPTH = 64;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Reads a JSON answer in bounded memory. A small answer is parsed in one piece. In a larger answer, the outermost array's elements, such as
 * a range's blocks, are parsed one by one as they arrive. Only the parts that `shape` selects are held, and no single parse blocks the
 * process for long. If an answer has too many values to hold, it's read byte by byte instead. This is seven times slower, but keeps only
 * the parts that `shape` selects.
 */
export function createAnswerReader(shape: JsonShape, maxHeldBytes: number): JsonReader {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let elements: ElementReader | null = null;
  let pieces: JsonReader | null = null;
  const push = (chunk: Uint8Array) => {
    if (pieces !== null) return pieces.push(chunk);
    elements ??= createElementReader(shape);
    elements.push(chunk);
    const held = Math.max(bytes, elements.values() * VALUE_BYTES);
    if (held <= maxHeldBytes && elements.depth() <= MAX_DEPTH) return;
    pieces = goOnInPieces(shape, maxHeldBytes, elements.unfinished());
    elements = null;
  };
  return {
    push: (chunk) => {
      bytes += chunk.length;
      if (bytes <= UNSCANNED_BYTES) chunks.push(chunk);
      else for (const each of [...chunks.splice(0), chunk]) push(each);
    },
    end: () => {
      if (pieces !== null) return pieces.end();
      return elements === null ? shapeOutermost(parse(chunks), shape) : elements.end();
    },
  };
}

/** Reads the buffered bytes, which don't contain the elements that were already parsed, and then inserts those elements. */
function goOnInPieces(shape: JsonShape, maxHeldBytes: number, { chunks, array, kept }: Unfinished): JsonReader {
  const left = kept.values();
  const fill = (value: unknown) => {
    const next = isPlace(value) ? left.next() : null;
    return next?.done === false ? next.value : array?.keep(value);
  };
  const elements = array === null ? shape.elements : { ...shape.elements, [array.name]: fill };
  const pieces = createJsonReader({ ...shape, ...(elements === undefined ? {} : { elements }) }, maxHeldBytes);
  for (const chunk of chunks) pieces.push(chunk);
  return pieces;
}

type OutermostArray = { depth: number; name: string; keep(value: unknown): unknown };
/** `chunks` contains everything except the elements that were already parsed. */
type Unfinished = { chunks: readonly Uint8Array[]; array: OutermostArray | null; kept: readonly unknown[] };
type ElementReader = ReturnType<typeof createElementReader>;

/**
 * Finds the objects in the outermost array (the answer itself or one of its members), and parses each of them when it's complete. The rest
 * is parsed at the end, with an empty object instead of each element.
 */
function createElementReader(shape: JsonShape) {
  const rest: Uint8Array[] = [];
  const element: Uint8Array[] = [];
  const kept: unknown[] = [];
  const skipText = createTextSkipper();
  let array: OutermostArray | null = null;
  let isElement = false;
  let depth = 0;
  let deepest = 0;
  let values = 0;

  /** Returns whether the value that opens here is in the array itself. */
  const open = (byte: number): 'element' | 'array' | null => {
    const isInArray = byte === OPEN_OBJECT && depth === array?.depth;
    values += 1;
    depth += 1;
    deepest = Math.max(deepest, depth);
    if (isInArray) return 'element';
    return byte === OPEN_ARRAY && array === null && depth <= 2 ? 'array' : null;
  };
  const beginArray = () => {
    const name = depth === 1 ? '' : lastName(rest);
    array = { depth, name, keep: own(shape.elements, name) ?? ((value) => value) };
  };
  const endElement = () => {
    isElement = false;
    kept.push(array?.keep(parse(element)));
    element.length = 0;
    rest.push(PLACE);
  };
  const close = (): 'element' | null => {
    depth -= 1;
    if (array !== null && depth < array.depth) array = { ...array, depth: Number.POSITIVE_INFINITY };
    return isElement && depth === array?.depth ? 'element' : null;
  };
  const push = (chunk: Uint8Array) => {
    let from = 0;
    const takeUpTo = (to: number) => {
      // Copies the rest, so that a single comma doesn't keep a whole chunk in memory.
      if (to > from && isElement) element.push(chunk.subarray(from, to));
      else if (to > from) rest.push(new Uint8Array(chunk.subarray(from, to)));
      from = to;
    };
    for (let at = skipText(chunk, 0, false); at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === QUOTE) at = skipText(chunk, at + 1, true) - 1;
      else if (byte === COMMA) values += 1;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        const begun = open(byte);
        if (begun === null) continue;
        takeUpTo(at);
        if (begun === 'array') beginArray();
        else isElement = true;
      } else if ((byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && close() === 'element') {
        takeUpTo(at + 1);
        endElement();
      }
    }
    takeUpTo(chunk.length);
  };
  return {
    push,
    values: () => values,
    depth: () => deepest,
    unfinished: (): Unfinished => ({ chunks: [...rest, ...element], array, kept }),
    end: (): unknown => (array === null ? parse(rest) : fillPlaces(parse(rest), array.name, kept)),
  };
}

function fillPlaces(value: unknown, name: string, elements: readonly unknown[]): unknown {
  const left = elements.values();
  const filled = mapArray(value, name, (each) => (isPlace(each) ? left.next().value : each));
  if (left.next().done !== true) throw new NotJson('a name appears twice');
  return filled;
}

const PLACE = Buffer.from('{}');

function isPlace(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** Finds the end of a string, even if it's in a later chunk. */
function createTextSkipper() {
  let isOpen = false;
  let slashes = 0;
  /**
   * Returns the index after the closing quote, or the chunk's end. If `begins` is true, a string begins at `start`; otherwise a string from
   * an earlier chunk may continue there.
   */
  return (chunk: Uint8Array, start: number, begins: boolean): number => {
    if (begins) slashes = 0;
    else if (!isOpen) return start;
    isOpen = true;
    for (let at = start; ; ) {
      const found = chunk.indexOf(QUOTE, at);
      const quote = found < 0 ? chunk.length : found;
      let first = quote;
      while (first > start && chunk[first - 1] === BACKSLASH) first -= 1;
      const before = quote - first + (first === start ? slashes : 0);
      if (found < 0) {
        slashes = before;
        return chunk.length;
      }
      at = quote + 1;
      if (before % 2 === 1) continue;
      isOpen = false;
      return at;
    }
  };
}

/** Returns the name of the member whose value comes next. */
function lastName(before: readonly Uint8Array[]): string {
  return Object.keys(parse([...before, Buffer.from('0}')]) as object).at(-1) ?? '';
}

function shapeOutermost(value: unknown, { elements = {} }: JsonShape): unknown {
  return Object.entries(elements).reduce((shaped, [name, keep]) => mapArray(shaped, name, keep), value);
}

/** Maps an array, which is either the value itself (name `''`) or one of its members. Returns any other value unchanged. */
function mapArray(value: unknown, name: string, map: (element: unknown) => unknown): unknown {
  if (Array.isArray(value)) return name === '' ? value.map((each) => map(each)) : value;
  const list = typeof value === 'object' && value !== null ? own(value as Record<string, unknown>, name) : undefined;
  return Array.isArray(list) ? { ...(value as object), [name]: list.map((each) => map(each)) } : value;
}

function own<Value>(record: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}

function parse(chunks: readonly Uint8Array[]): unknown {
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new NotJson('it cannot be parsed');
  }
}
