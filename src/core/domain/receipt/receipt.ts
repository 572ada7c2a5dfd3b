import { parseAddress } from '@quittance/tron/address';
import { parseAmount } from '../money.ts';
import { isNetwork, type Network, WIRE_ASSET, WIRE_NETWORK } from '../network.ts';

/**
 * A statement about a paid invoice. Third parties can see it, so it contains nothing that leads back to the invoice. It also doesn't depend
 * on when it was requested.
 */
export type Receipt = {
  version: 1;
  /** The origin that payers see, such as `https://pay.example.com`. */
  issuer: string;
  merchant: string;
  network: typeof WIRE_NETWORK;
  /** Names the TRON network, because `network` has the same value for all TRON networks. */
  chain: Network;
  asset: typeof WIRE_ASSET;
  contract: string;
  /** For example `25.000009`. */
  amount: string;
  from: string;
  to: string;
  transaction: ReceiptTransaction;
};

/** `txId` and `blockId` are 64 hex characters each. `blockTime` is ISO 8601 with milliseconds. */
type ReceiptTransaction = {
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: string;
};

export type ReadReceipt = { kind: 'ok'; receipt: Receipt } | { kind: 'invalid'; reason: string };

/** Parses a value that may be a receipt. Every member must be valid, and others aren't allowed. `reason` is a phrase. */
export function readReceipt(value: unknown): ReadReceipt {
  if (!isObject(value)) return invalid('contains no receipt');
  const { version } = value;
  if (version !== 1) {
    return invalid(
      typeof version === 'number'
        ? `contains a receipt of version ${version}, but this release reads version 1: use a newer release`
        : 'contains no receipt',
    );
  }
  const problem = problemOf(value, MEMBERS) ?? problemOf(value['transaction'], TRANSACTION_MEMBERS);
  return problem === null ? { kind: 'ok', receipt: value as Receipt } : invalid(problem);
}

function invalid(reason: string): ReadReceipt {
  return { kind: 'invalid', reason };
}

type Member = (value: unknown) => boolean;

const isHash: Member = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isAddress: Member = (value) => typeof value === 'string' && parseAddress(value).kind === 'ok';
const isCount: Member = (value) => Number.isSafeInteger(value) && (value as number) >= 0;

/** Matches an origin, without a path, query or user. */
const ORIGIN = /^https?:\/\/[^\s/?#@]{1,255}$/;
/** A project name's maximum length in characters. */
const MAX_MERCHANT = 100;

const MEMBERS: Record<keyof Receipt, Member> = {
  version: (value) => value === 1,
  issuer: (value) => typeof value === 'string' && value.isWellFormed() && ORIGIN.test(value),
  merchant: isName,
  network: (value) => value === WIRE_NETWORK,
  chain: (value) => typeof value === 'string' && isNetwork(value),
  asset: (value) => value === WIRE_ASSET,
  contract: isAddress,
  amount: (value) => typeof value === 'string' && parseAmount(value).kind === 'ok',
  from: isAddress,
  to: isAddress,
  transaction: isObject,
};

const TRANSACTION_MEMBERS: Record<keyof ReceiptTransaction, Member> = {
  txId: isHash,
  logIndex: isCount,
  blockNumber: isCount,
  blockId: isHash,
  blockTime: isTime,
};

function problemOf(value: unknown, members: Record<string, Member>): string | null {
  if (!isObject(value)) return 'contains no receipt';
  const wrong = Object.entries(members).find(([name, isRight]) => !isRight(value[name]));
  if (wrong !== undefined) return `contains a receipt whose ${wrong[0]} is missing or not valid`;
  const isForeign = Object.keys(value).length !== Object.keys(members).length;
  return isForeign ? 'contains a receipt with members that Quittance does not write' : null;
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || !value.isWellFormed()) return false;
  const length = [...value].length;
  return length >= 1 && length <= MAX_MERCHANT;
}

function isTime(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  const time = new Date(value);
  return !Number.isNaN(time.getTime()) && time.toISOString() === value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
