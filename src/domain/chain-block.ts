import type { AccountHex } from '../tron/address.ts';
import type { UnixMs } from './time.ts';

/** A USDT transfer in a block. Its identity is (network, txId, logIndex); `amount` is micro-USDT, up to 2^256−1. */
export type ChainTransfer = {
  /** 64 lowercase hex characters. */
  txId: string;
  /** Index of the log within its transaction. */
  logIndex: number;
  from: AccountHex;
  to: AccountHex;
  amount: bigint;
};

/** A block as far as invoices need it: how it is linked, when it was made, and its successful USDT transfers in order. */
export type ChainBlock = {
  number: number;
  /** 64 lowercase hex characters. */
  id: string;
  parentId: string;
  time: UnixMs;
  transfers: ChainTransfer[];
};
