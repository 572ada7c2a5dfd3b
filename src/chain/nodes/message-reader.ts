/** A message that comes in pieces: what becomes of each of its fields. Those that are not named are passed over unread. */
export type MessageShape = Readonly<
  Record<number, { take: number } | { enter: MessageShape; begin?(): void; end(): void }>
>;

/** A field that was asked for: varints as bigints; bytes, or `null` where they are more than `take`. */
export type FieldVisitor = (path: readonly number[], value: bigint | Uint8Array | null) => void;

export class BadMessage extends Error {}

/** A 64-bit varint takes at most ten bytes of seven bits each. */
const MAX_VARINT_BYTES = 10;
const [VARINT, FIXED64, DELIMITED, FIXED32] = [0, 1, 2, 5];

/**
 * Reads a protobuf message from pieces. It holds one field at a time, so a message of any size takes the memory of the largest field
 * that is taken. `push` throws `BadMessage` for bytes that are no message; java-tron writes no groups in the messages read here.
 */
export function createMessageReader(shape: MessageShape, visit: FieldVisitor) {
  const levels = createLevels(shape);
  const varint = createVarint();
  let tag: bigint | null = null;
  /** Bytes that are taken, or passed over where `parts` is `null`. */
  let payload: { number: number; left: number; parts: Uint8Array[] | null; isReported: boolean } | null = null;

  const endPayload = () => {
    const { number, parts, isReported } = payload as NonNullable<typeof payload>;
    payload = null;
    if (isReported) visit(levels.pathTo(number), parts === null ? null : Buffer.concat(parts));
    levels.leave();
  };
  const begin = (number: number, wireType: number, size: bigint) => {
    const length = Number(size);
    levels.refuseLonger(length);
    const wanted = wireType === DELIMITED ? levels.wanted(number) : undefined;
    if (wanted !== undefined && 'enter' in wanted) {
      wanted.begin?.();
      levels.enter(wanted.enter, number, length);
      return;
    }
    const isTaken = wanted !== undefined && length <= wanted.take;
    payload = { number, left: length, parts: isTaken ? [] : null, isReported: wanted !== undefined };
    if (length === 0) endPayload();
  };
  const endTag = (value: bigint) => {
    const wireType = Number(value & 7n);
    const number = Number(value >> 3n);
    if (number === 0) throw new BadMessage('field number 0');
    if (wireType === FIXED64 || wireType === FIXED32) begin(number, wireType, wireType === FIXED64 ? 8n : 4n);
    else if (wireType === VARINT || wireType === DELIMITED) tag = value;
    else throw new BadMessage(`wire type ${wireType}`);
  };
  const endValue = (value: bigint, ofTag: bigint) => {
    const [number, wireType] = [Number(ofTag >> 3n), Number(ofTag & 7n)];
    tag = null;
    if (wireType === DELIMITED) return begin(number, wireType, value);
    if (levels.wanted(number) !== undefined) visit(levels.pathTo(number), value);
    levels.leave();
  };
  return {
    push: (chunk: Uint8Array) => {
      for (let at = 0; at < chunk.length; ) {
        if (payload !== null) {
          const count = Math.min(payload.left, chunk.length - at);
          // A copy: a taken field must not keep the socket's buffer.
          payload.parts?.push(new Uint8Array(chunk.subarray(at, at + count)));
          payload.left -= count;
          at += count;
          levels.spend(count);
          if (payload.left === 0) endPayload();
          continue;
        }
        levels.spend(1);
        const value = varint.take(chunk[at] ?? 0);
        at += 1;
        if (value === null) continue;
        if (tag === null) endTag(value);
        else endValue(value, tag);
      }
    },
    end: () => {
      if (payload !== null || tag !== null || varint.isOpen() || levels.isInside()) {
        throw new BadMessage('it ends too early');
      }
    },
  };
}

type Level = { shape: MessageShape; number: number; left: number };

/** The message and those within it that are being read, each with the bytes that are left of it. */
function createLevels(shape: MessageShape) {
  const levels: Level[] = [{ shape, number: 0, left: Number.POSITIVE_INFINITY }];
  const top = () => levels.at(-1) as Level;
  const wanted = (number: number) => top().shape[number];
  const leave = () => {
    while (levels.length > 1 && top().left === 0) {
      const { number } = levels.pop() as Level;
      const entered = wanted(number);
      if (entered !== undefined && 'enter' in entered) entered.end();
    }
  };
  return {
    wanted,
    refuseLonger: (length: number) => {
      if (length > top().left) throw new BadMessage('a field is longer than what it stands in');
    },
    pathTo: (number: number) => [...levels.slice(1).map((level) => level.number), number],
    isInside: () => levels.length > 1,
    enter: (entered: MessageShape, number: number, length: number) => {
      levels.push({ shape: entered, number, left: length });
      leave();
    },
    /** Ends the messages of which nothing is left. */
    leave,
    /** So many bytes of the message were read: each message that encloses them is that much shorter. */
    spend: (bytes: number) => {
      for (const level of levels) {
        level.left -= bytes;
        if (level.left < 0) throw new BadMessage('a field is longer than what it stands in');
      }
    },
  };
}

function createVarint() {
  let [value, shift, bytes] = [0n, 0n, 0];
  return {
    isOpen: () => bytes > 0,
    /** Returns the number with its last byte. */
    take: (byte: number): bigint | null => {
      bytes += 1;
      if (bytes > MAX_VARINT_BYTES) throw new BadMessage('a varint of more than ten bytes');
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (byte >= 0x80) return null;
      const whole = value;
      [value, shift, bytes] = [0n, 0n, 0];
      return whole;
    },
  };
}
