import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { DEVNET_CONTRACTS } from '@quittance/tron/usdt';

/** The text that all of a devnet's keys and contract addresses are derived from. These keys are public, and worthless anywhere else. */
const SEED = 'quittance devnet 1';

export interface KeyPair {
  readonly privateKey: Uint8Array;
  readonly account: AccountHex;
}

/** The main network has 27 super representatives. A devnet may have fewer, but never more. */
export const MAX_PRODUCERS = 27;

/** A block producer, and its witness permission key, which signs its blocks. */
export interface Producer {
  readonly account: AccountHex;
  readonly signer: KeyPair;
}

/** Returns a devnet's first producers, in the order of their turns. */
export function producersOf(count: number): Producer[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_PRODUCERS) {
    throw new RangeError(`a devnet has 1 to ${MAX_PRODUCERS} producers, not ${count}`);
  }
  return Array.from({ length: count }, (_, index) => ({
    account: producerAccount(index),
    signer: producerSigner(index, 0),
  }));
}

export function producerAccount(index: number): AccountHex {
  return keyPair(`producer ${index}`).account;
}

/**
 * Returns the key that signs a producer's blocks. As on real networks, some producers (here every second one) have a witness permission key
 * that differs from their account key. `rotation` is the number of times that this key was changed.
 */
export function producerSigner(index: number, rotation: number): KeyPair {
  if (rotation > 0) return keyPair(`producer ${index} witness permission ${rotation}`);
  return keyPair(index % 2 === 1 ? `producer ${index} witness permission` : `producer ${index}`);
}

/** Returns the key that a lying node signs with instead of a producer. */
export function attackerSigner(index: number): KeyPair {
  return keyPair(`attacker ${index}`);
}

/** Key pairs by name. The cache stays small, because there are at most 1,000 candidates, and only tests rotate keys. */
const keyPairs = new Map<string, KeyPair>();

export function keyPairOf(privateKey: Uint8Array): KeyPair {
  return { privateKey, account: accountFromPublicKey(secp256k1.getPublicKey(privateKey)) };
}

/** The account that holds all tokens at genesis and owns their contracts. */
export const PAYER = keyPair('payer');

/** A wallet that has TRX for fees but no tokens, so that its transfers revert. */
export const PENNILESS = keyPair('payer without tokens');

/** An account that has nothing to do with any project. */
export const STRANGER = keyPair('stranger').account;

/** The contracts of every devnet. */
export const { usdt: USDT, fakeUsdt: FAKE_USDT } = DEVNET_CONTRACTS;
export const MULTISEND = contractAccount('multisend');
/** A stranger's contract that fills transaction infos with useless bulk. */
export const NOISE = contractAccount('noise');

/** It takes a third of a millisecond to compute a public key, and one is needed for every block that is read from the log. */
function keyPair(name: string): KeyPair {
  const known = keyPairs.get(name) ?? keyPairOf(seeded(name));
  keyPairs.set(name, known);
  return known;
}

function contractAccount(name: string): AccountHex {
  return bytesToHex(seeded(`contract ${name}`).subarray(12)) as AccountHex;
}

function seeded(name: string): Uint8Array {
  return sha256(utf8ToBytes(`${SEED}: ${name}`));
}
