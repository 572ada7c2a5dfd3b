import type { AccountHex } from '@quittance/tron/address';
import type { MicroUsdt } from '../money.ts';
import type { UnixMs } from '../time.ts';

/** The ledger's facts about a transaction and this invoice. */
export type LedgerFacts = InBlock & ({ kind: 'matched' } | { kind: 'duplicate' } | { kind: 'sighted'; txId: string });

/** A node's facts about a transaction, independent of any invoice. Amounts are above 0. */
export type TransactionFacts =
  /**
   * `used-up`: the allowed requests of this link, or of all links together, are used up. `too-large`: the transaction exceeds the limit.
   */
  | { kind: 'unavailable'; why: 'for-now' | 'used-up' | 'too-large' }
  | { kind: 'not-found' }
  /**
   * `result`: the block's value instead of SUCCESS. `payer`: the account whose USDT would have moved, if the USDT contract itself refused
   * it, and whether the contract reports that account as frozen now.
   */
  | (InBlock & { kind: 'failed'; result: string; payer: { account: AccountHex; isFrozen: boolean } | null })
  | (InBlock & {
      kind: 'done';
      /** USDT transfers, in order. */
      usdt: readonly { to: AccountHex; amountMicro: MicroUsdt }[];
      otherTokens: readonly { contract: AccountHex; to: AccountHex }[];
      trx: { to: AccountHex; amountSun: bigint } | null;
      /** A transfer of a token of the chain itself. */
      isTrc10: boolean;
      /** It called the USDT contract itself, which moves only USDT. */
      isUsdtCall: boolean;
    });

export type InBlock = { blockNumber: number; blockTime: UnixMs };
