import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { type ProtobufField, readMessage, writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { exactInteger, Verbatim } from './json-text.ts';

/** How java-tron's JSON shows a field: `bytes` are hex, a list of names is an enum, and an object is a message. */
export type Kind = 'integer' | 'boolean' | 'bytes' | 'text' | readonly string[] | { readonly message: Schema };

interface Field {
  readonly number: number;
  readonly kind: Kind;
  readonly isList: boolean;
}

/** A message's fields by their JSON names, in field number order. */
export type Schema = Readonly<Record<string, Field>>;

export function field(number: number, kind: Kind): Field {
  return { number, kind, isList: false };
}

export function list(number: number, kind: Kind): Field {
  return { number, kind, isList: true };
}

/** Returns the bytes of a message that is given in the node's JSON form. Members that aren't in the schema are ignored. */
export function encodeMessage(schema: Schema, json: object): Uint8Array {
  const values = json as Readonly<Record<string, unknown>>;
  const parts: Uint8Array[] = [];
  for (const [name, { number, kind, isList }] of Object.entries(schema)) {
    const value = plain(values[name]);
    if (value === undefined) continue;
    if (!isList) parts.push(encodeField(number, kind, value, false));
    else parts.push(...encodeList(number, kind, value as readonly unknown[]));
  }
  return concatBytes(...parts);
}

/** Returns a message's known fields as JSON, or null if the bytes are malformed. Zero and empty fields are omitted. */
export function decodeMessage(schema: Schema, bytes: Uint8Array): Record<string, unknown> | null {
  const fields = readMessage(bytes);
  if (fields === null) return null;
  const json: Record<string, unknown> = {};
  for (const [name, { number, kind, isList }] of Object.entries(schema)) {
    const values = fields.filter((each) => each.number === number && each.kind === wireKind(kind));
    const shown = values.map((each) => decodeField(kind, each));
    const last = shown.at(-1);
    if (isList && shown.length > 0) json[name] = shown;
    else if (last !== undefined && last !== '' && last !== 0 && last !== false) json[name] = last;
  }
  return json;
}

/** Equal neighbours are encoded only once, because a list can have a hundred thousand of them. */
function* encodeList(number: number, kind: Kind, values: readonly unknown[]): Generator<Uint8Array> {
  let previous: { readonly value: unknown; readonly bytes: Uint8Array } | null = null;
  for (const value of values) {
    if (previous === null || previous.value !== value) {
      previous = { value, bytes: encodeField(number, kind, plain(value), true) };
    }
    yield previous.bytes;
  }
}

function encodeField(number: number, kind: Kind, value: unknown, isElement: boolean): Uint8Array {
  const write = isElement ? writeElement : writeBytes;
  if (kind === 'integer') return writeInt64(number, BigInt(value as number));
  if (kind === 'boolean') return writeInt64(number, value === true ? 1 : 0);
  if (kind === 'text') return write(number, utf8ToBytes(value as string));
  if (kind === 'bytes') return write(number, Uint8Array.from(Buffer.from(value as string, 'hex')));
  // A message is written even if it's empty.
  if ('message' in kind) return writeElement(number, encodeMessage(kind.message, value as object));
  const code = kind.indexOf(value as string);
  if (code < 0) throw new Error(`${value} is not one of ${kind.join(', ')}`);
  return writeInt64(number, code);
}

function decodeField(kind: Kind, { value }: ProtobufField): unknown {
  if (typeof value === 'bigint') {
    if (kind === 'boolean') return value !== 0n;
    const integer = BigInt.asIntN(64, value);
    // An enum value that java-tron doesn't know is shown as its number.
    return Array.isArray(kind) ? enumName(kind, Number(integer)) : exactInteger(integer);
  }
  if (kind === 'text') return Buffer.from(value).toString('utf8');
  if (typeof kind === 'object' && 'message' in kind) return decodeMessage(kind.message, value) ?? {};
  return Buffer.from(value).toString('hex');
}

/** An enum's default value, which is its first one, is omitted. */
function enumName(names: readonly string[], code: number): string | number {
  return code === 0 ? '' : (names[code] ?? code);
}

function wireKind(kind: Kind): ProtobufField['kind'] {
  return kind === 'integer' || kind === 'boolean' || Array.isArray(kind) ? 'varint' : 'bytes';
}

function plain(value: unknown): unknown {
  return value instanceof Verbatim ? value.toJSON() : value;
}
