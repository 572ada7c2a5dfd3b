import { hexToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, parseAddress } from '../../tron/address.ts';
import { encodeRawTransaction } from '../../tron/raw-transaction.ts';
import { signMessage } from '../../tron/signature.ts';
import { accountWord, selectorOf, uintWord } from '../evm/abi.ts';
import { PAYER, USDT } from '../evm/keys.ts';
import { referenceOf } from './admission.ts';
import type { Ledger } from './ledger.ts';

/** The calls of the USDT contract's owner. Each is a transaction that waits for the next block; its id is returned. */
export interface OwnerCalls {
  /** Transfers revert. */
  pause(): string;
  unpause(): string;
  /** A fee on every transfer, in hundredths of a percent (below 20) and at most so many whole USDT (below 50); else the call reverts. */
  setParams(fee: { readonly basisPoints: number; readonly maxFeeUsdt: number }): string;
  /** Announces another contract. Unlike the real one, this one goes on working by itself. */
  deprecate(address: string): string;
  /** The address still receives, but what it sends reverts. */
  addBlackList(address: string): string;
  removeBlackList(address: string): string;
  /** Takes all that a frozen address holds, without a Transfer event. */
  destroyBlackFunds(address: string): string;
  /** Changes how much the owner holds, without a Transfer event. */
  issue(amountMicro: bigint): string;
  redeem(amountMicro: bigint): string;
}

const FEE_LIMIT_SUN = 100_000_000n;
const EXPIRATION_MS = 60 * 60 * 1000;

/** `now` never answers the same twice: it keeps equal calls apart. */
export function createOwnerCalls(ledger: Ledger, now: () => number): OwnerCalls {
  const call = (signature: string, ...words: readonly string[]): string => {
    const reference = ledger.view('solid').block(ledger.solidNumber());
    if (reference === null) throw new Error('devnet has no solid block');
    const rawData = encodeRawTransaction({
      ...referenceOf(reference),
      expirationMs: ledger.head().header.timestamp + EXPIRATION_MS,
      timestampMs: now(),
      feeLimitSun: FEE_LIMIT_SUN,
      memo: '',
      permissionId: 0,
      contract: {
        kind: 'trigger',
        owner: PAYER.account,
        contract: USDT,
        data: selectorOf(signature) + words.join(''),
        callValueSun: 0n,
      },
    });
    const signatures = [hexToBytes(signMessage(rawData, PAYER.privateKey))];
    const submitted = ledger.submit({ rawData, signatures, results: [] });
    if (submitted.kind === 'accepted') return submitted.id;
    throw new Error(`devnet refused ${signature}: ${submitted.refusal.message}`);
  };
  return {
    pause: () => call('pause()'),
    unpause: () => call('unpause()'),
    setParams: ({ basisPoints, maxFeeUsdt }) =>
      call('setParams(uint256,uint256)', uintWord(basisPoints), uintWord(maxFeeUsdt)),
    deprecate: (address) => call('deprecate(address)', accountWord(accountOf(address))),
    addBlackList: (address) => call('addBlackList(address)', accountWord(accountOf(address))),
    removeBlackList: (address) => call('removeBlackList(address)', accountWord(accountOf(address))),
    destroyBlackFunds: (address) => call('destroyBlackFunds(address)', accountWord(accountOf(address))),
    issue: (amountMicro) => call('issue(uint256)', uintWord(amountMicro)),
    redeem: (amountMicro) => call('redeem(uint256)', uintWord(amountMicro)),
  };
}

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind === 'ok') return parsed.account;
  throw new TypeError(`${address} is not a TRON address: ${parsed.reason}`);
}
