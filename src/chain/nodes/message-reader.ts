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

type Level = { shape: MessageShape; number: number; left: number };

/**
 * Reads a protobuf message from pieces. It holds one field at a time, so a message of any size takes the memory of the largest field that
 * is taken. `push` throws `BadMessage` for what is no message; java-tron writes no groups in those that are read here.
 */
export function createMessageReader(shape: MessageShape, visit: FieldVisitor) {
  const levels: Level[] = [{ shape, number: 0, left: Number.POSITIVE_INFINITY }];
  let varint = { value: 0n, shift: 0n, bytes: 0 };
  let tag: bigint | null = null;
  /** Bytes that are taken, or passed over where `parts` is `null`. */
  let payload: { number: number; left: number; parts: Uint8Array[] | null; isTold: boolean } | null = null;

  const top = () => levels.at(-1) as Level;
  const pathTo = (number: number) => [...levels.slice(1).map((level) => level.number), number];
  const endLevels = () => {
    while (levels.length > 1 && top().left === 0) {
      const { number } = levels.pop() as Level;
      const entered = top().shape[number];
      if (entered !== undefined && 'enter' in entered) entered.end();
    }
  };
  /** So many bytes of the message were read: each message that encloses them is that much shorter. */
  const spend = (bytes: number) => {
    for (const level of levels) {
      level.left -= bytes;
      if (level.left < 0) throw new BadMessage('a field is longer than what it stands in');
    }
  };
  const endPayload = () => {
    const { number, parts, isTold } = payload as NonNullable<typeof payload>;
    payload = null;
    if (isTold) visit(pathTo(number), parts === null ? null : Buffer.concat(parts));
    endLevels();
  };
  const begin = (number: number, wireType: number, size: bigint) => {
    const length = Number(size);
    if (length > top().left) throw new BadMessage('a field is longer than what it stands in');
    const wanted = wireType === DELIMITED ? top().shape[number] : undefined;
    if (wanted !== undefined && 'enter' in wanted) {
      wanted.begin?.();
      levels.push({ shape: wanted.enter, number, left: length });
      endLevels();
      return;
    }
    const isTaken = wanted !== undefined && length <= wanted.take;
    payload = { number, left: length, parts: isTaken ? [] : null, isTold: wanted !== undefined };
    if (length === 0) endPayload();
  };
  const endVarint = () => {
    const { value } = varint;
    varint = { value: 0n, shift: 0n, bytes: 0 };
    if (tag === null) {
      const wireType = Number(value & 7n);
      const number = Number(value >> 3n);
      if (number === 0) throw new BadMessage('field number 0');
      if (wireType === FIXED64 || wireType === FIXED32) begin(number, wireType, wireType === FIXED64 ? 8n : 4n);
      else if (wireType === VARINT || wireType === DELIMITED) tag = value;
      else throw new BadMessage(`wire type ${wireType}`);
      return;
    }
    const [number, wireType] = [Number(tag >> 3n), Number(tag & 7n)];
    tag = null;
    if (wireType === DELIMITED) begin(number, wireType, value);
    else {
      if (top().shape[number] !== undefined) visit(pathTo(number), value);
      endLevels();
    }
  };
  return {
    push: (chunk: Uint8Array) => {
      for (let at = 0; at < chunk.length; ) {
        if (payload !== null) {
          const count = Math.min(payload.left, chunk.length - at);
          // A copy: what is taken must not keep the socket's buffer.
          payload.parts?.push(new Uint8Array(chunk.subarray(at, at + count)));
          payload.left -= count;
          at += count;
          spend(count);
          if (payload.left === 0) endPayload();
          continue;
        }
        const byte = chunk[at] ?? 0;
        at += 1;
        spend(1);
        varint.bytes += 1;
        if (varint.bytes > MAX_VARINT_BYTES) throw new BadMessage('a varint of more than ten bytes');
        varint.value |= BigInt(byte & 0x7f) << varint.shift;
        varint.shift += 7n;
        if (byte < 0x80) endVarint();
      }
    },
    end: () => {
      if (payload !== null || tag !== null || varint.bytes > 0 || levels.length > 1) {
        throw new BadMessage('it ends too early');
      }
    },
  };
}
