import { hexToBytes } from '@noble/hashes/utils.js';

const HEX = /^(?:[0-9a-f]{2})*$/i;

/** Bytes of a hex string without `0x`, or null when it is anything else. Outside data enters here, so it is not assumed to be a string. */
export function bytesFromHex(hex: unknown): Uint8Array | null {
  return typeof hex === 'string' && HEX.test(hex) ? hexToBytes(hex) : null;
}
