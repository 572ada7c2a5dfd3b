import type { AccountHex } from '@quittance/tron/address';
import type { UnixMs } from './time.ts';

/** A USDT transfer in a block. Its identity is (network, txId, logIndex); `amount` is micro-USDT, up to 2^256−1. */
export type ChainTransfer = {
  /** 64 lowercase hex characters. */
  txId: string;
  /** The index of the log within its transaction. */
  logIndex: number;
  from: AccountHex;
  to: AccountHex;
  amount: bigint;
  /**
   * The block's header commits to it: it's a direct, successful `transfer` or `transferFrom` call, and its log agrees. Otherwise it relies
   * on nodes alone.
   */
  isProven: boolean;
};

/** The parts of a block that invoices need: its links, its time and producer, and its successful USDT transfers in order. */
export type ChainBlock = {
  number: number;
  /** 64 lowercase hex characters. */
  id: string;
  parentId: string;
  time: UnixMs;
  /** The super representative that made it. */
  producer: AccountHex;
  transfers: ChainTransfer[];
};

/** The nodes that showed the logs of a block (their origins), and the number of different operators that run them. */
export type Evidence = { nodes: readonly string[]; operatorCount: number };

/** An irreversible block with its evidence. */
export type SolidBlock = ChainBlock & { evidence: Evidence };

/** How a transfer of the ledger was verified: `proven` by the block's header, `agreed:n` by n operators, or `single-node` on trust. */
export type Verified = 'proven' | `agreed:${number}` | 'single-node';

export function verifiedBy(transfer: ChainTransfer, { operatorCount }: Evidence): Verified {
  if (transfer.isProven) return 'proven';
  return operatorCount >= 2 ? `agreed:${Math.min(operatorCount, 99)}` : 'single-node';
}
