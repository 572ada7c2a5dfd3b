/** Which fields of a message to read, and how. The reader skips all other fields. The message arrives in chunks. */
export type MessageShape = Readonly<
  Record<number, { take: number } | { enter: MessageShape; begin?(): void; end(): void }>
>;

/**
 * Receives each requested field with its number. A varint is exact below 2^53. Bytes are `null` if there are more than `take` of them. They
 * are a view of the chunk, so callers mustn't keep them.
 */
export type FieldVisitor = (field: number, value: number | Uint8Array | null) => void;

export class BadMessage extends Error {}

/** A 64-bit varint has at most ten bytes of seven bits each. */
const MAX_VARINT_BYTES = 10;
const MAX_TAG = 0xffff_ffff;
/** The only other wire type is 0 (varint). */
const [FIXED64, DELIMITED, FIXED32] = [1, 2, 5];

/** A message that is being read, with the offset of its end. */
type Level = { shape: MessageShape; end: number; onEnd(): void };
/** A field whose bytes haven't all arrived yet. `parts` is `null` if they are skipped. */
type Payload = { field: number; left: number; parts: Uint8Array[] | null; isReported: boolean };

/**
 * Reads a protobuf message in chunks. It buffers one field at a time, and only if a chunk ends in the middle of it, so a message of any
 * size needs only the memory of the largest requested field. `push` throws `BadMessage` if the bytes aren't a message. Groups aren't
 * supported, because java-tron doesn't use them in these messages.
 */
export function createMessageReader(shape: MessageShape, visit: FieldVisitor) {
  const levels: Level[] = [{ shape, end: Number.POSITIVE_INFINITY, onEnd: () => undefined }];
  let top = levels[0] as Level;
  let position = 0;
  let [varint, scale, varintBytes] = [0, 1, 0];
  /** The tag whose value or length comes next, or 0 if the next thing is a tag. */
  let tag = 0;
  let payload: Payload | null = null;

  const leave = () => {
    while (position === top.end) {
      const { onEnd } = levels.pop() as Level;
      top = levels.at(-1) as Level;
      onEnd();
    }
  };
  /** Begins a field of `length` bytes, and reads the bytes that are in the chunk from `at` onwards. Returns the index after them. */
  const begin = (field: number, wireType: number, length: number, chunk: Uint8Array, at: number): number => {
    if (position + length > top.end) throw new BadMessage('a field is longer than the message that contains it');
    const wanted = wireType === DELIMITED ? top.shape[field] : undefined;
    if (wanted !== undefined && 'enter' in wanted) {
      wanted.begin?.();
      top = { shape: wanted.enter, end: position + length, onEnd: wanted.end };
      levels.push(top);
      leave();
      return at;
    }
    const isTaken = wanted !== undefined && length <= wanted.take;
    const end = at + length;
    if (end > chunk.length) {
      payload = { field, left: length, parts: isTaken ? [] : null, isReported: wanted !== undefined };
      return goOn(payload, chunk, at);
    }
    position += length;
    if (wanted !== undefined) visit(field, isTaken ? chunk.subarray(at, end) : null);
    leave();
    return end;
  };
  const goOn = (open: Payload, chunk: Uint8Array, at: number): number => {
    const count = Math.min(open.left, chunk.length - at);
    // Copies the bytes, because the chunk's memory is reused.
    open.parts?.push(new Uint8Array(chunk.subarray(at, at + count)));
    open.left -= count;
    position += count;
    if (open.left > 0) return at + count;
    payload = null;
    if (open.isReported) visit(open.field, open.parts === null ? null : Buffer.concat(open.parts));
    leave();
    return at + count;
  };
  const endVarint = (value: number, chunk: Uint8Array, at: number): number => {
    if (position > top.end) throw new BadMessage('a field is longer than the message that contains it');
    if (tag === 0) {
      const [field, wireType] = splitTag(value);
      if (wireType === FIXED64) return begin(field, wireType, 8, chunk, at);
      if (wireType === FIXED32) return begin(field, wireType, 4, chunk, at);
      tag = value;
      return at;
    }
    const [field, wireType] = splitTag(tag);
    tag = 0;
    if (wireType === DELIMITED) return begin(field, wireType, value, chunk, at);
    if (top.shape[field] !== undefined) visit(field, value);
    leave();
    return at;
  };
  return {
    push: (chunk: Uint8Array) => {
      let at = payload === null ? 0 : goOn(payload, chunk, 0);
      while (at < chunk.length) {
        const byte = chunk[at] ?? 0;
        at += 1;
        position += 1;
        varintBytes += 1;
        if (varintBytes > MAX_VARINT_BYTES) throw new BadMessage('a varint of more than ten bytes');
        varint += (byte & 0x7f) * scale;
        scale *= 128;
        if (byte >= 0x80) continue;
        const value = varint;
        [varint, scale, varintBytes] = [0, 1, 0];
        at = endVarint(value, chunk, at);
      }
    },
    end: () => {
      const isWhole = payload === null && tag === 0 && varintBytes === 0 && levels.length === 1;
      if (!isWhole) throw new BadMessage('it ends too early');
    },
  };
}

function splitTag(tag: number): [field: number, wireType: number] {
  if (tag > MAX_TAG) throw new BadMessage('a tag of more than 32 bits');
  const [field, wireType] = [tag >>> 3, tag & 7];
  if (field === 0) throw new BadMessage('field number 0');
  if (wireType > DELIMITED && wireType !== FIXED32) throw new BadMessage(`wire type ${wireType}`);
  return [field, wireType];
}
