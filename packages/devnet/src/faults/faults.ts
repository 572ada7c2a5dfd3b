import { type AccountHex, parseAddress } from '@quittance/tron/address';
import { attackerSigner } from '../evm/keys.ts';

/**
 * The node refuses the request, or its response doesn't arrive. `truncated` cuts the JSON in half, `hang` never responds, `reset` breaks
 * the connection, and `slow-drip` never ends. `slow-large-answer` sends the complete and correct response at `bytesPerSecond`.
 * `bracket-bomb` sends `bytes` of `[{},{},…]` or, over gRPC, a list with as many empty messages.
 */
const REFUSING = [
  'error-200',
  'bare-text',
  'html',
  'suspended-403',
  'not-found-404',
  'too-large-413',
  'limited-429',
  'unavailable-503',
  'truncated',
  'hang',
  'reset',
  'slow-drip',
  'slow-large-answer',
  'bracket-bomb',
  'not-allowed-405',
] as const;

/**
 * The node responds with valid JSON that is wrong, as broken nodes do:
 * - `empty-infos`, `missing-info` (the last one) and `swapped-infos` (the first two) change `gettransactioninfobyblocknum`.
 * - `empty-block` removes the transactions from blocks.
 * - `lag` responds with the state from `blocks` blocks ago.
 * - `missing-history` has only the last `blocks` and genesis.
 * - `solid-ahead` reports the head as solid.
 * - `wrong-balance` reports one micro-USDT too little.
 * - `wrong-flags` swaps frozen and free, and replaced and not replaced.
 * - `replayed-producers` shows `producers` instead of the current ones.
 * - `missing-logs` omits logs from `eth_getLogs` (all, or the transfers to `to`), like a node that hasn't indexed them.
 * - `limited-logs` responds to `eth_getLogs` with a provider's error.
 */
const BROKEN = [
  'empty-infos',
  'missing-info',
  'swapped-infos',
  'empty-block',
  'lag',
  'missing-history',
  'solid-ahead',
  'wrong-balance',
  'wrong-flags',
  'replayed-producers',
  'missing-logs',
  'limited-logs',
] as const;

/**
 * The node lies about the contents of a block, both in the block and in its infos, without changing the header; see `lieAbout` in
 * `node-answers.ts`. `fee-split` shows a direct transfer as two: `amountMicro` (default: half of it) to `to`, and the rest to the real
 * recipient.
 */
const LYING = [
  'omitted-transaction',
  'hidden-log',
  'hidden-direct-log',
  'fee-split',
  'forged-log',
  'forged-direct-log',
  'forged-direct-transfer',
  'flipped-result',
  'flipped-info-result',
  'forged-signature',
  'forged-header',
] as const;

/** The node lies, and changes all headers from the first changed block up to the head so that they match the lie; see `reseal.ts`. */
const RESEALING = ['omitted-transaction-resealed', 'forged-block', 'other-network'] as const;

export const FAULT_KINDS = [...REFUSING, ...BROKEN, ...LYING, ...RESEALING] as const;

type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** The paths with the fault, such as `/walletsolidity/getblock`. Default: all paths. */
  readonly paths?: readonly string[];
  /** For `lag`: how many blocks behind the node is (default: 10). For `missing-history`: how many blocks it has (default: 20). */
  readonly blocks?: number;
  /**
   * The range of blocks to lie about, both ends inclusive. Default: all blocks, or for resealing faults all blocks above the current solid
   * block.
   */
  readonly fromBlock?: number;
  readonly toBlock?: number;
  /**
   * The recipient and amount in a forged or missing transfer. Default: the attacker and 1 USDT. If `to` is absent, `forged-log` changes an
   * amount.
   */
  readonly to?: string;
  readonly amountMicro?: bigint;
  /** For `slow-large-answer`. Default: 256 KiB. */
  readonly bytesPerSecond?: number;
  /** For `bracket-bomb`. Default: 32 MiB. */
  readonly bytes?: number;
  /** For `replayed-producers`: the genesis producers (default), or the current ones with the attacker's keys. */
  readonly producers?: 'genesis' | 'attacker';
}

/** A fault whose defaults have been filled in. */
export interface SettledFault extends Fault {
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly recipient: AccountHex;
}

const DEFAULT_LAG_BLOCKS = 10;
const DEFAULT_HISTORY_BLOCKS = 20;

/** Throws a TypeError if `to` isn't an address. */
export function settleFault(fault: Fault, solidNumber: number): SettledFault {
  const { kind, to, fromBlock = isResealing(kind) ? solidNumber + 1 : 1, toBlock = Number.MAX_SAFE_INTEGER } = fault;
  const parsed = to === undefined ? null : parseAddress(to);
  if (parsed?.kind === 'invalid') throw new TypeError(`${to} is not a TRON address: ${parsed.reason}`);
  return { ...fault, fromBlock, toBlock, recipient: parsed?.account ?? attackerSigner(0).account };
}

export function isResealing(kind: FaultKind): boolean {
  return (RESEALING as readonly string[]).includes(kind);
}

export function hasFault(faults: readonly Fault[], wanted: FaultKind): boolean {
  return faults.some(({ kind }) => kind === wanted);
}

export function faultsAt(faults: readonly SettledFault[], path: string): readonly SettledFault[] {
  return faults.filter(({ paths }) => paths === undefined || paths.includes(path));
}

/** Returns how many blocks behind a node with these faults is. */
export function lagBlocksOf(faults: readonly Fault[]): number {
  return Math.max(0, ...faults.map(({ kind, blocks = DEFAULT_LAG_BLOCKS }) => (kind === 'lag' ? blocks : 0)));
}

/** Returns how many blocks below the head a node with these faults has. */
export function historyBlocksOf(faults: readonly Fault[]): number {
  const lost = faults.filter(({ kind }) => kind === 'missing-history');
  return Math.min(Number.MAX_SAFE_INTEGER, ...lost.map(({ blocks = DEFAULT_HISTORY_BLOCKS }) => blocks));
}
