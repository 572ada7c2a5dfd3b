import { type AccountHex, accountFromHex41, accountFromWord, type TronAddress } from './address.ts';
import { hexOf } from './hex.ts';

/**
 * Tether's USDT on each network, with 6 decimals. Always compare `account` and never a symbol, because there are fake tokens named USDT.
 */
export const USDT_CONTRACTS = {
  mainnet: {
    address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' as TronAddress,
    account: 'a614f803b6fd780986a42c78ec9c7f77e6ded13c' as AccountHex,
  },
  nile: {
    address: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' as TronAddress,
    account: 'eca9bc828a3005b9a3b909f2cc5c2a54794de05f' as AccountHex,
  },
} as const;

/** The contracts of every devnet: its USDT, and a token that only has the same name. */
export const DEVNET_CONTRACTS = {
  usdt: 'f2250f8f512139b6e9b0c8cef1684d0d808883bf' as AccountHex,
  fakeUsdt: '2dd5d3f1a2063e8d2732aa2d4609dc5d68e08e2d' as AccountHex,
} as const;

/** keccak256("Transfer(address,address,uint256)"). */
export const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** `transfer(address,uint256)` and `transferFrom(address,address,uint256)`. */
const TRANSFER_SELECTOR = 'a9059cbb';
const TRANSFER_FROM_SELECTOR = '23b872dd';

/** A selector and three words, as in `transferFrom`. */
const MAX_CALL_BYTES = 4 + 3 * 32;

const MAX_UINT256 = (1n << 256n) - 1n;

/** A Transfer event. `value` is in the token's smallest unit (for USDT, millionths) and may be zero. */
export interface TransferLog {
  readonly contract: AccountHex;
  readonly from: AccountHex;
  readonly to: AccountHex;
  readonly value: bigint;
}

/** A decoded call. `from` is null for `transfer`, where the caller pays. */
export interface TransferCall {
  readonly from: AccountHex | null;
  readonly to: AccountHex;
  readonly value: bigint;
}

/**
 * Reads a log as a Transfer event from any contract. Returns null if it's another event or malformed. Example:
 * `{"address":"d53a…919d","topics":["ddf2…b3ef","0000…5bdf","0000…7547"],"data":"0000…0f4240"}`. A Transfer has exactly three topics and 32
 * bytes of data. The address normally has 20 bytes, but the 21-byte form is accepted as well.
 */
export function decodeTransferLog(log: {
  readonly address?: unknown;
  readonly topics?: unknown;
  readonly data?: unknown;
}): TransferLog | null {
  const { address, topics, data } = log;
  if (typeof address !== 'string' || typeof data !== 'string' || !Array.isArray(topics)) return null;
  const [topic, fromWord, toWord]: unknown[] = topics;
  if (topics.length !== 3 || typeof topic !== 'string' || topic.toLowerCase() !== TRANSFER_TOPIC) return null;
  if (typeof fromWord !== 'string' || typeof toWord !== 'string') return null;
  const contract = accountFromHex41(address.length === 40 ? `41${address}` : address);
  const [from, to, value] = [accountFromWord(fromWord), accountFromWord(toWord), wordValue(data)];
  if (contract === null || from === null || to === null || value === null) return null;
  return { contract, from, to, value };
}

/** Returns the calldata (hex) of `transfer(to, value)`. Throws if the value isn't a uint256. */
export function encodeTransferCall(to: AccountHex, value: bigint): string {
  return TRANSFER_SELECTOR + accountWord(to) + uintWord(value);
}

/** Returns the calldata (hex) of `transferFrom(from, to, value)`. Throws if the value isn't a uint256. */
export function encodeTransferFromCall(from: AccountHex, to: AccountHex, value: bigint): string {
  return TRANSFER_FROM_SELECTOR + accountWord(from) + accountWord(to) + uintWord(value);
}

/**
 * Reads calldata (hex) of `transfer` or `transferFrom`. Returns null for anything else. Bytes after the arguments are ignored, as in the
 * EVM.
 */
export function decodeTransferCall(data: string): TransferCall | null {
  const selector = data.slice(0, 8).toLowerCase();
  if (selector !== TRANSFER_SELECTOR && selector !== TRANSFER_FROM_SELECTOR) return null;
  const hasFrom = selector === TRANSFER_FROM_SELECTOR;
  const rest = hasFrom ? data.slice(72) : data.slice(8);
  const from = hasFrom ? accountFromWord(data.slice(8, 72)) : null;
  const [to, value] = [accountFromWord(rest.slice(0, 64)), wordValue(rest.slice(64, 128))];
  if (to === null || value === null || (hasFrom && from === null)) return null;
  return { from, to, value };
}

/** Like `decodeTransferCall`, but reads the calldata as bytes. Only the arguments are read, however long the calldata is. */
export function decodeTransferCallBytes(data: Uint8Array): TransferCall | null {
  return decodeTransferCall(hexOf(data.subarray(0, MAX_CALL_BYTES)));
}

function wordValue(hex: string): bigint | null {
  return /^[0-9a-f]{64}$/i.test(hex) ? BigInt(`0x${hex}`) : null;
}

function accountWord(account: AccountHex): string {
  return account.padStart(64, '0');
}

function uintWord(value: bigint): string {
  if (value < 0n || value > MAX_UINT256) throw new RangeError(`${value} is not a uint256`);
  return value.toString(16).padStart(64, '0');
}
