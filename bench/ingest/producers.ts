import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import type { AccountHex } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';

/** A block producer. `signer` is the account of the key that signs its blocks. */
export type Producer = { account: AccountHex; signer: AccountHex; privateKey: Uint8Array };

/** The producers in the order of their turns. Every second one signs with a witness permission key, which isn't its account's key. */
export function makeProducers(count: number): Producer[] {
  return Array.from({ length: count }, (_, index) => {
    const owner = keyOf(`producer ${index}`);
    const privateKey = index % 2 === 1 ? keyOf(`witness permission ${index}`) : owner;
    return { account: accountOf(owner), signer: accountOf(privateKey), privateKey };
  });
}

function keyOf(name: string): Uint8Array {
  return createHash('sha256').update(`quittance bench ingest: ${name}`).digest();
}

function accountOf(privateKey: Uint8Array): AccountHex {
  return accountFromPublicKey(secp256k1.getPublicKey(privateKey));
}
