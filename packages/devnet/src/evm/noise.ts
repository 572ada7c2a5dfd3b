import { longHex, longList } from '../wire/json-text.ts';
import {
  type CallOutcome,
  type ContractFunction,
  NOISE_SHAPES,
  type Noise,
  selectorOf,
  signatureOf,
  topicOf,
  uintAt,
  uintWord,
} from './abi.ts';
import { internalTransaction } from './internal-transaction.ts';
import { NOISE, USDT } from './keys.ts';

const MAX_NOISE_BYTES = 64 * 1024 * 1024;

/** A measurement on a real java-tron: 345 calls, each of which returned 38,400 bytes and used 6,622 energy, made 26.6 MB of JSON. */
const [ENERGY, ENERGY_BYTES] = [345 * 6_622, 26_604_332];

/**
 * A stranger's attack on programs that read transaction infos: it produces `bytes` of JSON in the given shape (an index into
 * `NOISE_SHAPES`).
 */
const NOISE_FUNCTION: ContractFunction = {
  name: 'noise',
  inputs: ['bytes uint256', 'shape uint256'],
  outputs: [],
  mutability: 'Nonpayable',
  run: ({ words }): CallOutcome => {
    const [bytes, shape] = [Number(uintAt(words, 0) ?? 0n), NOISE_SHAPES[Number(uintAt(words, 1) ?? 0n)]];
    if (shape === undefined || bytes < 1 || bytes > MAX_NOISE_BYTES) return null;
    return { output: '', logs: [], noise: { shape, bytes }, energy: Math.ceil((bytes * ENERGY) / ENERGY_BYTES) };
  },
};

export const NOISE_FUNCTIONS: readonly ContractFunction[] = [NOISE_FUNCTION];

/** Returns the calldata (hex) of `noise(bytes, shape)`. */
export function encodeNoiseCall({ shape, bytes }: Noise): string {
  return selectorOf(signatureOf(NOISE_FUNCTION)) + uintWord(bytes) + uintWord(NOISE_SHAPES.indexOf(shape));
}

/** Returns the fields of a transaction's info that contain the bulk. */
export function noiseFields({ shape, bytes }: Noise, id: string): object {
  const hex = longHex('5a', Math.ceil(bytes / 2));
  if (shape === 'log') return { log: [{ address: NOISE, topics: [topicOf('Noise(bytes)')], data: hex }] };
  if (shape === 'contractResult') return { contractResult: [hex] };
  const element = internalTransaction({ id, index: 0, caller: NOISE, called: USDT });
  return { internal_transactions: longList(element, Math.ceil(bytes / (JSON.stringify(element).length + 1))) };
}
