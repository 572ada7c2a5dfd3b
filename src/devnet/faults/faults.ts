import { type AccountHex, parseAddress } from '../../tron/address.ts';
import { attackerSigner } from '../evm/keys.ts';

/**
 * It refuses, or its answer does not arrive: `truncated` cuts the JSON in half, `hang` never answers, `reset` breaks the connection,
 * `slow-drip` never ends, `slow-large-answer` sends the whole truth at `bytesPerSecond`, and `bracket-bomb` sends `bytes` of
 * `[{},{},…]` (by gRPC, a list of so many empty messages).
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
 * It answers sound JSON that is wrong, as broken nodes do: `empty-infos`, `missing-info` (the last one) and `swapped-infos` (the
 * first two) change `gettransactioninfobyblocknum`, `empty-block` takes the transactions out of blocks, `lag` answers as of
 * `blocks` ago, `missing-history` has only the last `blocks` and genesis, `solid-ahead` calls the head solid, `wrong-balance`
 * answers a micro too little, `wrong-flags` exchanges frozen and free, replaced and not replaced, `replayed-producers` shows `producers` instead of the present ones, `missing-logs` leaves logs out of `eth_getLogs` (all,
 * or the transfers to `to`), as a node without their index does, and `limited-logs` answers it with a provider's error.
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
 * It lies about what stands in a block, in the block's answer and its infos alike, but leaves the header as it is: see `lies.ts`.
 * `fee-split` shows a direct transfer as two, of `amountMicro` (a half when absent) to `to` and of the rest to the true recipient.
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

/** It lies and makes the headers fit, from the first changed block to the head: see `reseal.ts`. */
const RESEALING = ['omitted-transaction-resealed', 'forged-block', 'other-network'] as const;

/** Every way in which a node can be sick. */
export const FAULT_KINDS = [...REFUSING, ...BROKEN, ...LYING, ...RESEALING] as const;

type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Only these paths are sick (`/walletsolidity/getblock`); all are when absent. */
  readonly paths?: readonly string[];
  /** For `lag` how far behind, 10 when absent; for `missing-history` how far back, 20 when absent. */
  readonly blocks?: number;
  /** The blocks that are lied about, both inclusive: all, but for resealing faults those above the block that is solid now. */
  readonly fromBlock?: number;
  readonly toBlock?: number;
  /** Whom a forged or missing transfer pays, and how much; the attacker and 1 USDT when absent. Without `to`, `forged-log` changes an amount. */
  readonly to?: string;
  readonly amountMicro?: bigint;
  /** For `slow-large-answer`; 256 KiB when absent. */
  readonly bytesPerSecond?: number;
  /** For `bracket-bomb`; 32 MiB when absent. */
  readonly bytes?: number;
  /** For `replayed-producers`: those of the genesis (the default), or the present ones with keys of the attacker. */
  readonly producers?: 'genesis' | 'attacker';
}

/** A fault with everything decided that was left open. */
export interface SettledFault extends Fault {
  readonly fromBlock: number;
  readonly toBlock: number;
  readonly recipient: AccountHex;
}

const DEFAULT_LAG_BLOCKS = 10;
const DEFAULT_HISTORY_BLOCKS = 20;

/** Throws a TypeError when `to` is not an address. */
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

/** The faults that concern a path. */
export function faultsAt(faults: readonly SettledFault[], path: string): readonly SettledFault[] {
  return faults.filter(({ paths }) => paths === undefined || paths.includes(path));
}

/** How many blocks behind a node with these faults is. */
export function lagBlocksOf(faults: readonly Fault[]): number {
  return Math.max(0, ...faults.map(({ kind, blocks = DEFAULT_LAG_BLOCKS }) => (kind === 'lag' ? blocks : 0)));
}

/** How many blocks below the head a node with these faults has. */
export function historyBlocksOf(faults: readonly Fault[]): number {
  const lost = faults.filter(({ kind }) => kind === 'missing-history');
  return Math.min(Number.MAX_SAFE_INTEGER, ...lost.map(({ blocks = DEFAULT_HISTORY_BLOCKS }) => blocks));
}
