import type { AccountHex } from '@quittance/tron/address';
import type { UnixMs } from './time.ts';

/** A USDT transfer in a block. It's identified by (network, txId, logIndex); `amount` is in micro-USDT, up to 2^256−1. */
export type ChainTransfer = {
  /** 64 lowercase hex characters. */
  txId: string;
  /** The index of the log within its transaction. */
  logIndex: number;
  from: AccountHex;
  to: AccountHex;
  amount: bigint;
  /**
   * Whether the block's header commits to the transfer: it's a direct, successful `transfer` or `transferFrom` call, and its log matches.
   * If not, the transfer relies on nodes alone.
   */
  isProven: boolean;
};

/** The parts of a block that matter for invoices: its links, its time and producer, and its successful USDT transfers in order. */
export type ChainBlock = {
  number: number;
  /** 64 lowercase hex characters. */
  id: string;
  parentId: string;
  time: UnixMs;
  /** The super representative that produced the block. */
  producer: AccountHex;
  transfers: ChainTransfer[];
};

/** The nodes (their origins) that showed a block's logs, and the number of different operators that run them. */
export type Evidence = { nodes: readonly string[]; operatorCount: number };

/** An irreversible block with its evidence. */
export type SolidBlock = ChainBlock & { evidence: Evidence };

/**
 * How a transfer in the ledger was verified: `proven` by the block's header, `agreed:n` by n operators, or `single-node` if only one node
 * was trusted.
 */
export type Verified = 'proven' | `agreed:${number}` | 'single-node';

export function verifiedBy(transfer: ChainTransfer, { operatorCount }: Evidence): Verified {
  if (transfer.isProven) return 'proven';
  return operatorCount >= 2 ? `agreed:${Math.min(operatorCount, 99)}` : 'single-node';
}
