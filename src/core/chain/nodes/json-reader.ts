/** Selects the parts of a JSON answer to keep. The answer arrives in chunks and can be of any size. */
export type JsonShape = {
  /** Names of the members to skip, by their container's name. The elements of an array have the name of the array. */
  skipped?: Readonly<Record<string, ReadonlySet<string>>>;
  /** For each array's name, a function that returns the part of an element to keep. `''` stands for an array that is the whole answer. */
  elements?: Readonly<Record<string, (element: unknown) => unknown>>;
  /** Strings that are longer than this are kept as `null`. By default all strings are kept. */
  maxTextBytes?: number;
};

export type JsonReader = {
  /** Throws `NotJson`, or `TooMuchJson` as soon as the parts to keep exceed the limit. */
  push(chunk: Uint8Array): void;
  /** Returns the value. Throws `NotJson` if the answer is incomplete. */
  end(): unknown;
};

export class NotJson extends Error {}
export class TooMuchJson extends Error {}

/** Nodes' answers are nested at most twelve levels deep. */
const MAX_DEPTH = 64;
/** Approximate memory of an object, an array, a member or a number. */
const VALUE_BYTES = 64;
/** The numbers that nodes send have no more digits than an int64. */
const MAX_LITERAL = 40;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

type Container = {
  /** `null` if the container is skipped. */
  value: Record<string, unknown> | unknown[] | null;
  isArray: boolean;
  /** The name of the member that holds the container. The elements of an array have the name of the array. */
  name: string;
  skips: ReadonlySet<string> | undefined;
  /** In an object: the name of the member whose value comes next, once it has been read. */
  member: string | null;
  /** The number of bytes that were held when the container's current element began. */
  heldBefore: number;
  isEmpty: boolean;
};

type Expected = 'value' | 'name' | 'colon' | 'next' | 'nothing';

/**
 * Reads JSON in chunks and keeps the parts selected by `shape`, within about `maxHeldBytes` of memory. Parsing 24 to 64 MiB of `{},{},…` in
 * one piece took two gigabytes. Each chunk is processed and released as it arrives, so other work can run in between.
 */
export function createJsonReader(shape: JsonShape, maxHeldBytes: number): JsonReader {
  const value = createJsonValue(shape, maxHeldBytes);
  const { maxTextBytes = Number.POSITIVE_INFINITY } = shape;
  let text: OpenText | null = null;
  let literal = '';

  const endLiteral = () => {
    value.putLiteral(readLiteral(literal));
    literal = '';
  };
  /** Reads the string's bytes from `at` onwards. Returns the index after the closing quote, or the chunk's end. */
  const takeText = (open: OpenText, chunk: Uint8Array, at: number): number => {
    const quote = findQuote(open, chunk, at);
    const piece = chunk.subarray(at, quote);
    open.bytes += piece.length;
    if (open.bytes > maxTextBytes) open.parts = null;
    if (open.parts !== null) {
      value.hold(piece.length);
      // Copies the bytes, because the chunk's memory is reused, and because a short string must not keep a large chunk in memory.
      open.parts.push(new Uint8Array(piece));
    }
    if (quote === chunk.length) return quote;
    text = null;
    value.putText(open.parts === null ? null : decodeText(open.parts, open.hasEscape));
    return quote + 1;
  };
  const takeByte = (byte: number) => {
    const expected = value.expected();
    if (byte === QUOTE && (expected === 'value' || expected === 'name')) {
      text = { parts: value.beginText() ? [] : null, bytes: 0, hasEscape: false, isEscaping: false };
    } else if (value.takeMark(byte)) return;
    else if (expected === 'value') literal = String.fromCharCode(byte);
    else throw new NotJson(`the byte ${byte} where ${expected} was expected`);
  };
  return {
    push: (chunk) => {
      for (let at = 0; at < chunk.length; ) {
        if (text !== null) {
          at = takeText(text, chunk, at);
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
      if (text !== null || value.expected() !== 'nothing') throw new NotJson('it ends too early');
      return value.result();
    },
  };
}

/** A string that isn't complete yet. `parts` contains its bytes so far, or is `null` if the string is skipped. */
type OpenText = { parts: Uint8Array[] | null; bytes: number; hasEscape: boolean; isEscaping: boolean };

/** Returns where the string ends, from `at` onwards: at its closing quote, or at the chunk's end. */
function findQuote(open: OpenText, chunk: Uint8Array, at: number): number {
  const next = (byte: number, from: number) => {
    const found = chunk.indexOf(byte, from);
    return found < 0 ? chunk.length : found;
  };
  let from = open.isEscaping && at < chunk.length ? at + 1 : at;
  open.isEscaping = false;
  let quote = next(QUOTE, from);
  for (let slash = next(BACKSLASH, from); slash < quote; ) {
    open.hasEscape = true;
    from = slash + 2;
    open.isEscaping = from > chunk.length;
    if (quote < from) quote = next(QUOTE, from);
    slash = chunk[from] === BACKSLASH ? from : next(BACKSLASH, from);
  }
  return quote;
}

/** The value being built, with its open containers and the token that is expected next. */
function createJsonValue({ skipped = {}, elements = {} }: JsonShape, maxHeldBytes: number) {
  const stack: Container[] = [];
  const memory = createMemory(maxHeldBytes);
  let expected: Expected = 'value';
  let result: unknown;
  const fill = () => {
    const top = stack.at(-1);
    if (top !== undefined) top.isEmpty = false;
  };
  const put = (value: unknown) => {
    const top = stack.at(-1);
    expected = top === undefined ? 'nothing' : 'next';
    if (top === undefined) result = value;
    else if (top.isArray) putElement(top, value, own(elements, top.name), memory);
    else putMember(top, value);
  };
  const open = (isArray: boolean) => {
    if (stack.length >= MAX_DEPTH) throw new NotJson('nested too deep');
    const top = stack.at(-1);
    const kept = isKept(top);
    if (kept) memory.hold(VALUE_BYTES);
    fill();
    const name = top === undefined ? '' : (top.member ?? top.name);
    const value = kept ? (isArray ? [] : {}) : null;
    const heldBefore = memory.held();
    stack.push({ value, isArray, name, skips: own(skipped, name), member: null, heldBefore, isEmpty: true });
    expected = isArray ? 'value' : 'name';
  };
  const close = (isArray: boolean) => {
    const top = stack.pop();
    const isAllowed = expected === 'next' || (top?.isEmpty === true && expected !== 'colon');
    if (top === undefined || top.isArray !== isArray || !isAllowed) throw new NotJson('an unmatched bracket');
    put(top.value);
  };
  return {
    hold: memory.hold,
    expected: () => expected,
    result: () => result,
    /** Returns whether the string is kept. */
    beginText: (): boolean => {
      const isWanted = expected === 'name' ? stack.at(-1)?.value !== null : isKept(stack.at(-1));
      if (isWanted) memory.hold(VALUE_BYTES);
      fill();
      return isWanted;
    },
    putText: (value: string | null) => {
      const top = stack.at(-1);
      if (expected === 'name' && top !== undefined) {
        top.member = value ?? '';
        expected = 'colon';
      } else put(value);
    },
    putLiteral: (value: unknown) => {
      if (isKept(stack.at(-1))) memory.hold(VALUE_BYTES);
      fill();
      put(value);
    },
    /** Reads a bracket, a colon or a comma. Returns whether it's allowed at this point. */
    takeMark: (byte: number): boolean => {
      if ((byte === OPEN_OBJECT || byte === OPEN_ARRAY) && expected === 'value') open(byte === OPEN_ARRAY);
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) close(byte === CLOSE_ARRAY);
      else if (byte === COLON && expected === 'colon') expected = 'value';
      else if (byte === COMMA && expected === 'next' && stack.length > 0) {
        expected = stack.at(-1)?.isArray === true ? 'value' : 'name';
      } else return false;
      return true;
    },
  };
}

/** Whether to keep the next value, as part of `top` or as the whole answer. */
function isKept(top: Container | undefined): boolean {
  return top === undefined || (top.value !== null && !(top.member !== null && top.skips?.has(top.member)));
}

type Memory = ReturnType<typeof createMemory>;

function createMemory(maxHeldBytes: number) {
  let held = 0;
  return {
    held: () => held,
    hold: (bytes: number) => {
      held += bytes;
      if (held > maxHeldBytes) throw new TooMuchJson(`its content needs more than ${maxHeldBytes} bytes`);
    },
    /** Releases everything above `before`, the number of bytes that were held at an earlier time. */
    backTo: (before: number) => {
      held = before;
    },
  };
}

function putElement(
  top: Container,
  value: unknown,
  keep: ((element: unknown) => unknown) | undefined,
  memory: Memory,
): void {
  if (top.value === null) return;
  const kept = keep === undefined ? value : keep(value);
  if (keep !== undefined && (kept === null || kept === undefined)) memory.backTo(top.heldBefore);
  if (keep === undefined || kept !== undefined) (top.value as unknown[]).push(kept);
  memory.hold(8);
  top.heldBefore = memory.held();
}

function putMember(top: Container, value: unknown): void {
  if (top.member === null) return;
  // Assigning this member would set the prototype.
  if (top.value !== null && !top.skips?.has(top.member) && top.member !== '__proto__') {
    (top.value as Record<string, unknown>)[top.member] = value;
  }
  top.member = null;
}

/** Names come from outside, so inherited members must not be found. */
function own<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

function isOfLiteral(byte: number): boolean {
  // Digits and letters, and the signs and the decimal point of a number.
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || [0x2b, 0x2d, 0x2e, 0x45].includes(byte);
}

function readLiteral(text: string): unknown {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) throw new NotJson(`${text} is not a value`);
  return Number(text);
}

function decodeText(parts: readonly Uint8Array[], hasEscape: boolean): string {
  const [first = new Uint8Array(0)] = parts;
  const bytes = parts.length === 1 ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(parts);
  if (!hasEscape) return bytes.toString('utf8');
  try {
    return JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    throw new NotJson('a string with an invalid escape');
  }
}
