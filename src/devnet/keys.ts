import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountFromPublicKey } from '../tron/address.ts';

/** Every key and contract address of a devnet derives from this text: they are public, and worth nothing anywhere else. */
const SEED = 'quittance devnet 1';

export interface KeyPair {
  readonly privateKey: Uint8Array;
  readonly account: AccountHex;
}

/** A block producer. Like many real ones, every second producer signs with a witness permission key that is not its account's key. */
export interface Producer {
  readonly account: AccountHex;
  readonly signer: KeyPair;
}

/** The network has 27 super representatives; a devnet may have fewer, never more. */
const MAX_PRODUCERS = 27;

/** The producers of a devnet, in the order of their turns. */
export function producersOf(count: number): Producer[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_PRODUCERS) {
    throw new RangeError(`a devnet has 1 to ${MAX_PRODUCERS} producers, not ${count}`);
  }
  return Array.from({ length: count }, (_, index) => {
    const owner = keyPair(`producer ${index}`);
    const signer = index % 2 === 1 ? keyPair(`producer ${index} witness permission`) : owner;
    return { account: owner.account, signer };
  });
}

/** The key pair of a 32-byte private key. */
export function keyPairOf(privateKey: Uint8Array): KeyPair {
  return { privateKey, account: accountFromPublicKey(secp256k1.getPublicKey(privateKey)) };
}

/** The account that holds everything at genesis and owns the token contracts. */
export const PAYER = keyPair('payer');

/** The contracts of every devnet. */
export const USDT = contractAccount('usdt');
export const FAKE_USDT = contractAccount('fake usdt');
export const MULTISEND = contractAccount('multisend');

function keyPair(name: string): KeyPair {
  return keyPairOf(seeded(name));
}

function contractAccount(name: string): AccountHex {
  return bytesToHex(seeded(`contract ${name}`).subarray(12)) as AccountHex;
}

function seeded(name: string): Uint8Array {
  return sha256(utf8ToBytes(`${SEED}: ${name}`));
}
