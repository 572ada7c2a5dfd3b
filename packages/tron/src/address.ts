import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { base58 } from '@scure/base';

/** An address as people see it: base58check, 34 characters, starting with `T`. Example: `TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t`. */
export type TronAddress = string & { readonly brand: 'TronAddress' };

/** The last 20 bytes of an address as 40 lowercase hex characters, without the `41` prefix, as in logs and calldata. */
export type AccountHex = string & { readonly brand: 'AccountHex' };

export type ParsedAddress =
  | { readonly kind: 'ok'; readonly address: TronAddress; readonly account: AccountHex }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Every 21-byte address with the prefix 0x41 and a 4-byte checksum has exactly 34 base58 characters. */
const ADDRESS_LENGTH = 34;

const PREFIX = 0x41;

/**
 * Reads a base58 address that a person typed or pasted. If the address is refused, the reason is a phrase that describes the problem.
 * Surrounding space isn't trimmed; the caller has to do that.
 */
export function parseAddress(text: string): ParsedAddress {
  if (text === '') return invalid('the address is empty');
  if (/^0x/i.test(text)) return invalid('this is an Ethereum-style address (0x…); a TRON address starts with T');
  if (/^41[0-9a-f]{40}$/i.test(text)) {
    return invalid('this is the hexadecimal form of an address (41…); use the form that starts with T');
  }
  const stranger = /[^1-9A-HJ-NP-Za-km-z]/u.exec(text);
  if (stranger !== null) {
    return invalid(`the character ${JSON.stringify(stranger[0])} never occurs in a TRON address`);
  }
  if (text.length !== ADDRESS_LENGTH) {
    return invalid(`a TRON address has ${ADDRESS_LENGTH} characters, but this text has ${text.length}`);
  }
  if (!text.startsWith('T'))
    return invalid(`a TRON address starts with T, but this text starts with ${text.charAt(0)}`);
  const bytes = base58.decode(text);
  const payload = bytes.subarray(0, 21);
  if (bytes.length !== 25 || bytesToHex(checksumOf(payload)) !== bytesToHex(bytes.subarray(21))) {
    return invalid('the checksum does not match: one character is probably wrong');
  }
  if (payload[0] !== PREFIX) return invalid('this address belongs to a different network');
  return { kind: 'ok', address: text as TronAddress, account: bytesToHex(payload.subarray(1)) as AccountHex };
}

export function accountToAddress(account: AccountHex): TronAddress {
  const payload = hexToBytes(`41${account}`);
  return base58.encode(concatBytes(payload, checksumOf(payload))) as TronAddress;
}

/**
 * Returns the account in a 32-byte topic or ABI word (64 hex characters), or null for any other text. Only the last 20 bytes count: the
 * byte before them may be the prefix 41, and the EVM ignores the others, too.
 */
export function accountFromWord(hex64: string): AccountHex | null {
  return /^[0-9a-f]{64}$/i.test(hex64) ? (hex64.slice(24).toLowerCase() as AccountHex) : null;
}

/** Returns the account in the node's 21-byte form (`41` and 40 hex characters), or null for any other text. */
export function accountFromHex41(hex: string): AccountHex | null {
  return /^41[0-9a-f]{40}$/i.test(hex) ? (hex.slice(2).toLowerCase() as AccountHex) : null;
}

function checksumOf(payload: Uint8Array): Uint8Array {
  return sha256(sha256(payload)).subarray(0, 4);
}

function invalid(reason: string): ParsedAddress {
  return { kind: 'invalid', reason };
}
