/**
 * A field of a message, without copying its bytes. For wire type 2, the value is between `start` and `end`. For wire type 0, `low32` is the
 * low half of the value.
 */
export type ScannedField = {
  readonly number: number;
  readonly wireType: number;
  readonly start: number;
  readonly end: number;
  readonly low32: number;
};

/**
 * `isCanonical` means that every encoder writes these fields as these bytes, and that they can be read in only one way: field numbers
 * ascend without repetition, varints are as short as possible, and every wire type is 0 or 2.
 */
export type ScannedMessage = { readonly fields: readonly ScannedField[]; readonly isCanonical: boolean };

/** The supported protobuf wire types: varint, 8 bytes, length-delimited, the start and end of a group, 4 bytes. */
const [VARINT, FIXED64, DELIMITED, GROUP, GROUP_END, FIXED32] = [0, 1, 2, 3, 4, 5];

/** A 64-bit varint has at most ten bytes of seven bits each. */
const MAX_VARINT_BYTES = 10;

/** No java-tron message has this many fields. It limits the list, whatever the bytes are. */
const MAX_FIELDS = 1_000;

/** The default recursion limit of protobuf-java (`CodedInputStream`), up to which java-tron preserves unknown groups. */
const MAX_GROUP_DEPTH = 100;

/**
 * Finds the top-level fields of the message in `bytes[start, end)`, except groups, without copying or bigints. Returns null for malformed
 * bytes: a length beyond the end, a varint over ten bytes, an unclosed group, field number 0, or more than 1,000 fields.
 */
export function scanMessage(bytes: Uint8Array, start: number, end: number): ScannedMessage | null {
  const fields: ScannedField[] = [];
  let previous = 0;
  let isCanonical = true;
  const isMinimal = visitFields(bytes, start, end, (field) => {
    if (field.number <= previous || field.wireType === FIXED32 || field.wireType === FIXED64) isCanonical = false;
    previous = field.number;
    return fields.push(field) <= MAX_FIELDS;
  });
  return isMinimal === null ? null : { fields, isCanonical: isCanonical && isMinimal };
}

/**
 * Calls `visit` with each top-level field of the message in order, except groups. Their number isn't limited, because a transaction's
 * sender may have appended thousands. Returns whether the bytes could come from an encoder (no groups, no overlong varints). Returns null
 * for malformed bytes, like `scanMessage`, and if `visit` returns `false`.
 */
export function visitFields(
  bytes: Uint8Array,
  start: number,
  end: number,
  visit: (field: ScannedField) => boolean | undefined,
): boolean | null {
  const cursor = { at: start, low32: 0, isMinimal: true };
  let groups = 0;
  let hasGroups = false;
  while (cursor.at < end) {
    if (!readVarint(bytes, end, cursor)) return null;
    const tag = cursor.low32;
    const number = tag >>> 3;
    const wireType = tag & 7;
    if (number === 0) return null;
    if (wireType === GROUP || wireType === GROUP_END) {
      hasGroups = true;
      groups += wireType === GROUP ? 1 : -1;
      if (groups < 0 || groups > MAX_GROUP_DEPTH) return null;
      continue;
    }
    const from = readValue(bytes, end, cursor, wireType);
    if (from < 0) return null;
    if (groups > 0) continue;
    if (visit({ number, wireType, start: from, end: cursor.at, low32: cursor.low32 }) === false) return null;
  }
  return groups > 0 ? null : cursor.isMinimal && !hasGroups;
}

type Cursor = { at: number; low32: number; isMinimal: boolean };

/** Moves the cursor past a value. Returns the offset at which the value starts, or -1 if it's malformed. */
function readValue(bytes: Uint8Array, end: number, cursor: Cursor, wireType: number): number {
  const start = cursor.at;
  if (wireType === VARINT) return readVarint(bytes, end, cursor) ? start : -1;
  if (wireType === DELIMITED) {
    if (!readVarint(bytes, end, cursor)) return -1;
    const from = cursor.at;
    cursor.at += cursor.low32;
    return cursor.at > end ? -1 : from;
  }
  if (wireType !== FIXED32 && wireType !== FIXED64) return -1;
  cursor.at += wireType === FIXED32 ? 4 : 8;
  return cursor.at > end ? -1 : start;
}

function readVarint(bytes: Uint8Array, end: number, cursor: Cursor): boolean {
  let low32 = 0;
  for (let index = 0; index < MAX_VARINT_BYTES; index += 1) {
    const byte = cursor.at < end ? bytes[cursor.at] : undefined;
    if (byte === undefined) return false;
    cursor.at += 1;
    if (index < 5) low32 |= (byte & 0x7f) << (7 * index);
    if (byte < 0x80) {
      if (byte === 0 && index > 0) cursor.isMinimal = false;
      cursor.low32 = low32 >>> 0;
      return true;
    }
  }
  return false;
}
