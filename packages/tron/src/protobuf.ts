import { concatBytes } from '@noble/hashes/utils.js';

/** A field of a decoded message. `bytes` is wire type 2 (bytes, strings, messages), `varint` wire type 0. */
export type ProtobufField =
  | { readonly kind: 'varint'; readonly number: number; readonly value: bigint }
  | { readonly kind: 'bytes'; readonly number: number; readonly value: Uint8Array };

/** A 64-bit varint has at most ten bytes of seven bits each. */
const MAX_VARINT_BYTES = 10;

/** The java-tron messages read here have fewer than 20 fields, and the largest repeated field (signatures) has 5 values. */
const MAX_FIELDS = 1_000;

const UINT64_MASK = (1n << 64n) - 1n;

/**
 * Reads the top-level fields of a message in wire order. Fixed-width fields are skipped, because none of the messages read here has any.
 * Returns null for malformed bytes: a length beyond the end, a varint over 64 bits, a group, field number 0, or more than 1,000 fields.
 */
export function readMessage(bytes: Uint8Array): ProtobufField[] | null {
  const fields: ProtobufField[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    if (fields.length >= MAX_FIELDS) return null;
    const tag = readVarint(bytes, offset);
    if (tag === null || tag.value < 8n || tag.value > 0xffff_ffffn) return null;
    const number = Number(tag.value >> 3n);
    const wireType = Number(tag.value & 7n);
    offset = tag.end;
    if (wireType === 1 || wireType === 5) {
      offset += wireType === 1 ? 8 : 4;
      if (offset > bytes.length) return null;
      continue;
    }
    if (wireType !== 0 && wireType !== 2) return null;
    const head = readVarint(bytes, offset);
    if (head === null) return null;
    if (wireType === 0) {
      fields.push({ kind: 'varint', number, value: head.value });
      offset = head.end;
      continue;
    }
    if (head.value > BigInt(bytes.length - head.end)) return null;
    offset = head.end + Number(head.value);
    fields.push({ kind: 'bytes', number, value: bytes.subarray(head.end, offset) });
  }
  return fields;
}

/** Returns the last value of a varint field as an int64, or 0 if the field is absent (proto3 omits zeros). */
export function int64Field(fields: readonly ProtobufField[], number: number): bigint {
  const field = fields.findLast((candidate) => candidate.kind === 'varint' && candidate.number === number);
  return field?.kind === 'varint' ? BigInt.asIntN(64, field.value) : 0n;
}

/** Returns the last value of a length-delimited field, or an empty value if the field is absent. */
export function bytesField(fields: readonly ProtobufField[], number: number): Uint8Array {
  const field = fields.findLast((candidate) => candidate.kind === 'bytes' && candidate.number === number);
  return field?.kind === 'bytes' ? field.value : new Uint8Array(0);
}

/** Returns every value of a repeated length-delimited field, in order. */
export function repeatedBytesField(fields: readonly ProtobufField[], number: number): Uint8Array[] {
  return fields.flatMap((field) => (field.kind === 'bytes' && field.number === number ? [field.value] : []));
}

/** Encodes an int64 or enum field. As in proto3, zero is omitted. Negative values take ten bytes. */
export function writeInt64(number: number, value: bigint | number): Uint8Array {
  const wide = BigInt(value);
  if (BigInt.asIntN(64, wide) !== wide) throw new RangeError(`protobuf field ${number}: ${wide} is not an int64`);
  return wide === 0n ? new Uint8Array(0) : concatBytes(writeVarint(BigInt(number << 3)), writeVarint(wide));
}

/** Encodes a bytes field. As in proto3, an empty value is omitted. */
export function writeBytes(number: number, value: Uint8Array): Uint8Array {
  return value.length === 0 ? value : writeElement(number, value);
}

/** Encodes an element of a repeated field, or a message, even if it's empty. */
export function writeElement(number: number, value: Uint8Array): Uint8Array {
  return concatBytes(writeVarint(BigInt((number << 3) | 2)), writeVarint(BigInt(value.length)), value);
}

function readVarint(bytes: Uint8Array, start: number): { value: bigint; end: number } | null {
  let value = 0n;
  for (let index = 0; index < MAX_VARINT_BYTES; index += 1) {
    const byte = bytes[start + index];
    if (byte === undefined) return null;
    value |= BigInt(byte & 0x7f) << BigInt(7 * index);
    if (byte < 0x80) return value > UINT64_MASK ? null : { value, end: start + index + 1 };
  }
  return null;
}

function writeVarint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
