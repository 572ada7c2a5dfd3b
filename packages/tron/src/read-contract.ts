import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from './address.ts';
import { hexOf } from './hex.ts';
import { type ScannedField, type ScannedMessage, scanMessage, visitFields } from './scan-message.ts';

/** A transaction's action: its type (Tron.proto `ContractType`), and the call if it certainly calls the given contract. */
export type ReadContract = {
  readonly type: number;
  readonly call: { readonly owner: AccountHex; readonly calldata: Uint8Array } | null;
};

/** Tron.proto `ContractType`: contract creation and contract call. No other type runs code or writes logs. */
export const CREATE_CONTRACT_TYPE = 30;
export const TRIGGER_CONTRACT_TYPE = 31;

/** java-tron's `Any.unpack` refuses a parameter with another type. */
const TRIGGER_TYPE_URL = utf8ToBytes('type.googleapis.com/protocol.TriggerSmartContract');

const ADDRESS_BYTES = 21;
const ADDRESS_PREFIX = 0x41;

/** Field number → wire type of the fields that Tron.proto and smart_contract.proto declare. */
const RAW_FIELDS = new Map([...[3, 8, 14, 18].map((n) => [n, 0] as const), ...[1, 4, 9, 10, 11, 12].map(delimited)]);
const CONTRACT_FIELDS = new Map([[1, 0] as const, [5, 0] as const, ...[2, 3, 4].map(delimited)]);
const ANY_FIELDS = new Map([1, 2].map(delimited));
const TRIGGER_FIELDS = new Map([...[3, 5, 6].map((n) => [n, 0] as const), ...[1, 2, 4].map(delimited)]);

/**
 * Reads a transaction's single contract from raw_data, and the call if it goes to `contract` (21 bytes). Returns null if the bytes are
 * malformed or don't have exactly one contract, which java-tron refuses. The type is read as protobuf-java reads it. The call is read only
 * from unambiguous bytes: with unknown or repeated fields, another type_url, an address with another prefix, or overlong varints, the call
 * is null, whatever a node would do.
 */
export function readContract(rawData: Uint8Array, contract: Uint8Array): ReadContract | null {
  const places: ScannedField[] = [];
  const isRead = visitFields(rawData, 0, rawData.length, (field) => {
    if (field.number === 11 && field.wireType === 2) places.push(field);
    return places.length <= 1;
  });
  const [place] = places;
  if (isRead === null || place === undefined) return null;
  let type = 0;
  const isWhole = visitFields(rawData, place.start, place.end, ({ number, wireType, low32 }) => {
    if (number === 1 && wireType === 0) type = low32;
    return true;
  });
  if (isWhole === null) return null;
  return { type, call: type === TRIGGER_CONTRACT_TYPE ? readPlainCall(rawData, place, contract) : null };
}

function readPlainCall(rawData: Uint8Array, place: ScannedField, contract: Uint8Array): ReadContract['call'] {
  const raw = scanMessage(rawData, 0, rawData.length);
  const message = scanMessage(rawData, place.start, place.end);
  if (raw === null || message === null || !hasOnly(raw, RAW_FIELDS) || !hasOnly(message, CONTRACT_FIELDS)) return null;
  return readCall(rawData, fieldOf(message, 2), contract);
}

function readCall(bytes: Uint8Array, place: ScannedField | undefined, contract: Uint8Array): ReadContract['call'] {
  const any = place === undefined ? null : scanMessage(bytes, place.start, place.end);
  if (any === null || !hasOnly(any, ANY_FIELDS) || !holds(bytes, fieldOf(any, 1), TRIGGER_TYPE_URL)) return null;
  const value = fieldOf(any, 2);
  const trigger = value === undefined ? null : scanMessage(bytes, value.start, value.end);
  if (trigger === null || !hasOnly(trigger, TRIGGER_FIELDS)) return null;
  const [owner, data] = [fieldOf(trigger, 1), fieldOf(trigger, 4)];
  if (!holds(bytes, fieldOf(trigger, 2), contract) || owner === undefined || data === undefined) return null;
  if (owner.end - owner.start !== ADDRESS_BYTES || bytes[owner.start] !== ADDRESS_PREFIX) return null;
  return {
    owner: hexOf(bytes.subarray(owner.start + 1, owner.end)) as AccountHex,
    calldata: bytes.subarray(data.start, data.end),
  };
}

function hasOnly({ fields, isCanonical }: ScannedMessage, known: ReadonlyMap<number, number>): boolean {
  return isCanonical && fields.every(({ number, wireType }) => known.get(number) === wireType);
}

function fieldOf({ fields }: ScannedMessage, wanted: number): ScannedField | undefined {
  return fields.find(({ number }) => number === wanted);
}

function holds(bytes: Uint8Array, place: ScannedField | undefined, wanted: Uint8Array): boolean {
  if (place === undefined || place.end - place.start !== wanted.length) return false;
  return wanted.every((byte, index) => bytes[place.start + index] === byte);
}

function delimited(number: number) {
  return [number, 2] as const;
}
