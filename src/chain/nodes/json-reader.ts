/** What is kept of a JSON answer, which comes in pieces and may be of any size. */
export type JsonShape = {
  /** Members that are not kept, by the name of what they stand in; elements of an array have its name. */
  skipped?: Readonly<Record<string, ReadonlySet<string>>>;
  /** What is kept of each element of an array, by the array's name; `''` is an array that is the whole answer. */
  elements?: Readonly<Record<string, (element: unknown) => unknown>>;
  /** Texts with more bytes are kept as `null`; all of them are kept when absent. */
  maxTextBytes?: number;
};

export type JsonReader = {
  /** Throws `NotJson`, or `TooMuchJson` as soon as what is kept takes more than the bound. */
  push(chunk: Uint8Array): void;
  /** The value. Throws `NotJson` where it is not whole. */
  end(): unknown;
};

export class NotJson extends Error {}
export class TooMuchJson extends Error {}

/** An answer of a node is nested twelve deep at most. */
const MAX_DEPTH = 64;
/** What an object, an array, a member or a number takes, about. */
const VALUE_BYTES = 64;
/** No number of a node has more digits than an int64. */
const MAX_LITERAL = 40;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

type Container = {
  /** `null`: it is not kept. */
  value: Record<string, unknown> | unknown[] | null;
  isArray: boolean;
  /** The name under which it stands; that of an array for what is an element. */
  name: string;
  skips: ReadonlySet<string> | undefined;
  /** Of an object: the member whose value comes next, once its name was read. */
  member: string | null;
  /** What was held when its present element began. */
  heldBefore: number;
  isEmpty: boolean;
};

type Expected = 'value' | 'name' | 'colon' | 'next' | 'nothing';

/**
 * Reads JSON from pieces and keeps what `shape` says, at most about `maxHeldBytes` of memory: 24 to 64 MiB of `{},{},…` took two
 * gigabytes when they were parsed at once. No piece is held longer than it takes to read it, so that other work goes on between two of them.
 */
export function createJsonReader(shape: JsonShape, maxHeldBytes: number): JsonReader {
  const { skipped = {}, elements = {}, maxTextBytes = Number.POSITIVE_INFINITY } = shape;
  const stack: Container[] = [];
  let expected: Expected = 'value';
  let result: unknown;
  let held = 0;
  /** A text that is not whole yet: its bytes so far, `null` where it is not kept. */
  let text: { parts: Uint8Array[] | null; bytes: number; hasEscape: boolean; isEscaping: boolean } | null = null;
  let literal = '';

  const hold = (bytes: number) => {
    held += bytes;
    if (held > maxHeldBytes) throw new TooMuchJson(`what it holds takes more than ${maxHeldBytes} bytes`);
  };
  const isKept = () => {
    const top = stack.at(-1);
    return top === undefined || (top.value !== null && !(top.member !== null && top.skips?.has(top.member)));
  };
  const put = (value: unknown) => {
    const top = stack.at(-1);
    expected = top === undefined ? 'nothing' : 'next';
    if (top === undefined) result = value;
    else if (top.isArray) {
      const keep = own(elements, top.name);
      if (top.value === null) return;
      if (keep === undefined) (top.value as unknown[]).push(value);
      else {
        const kept = keep(value);
        if (kept === null || kept === undefined) held = top.heldBefore;
        if (kept !== undefined) (top.value as unknown[]).push(kept);
      }
      hold(8);
      top.heldBefore = held;
    } else if (top.member !== null) {
      // Such a member would become the prototype.
      if (top.value !== null && !top.skips?.has(top.member) && top.member !== '__proto__') {
        (top.value as Record<string, unknown>)[top.member] = value;
      }
      top.member = null;
    }
  };
  const open = (isArray: boolean) => {
    if (stack.length >= MAX_DEPTH) throw new NotJson('nested too deep');
    const top = stack.at(-1);
    const kept = isKept();
    if (kept) hold(VALUE_BYTES);
    const name = top === undefined ? '' : (top.member ?? top.name);
    const value = kept ? (isArray ? [] : {}) : null;
    stack.push({ value, isArray, name, skips: own(skipped, name), member: null, heldBefore: held, isEmpty: true });
    expected = isArray ? 'value' : 'name';
  };
  const close = (isArray: boolean) => {
    const top = stack.pop();
    const isAllowed = expected === 'next' || (top?.isEmpty === true && expected !== 'colon');
    if (top === undefined || top.isArray !== isArray || !isAllowed) throw new NotJson('a bracket that does not fit');
    put(top.value);
  };
  const endLiteral = () => {
    const value = readLiteral(literal);
    literal = '';
    if (isKept()) hold(VALUE_BYTES);
    put(value);
  };
  const endText = () => {
    const { parts, hasEscape } = text as NonNullable<typeof text>;
    text = null;
    const value = parts === null ? null : decodeText(parts, hasEscape);
    const top = stack.at(-1);
    if (expected === 'name' && top !== undefined) {
      top.member = value ?? '';
      expected = 'colon';
    } else put(value);
  };
  const beginText = () => {
    const isWanted = expected === 'name' ? stack.at(-1)?.value !== null : isKept();
    text = { parts: isWanted ? [] : null, bytes: 0, hasEscape: false, isEscaping: false };
    if (isWanted) hold(VALUE_BYTES);
  };
  /** Takes the text's bytes from `at` on; returns where it goes on behind the closing quote, or the chunk's end. */
  const takeText = (chunk: Uint8Array, at: number): number => {
    const open = text as NonNullable<typeof text>;
    let from = at;
    if (open.isEscaping && from < chunk.length) from += 1;
    open.isEscaping = false;
    let quote = chunk.indexOf(QUOTE, from);
    if (quote < 0) quote = chunk.length;
    for (let slash = chunk.indexOf(BACKSLASH, from); slash >= 0 && slash < quote; ) {
      open.hasEscape = true;
      from = slash + 2;
      open.isEscaping = from > chunk.length;
      if (quote < from) quote = chunk.indexOf(QUOTE, from);
      if (quote < 0) quote = chunk.length;
      slash = chunk[from] === BACKSLASH ? from : chunk.indexOf(BACKSLASH, from);
    }
    const piece = chunk.subarray(at, quote);
    open.bytes += piece.length;
    if (open.bytes > maxTextBytes) open.parts = null;
    if (open.parts !== null) {
      hold(piece.length);
      // A copy: the chunk's memory is used again, and a small text must not keep a large chunk.
      open.parts.push(new Uint8Array(piece));
    }
    if (quote === chunk.length) return quote;
    endText();
    return quote + 1;
  };
  const takeByte = (byte: number) => {
    if (byte === QUOTE && (expected === 'value' || expected === 'name')) beginText();
    else if ((byte === OPEN_OBJECT || byte === OPEN_ARRAY) && expected === 'value') open(byte === OPEN_ARRAY);
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) return close(byte === CLOSE_ARRAY);
    else if (byte === COLON && expected === 'colon') expected = 'value';
    else if (byte === COMMA && expected === 'next' && stack.length > 0) {
      expected = stack.at(-1)?.isArray === true ? 'value' : 'name';
      return;
    } else if (expected === 'value') literal = String.fromCharCode(byte);
    else throw new NotJson(`the byte ${byte} where ${expected} was expected`);
    const holder = stack.at(byte === OPEN_OBJECT || byte === OPEN_ARRAY ? -2 : -1);
    if (holder !== undefined) holder.isEmpty = false;
  };
  return {
    push: (chunk) => {
      for (let at = 0; at < chunk.length; ) {
        if (text !== null) {
          at = takeText(chunk, at);
          continue;
        }
        const byte = chunk[at] ?? 0;
        at += 1;
        if (literal !== '') {
          if (isOfLiteral(byte)) {
            literal += String.fromCharCode(byte);
            if (literal.length > MAX_LITERAL) throw new NotJson('a number that is too long');
            continue;
          }
          endLiteral();
        }
        if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
        takeByte(byte);
      }
    },
    end: () => {
      if (literal !== '') endLiteral();
      if (text !== null || expected !== 'nothing') throw new NotJson('it ends too early');
      return result;
    },
  };
}

/** Names come from outside, and an object has more than its own members. */
function own<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

function isOfLiteral(byte: number): boolean {
  // Digits, letters, and the signs and the point of a number.
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || [0x2b, 0x2d, 0x2e, 0x45].includes(byte);
}

function readLiteral(text: string): unknown {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) throw new NotJson(`${text} is no value`);
  return Number(text);
}

function decodeText(parts: readonly Uint8Array[], hasEscape: boolean): string {
  const [first = new Uint8Array(0)] = parts;
  const bytes = parts.length === 1 ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(parts);
  if (!hasEscape) return bytes.toString('utf8');
  try {
    return JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    throw new NotJson('a text with a wrong escape');
  }
}
