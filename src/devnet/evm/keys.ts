import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '../../tron/address.ts';
import { accountFromPublicKey } from '../../tron/public-key.ts';
import { DEVNET_CONTRACTS } from '../../tron/usdt.ts';

/** Every key and contract address of a devnet derives from this text: they are public, and worth nothing anywhere else. */
const SEED = 'quittance devnet 1';

export interface KeyPair {
  readonly privateKey: Uint8Array;
  readonly account: AccountHex;
}

/** The network has 27 super representatives; a devnet may have fewer, never more. */
export const MAX_PRODUCERS = 27;

/** A block producer and the key of its witness permission, which signs its blocks. */
export interface Producer {
  readonly account: AccountHex;
  readonly signer: KeyPair;
}

/** The first producers of a devnet, in the order of their turns. */
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
 * The key that signs a producer's blocks. Like many real ones, every second producer has a witness permission key that is not
 * its account's key; `rotation` counts the changes of that key.
 */
export function producerSigner(index: number, rotation: number): KeyPair {
  if (rotation > 0) return keyPair(`producer ${index} witness permission ${rotation}`);
  return keyPair(index % 2 === 1 ? `producer ${index} witness permission` : `producer ${index}`);
}

/** The key with which a lying node signs in place of a producer. */
export function attackerSigner(index: number): KeyPair {
  return keyPair(`attacker ${index}`);
}

/** By name; candidates are at most 1,000 and rotations are made by tests. */
const keyPairs = new Map<string, KeyPair>();

/** The key pair of a 32-byte private key. */
export function keyPairOf(privateKey: Uint8Array): KeyPair {
  return { privateKey, account: accountFromPublicKey(secp256k1.getPublicKey(privateKey)) };
}

/** The account that holds all tokens at genesis and owns their contracts. */
export const PAYER = keyPair('payer');

/** A wallet that has TRX for fees, and no token: what it sends reverts. */
export const PENNILESS = keyPair('payer without tokens');

/** An account that has nothing to do with any project. */
export const STRANGER = keyPair('stranger').account;

/** The contracts of every devnet. */
export const { usdt: USDT, fakeUsdt: FAKE_USDT } = DEVNET_CONTRACTS;
export const MULTISEND = contractAccount('multisend');
/** A stranger's contract that fills infos with bulk. */
export const NOISE = contractAccount('noise');

/** Making a public key takes a third of a millisecond, and every block read from the log needs one. */
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
