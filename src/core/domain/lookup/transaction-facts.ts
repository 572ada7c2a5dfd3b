import type { AccountHex } from '@quittance/tron/address';
import type { MicroUsdt } from '../money.ts';
import type { UnixMs } from '../time.ts';

/** The ledger's facts about a transaction in relation to this invoice. */
export type LedgerFacts = InBlock & ({ kind: 'matched' } | { kind: 'duplicate' } | { kind: 'sighted'; txId: string });

/** A node's facts about a transaction, regardless of any invoice. Amounts are greater than 0. */
export type TransactionFacts =
  /**
   * `used-up`: no more requests are allowed for this link, or for all links together, at the moment. `too-large`: the transaction exceeds
   * the size limit.
   */
  | { kind: 'unavailable'; why: 'for-now' | 'used-up' | 'too-large' }
  | { kind: 'not-found' }
  /**
   * `result`: the value in the block, which isn't SUCCESS. `payer`: if the USDT contract itself refused the transfer, the account whose
   * USDT would have moved, and whether the contract reports it as frozen now.
   */
  | (InBlock & { kind: 'failed'; result: string; payer: { account: AccountHex; isFrozen: boolean } | null })
  | (InBlock & {
      kind: 'done';
      /** USDT transfers, in order. */
      usdt: readonly { to: AccountHex; amountMicro: MicroUsdt }[];
      otherTokens: readonly { contract: AccountHex; to: AccountHex }[];
      trx: { to: AccountHex; amountSun: bigint } | null;
      /** Whether it transferred one of the chain's native tokens. */
      isTrc10: boolean;
      /** Whether it called the USDT contract itself, which moves nothing but USDT. */
      isUsdtCall: boolean;
    });

export type InBlock = { blockNumber: number; blockTime: UnixMs };
