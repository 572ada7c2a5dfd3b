import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';

/**
 * A call from one contract to another, as it appears in their transaction's info. If the call transfers no value, `callValueInfo` is empty.
 */
export interface InternalTransactionJson {
  readonly hash: string;
  readonly caller_address: string;
  readonly transferTo_address: string;
  readonly callValueInfo: readonly object[];
  readonly note: string;
}

export function internalTransaction({
  id,
  index,
  caller,
  called,
}: {
  readonly id: string;
  readonly index: number;
  readonly caller: AccountHex;
  readonly called: AccountHex;
}): InternalTransactionJson {
  return {
    // java-tron hashes the call. Clients don't use this hash, but it must be unique.
    hash: bytesToHex(sha256(utf8ToBytes(`${id} ${index}`))),
    caller_address: `41${caller}`,
    transferTo_address: `41${called}`,
    callValueInfo: [{}],
    note: bytesToHex(utf8ToBytes('call')),
  };
}
