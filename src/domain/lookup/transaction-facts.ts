import type { AccountHex } from '../../tron/address.ts';
import type { MicroUsdt } from '../money.ts';
import type { UnixMs } from '../time.ts';

/** Our books' facts about a transaction and this invoice. */
export type LedgerFacts = InBlock & ({ kind: 'matched' } | { kind: 'duplicate' } | { kind: 'sighted'; txId: string });

/** A node's facts about a transaction, whomever it concerns. Amounts are above 0. */
export type TransactionFacts =
  /** `used-up`: what may be asked of nodes for this link, or for all together. `too-large`: a node shows more than is read. */
  | { kind: 'unavailable'; why: 'for-now' | 'used-up' | 'too-large' }
  | { kind: 'not-found' }
  /**
   * `result`: what the block says in place of SUCCESS. `payer`: whose USDT it would have moved, if the USDT contract itself refused it, and
   * whether the contract calls that account frozen now.
   */
  | (InBlock & { kind: 'failed'; result: string; payer: { account: AccountHex; isFrozen: boolean } | null })
  | (InBlock & {
      kind: 'done';
      /** Transfers of USDT, in order. */
      usdt: readonly { to: AccountHex; amountMicro: MicroUsdt }[];
      otherTokens: readonly { contract: AccountHex; to: AccountHex }[];
      /** A plain transfer of TRX. */
      trx: { to: AccountHex; amountSun: bigint } | null;
      /** A transfer of a token of the chain itself. */
      isTrc10: boolean;
      /** It called the USDT contract itself, which moves nothing but USDT. */
      isUsdtCall: boolean;
    });

/** Where a transaction stands. */
export type InBlock = { blockNumber: number; blockTime: UnixMs };
