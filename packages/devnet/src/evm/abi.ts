import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountFromWord } from '@quittance/tron/address';
import type { Journal } from './state.ts';

/** A log in `gettransactioninfobyid`: a 20-byte address and 32-byte topics, all in hex. */
export interface LogJson {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** The parts of a transaction's info that can be bulky. */
export const NOISE_SHAPES = ['log', 'contractResult', 'internal_transactions'] as const;

/** Useless bulk that takes about this many bytes of JSON. It's generated only on request. */
export interface Noise {
  readonly shape: (typeof NOISE_SHAPES)[number];
  readonly bytes: number;
}

/** The outcome of a contract call; null means that the call reverted. `output` is hex. */
export type CallOutcome = {
  readonly output: string;
  readonly logs: readonly LogJson[];
  readonly energy: number;
  /** The other contracts that the call called, in order. */
  readonly calls?: readonly AccountHex[];
  readonly noise?: Noise;
} | null;

export interface CallContext {
  readonly state: Journal;
  readonly contract: AccountHex;
  readonly caller: AccountHex;
  /** The ABI words after the selector, 64 hex characters each. */
  readonly words: readonly string[];
}

/** A function of a native contract, with its ABI. Inputs are written `name type`. */
export interface ContractFunction {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly mutability: 'View' | 'Nonpayable';
  readonly run: (context: CallContext) => CallOutcome;
}

/** Returns `name(type,type)`, the text whose hash contains the selector. */
export function signatureOf({ name, inputs }: ContractFunction): string {
  return `${name}(${inputs.map((input) => input.split(' ')[1]).join(',')})`;
}

/** Returns the first four bytes of a function signature's hash, in hex. */
export function selectorOf(signature: string): string {
  return bytesToHex(keccak_256(utf8ToBytes(signature))).slice(0, 8);
}

/** Returns an event signature's hash in hex. */
export function topicOf(signature: string): string {
  return bytesToHex(keccak_256(utf8ToBytes(signature)));
}

/** Returns the words after the selector. Bytes after the last whole word are ignored. */
export function wordsOf(data: string): string[] {
  return data.slice(8).match(/.{64}/g) ?? [];
}

export function accountAt(words: readonly string[], index: number): AccountHex | null {
  return accountFromWord(words[index] ?? '');
}

export function uintAt(words: readonly string[], index: number): bigint | null {
  const word = words[index];
  return word === undefined ? null : BigInt(`0x${word}`);
}

export function uintWord(value: bigint | number): string {
  return value.toString(16).padStart(64, '0');
}

export function accountWord(account: AccountHex): string {
  return account.padStart(64, '0');
}

export function stringOutput(text: string): string {
  const hex = bytesToHex(utf8ToBytes(text));
  return uintWord(32) + uintWord(hex.length / 2) + hex.padEnd(Math.ceil(hex.length / 64) * 64, '0');
}
