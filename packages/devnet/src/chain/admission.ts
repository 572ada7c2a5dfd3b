import { hexToBytes } from '@noble/hashes/utils.js';
import { decodeRawTransaction, type RawTransaction } from '@quittance/tron/raw-transaction';
import { recoverSigner } from '@quittance/tron/signature';
import { txIdOf } from '@quittance/tron/transaction';
import { refusalOf } from '../evm/execute.ts';
import type { StateReader } from '../evm/state.ts';
import type { HiddenFields, SentTransaction } from '../wire/hidden-fields.ts';
import type { Block } from './block.ts';

export interface PendingTransaction {
  readonly id: string;
  readonly rawData: Uint8Array;
  readonly raw: RawTransaction;
  readonly signatures: readonly string[];
  readonly hidden?: HiddenFields;
}

/** The reason for which a node refuses a broadcast: the `GrpcAPI.Return.response_code` value and the message text. */
export interface Refusal {
  readonly code:
    | 'SIGERROR'
    | 'CONTRACT_VALIDATE_ERROR'
    | 'DUP_TRANSACTION_ERROR'
    | 'TAPOS_ERROR'
    | 'TRANSACTION_EXPIRATION_ERROR'
    | 'SERVER_BUSY'
    | 'OTHER_ERROR';
  readonly message: string;
}

export interface AdmissionView {
  readonly head: Block;
  readonly state: StateReader;
  block(number: number): Block | null;
}

/**
 * A transaction must refer to one of the last 65,536 blocks, and must expire within a day (java-tron
 * `Constant.MAXIMUM_TIME_UNTIL_EXPIRATION`).
 */
const REFERENCE_WINDOW_BLOCKS = 0x1_0000;
const MAX_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Reads a broadcast transaction. Returns null if its raw_data isn't a transaction with exactly one contract. */
export function readPending({ rawData, signatures, hidden }: SentTransaction): PendingTransaction | null {
  const raw = decodeRawTransaction(rawData);
  if (raw === null) return null;
  const hex = signatures.map((each) => Buffer.from(each).toString('hex'));
  return { id: txIdOf(rawData), rawData, raw, signatures: hex, ...(hidden === undefined ? {} : { hidden }) };
}

/** Checks a transaction when it arrives: its signature, and everything that `blockRefusal` checks. */
export function admissionRefusal(transaction: PendingTransaction, view: AdmissionView): Refusal | null {
  const { raw, rawData, signatures } = transaction;
  if (raw.contract.kind !== 'other') {
    const [signature, ...more] = signatures;
    if (signature === undefined) return { code: 'SIGERROR', message: 'Validate signature error: miss sig or contract' };
    if (more.length > 0 || recoverSigner(rawData, signature) !== raw.contract.owner) {
      const message = 'Validate signature error: but it is not contained of permission.';
      return { code: 'SIGERROR', message };
    }
  }
  return blockRefusal(transaction, view);
}

/**
 * Checks everything that may have changed by the time a block includes the transaction: its reference block, its expiration and the state.
 */
export function blockRefusal({ raw }: PendingTransaction, { head, state, block }: AdmissionView): Refusal | null {
  if (!hasKnownReference(raw, head, block)) return { code: 'TAPOS_ERROR', message: 'Tapos check error.' };
  if (raw.expirationMs <= head.header.timestamp || raw.expirationMs > head.header.timestamp + MAX_LIFETIME_MS) {
    return { code: 'TRANSACTION_EXPIRATION_ERROR', message: 'Transaction expired' };
  }
  const reason = refusalOf(state, raw);
  return reason === null ? null : { code: 'CONTRACT_VALIDATE_ERROR', message: `Contract validate error : ${reason}` };
}

/** Returns the block reference for a new transaction: the low two bytes of a height, and bytes 8..15 of that block's id. */
export function referenceOf(block: Block): { refBlockBytes: string; refBlockHash: string } {
  return { refBlockBytes: block.id.slice(12, 16), refBlockHash: block.id.slice(16, 32) };
}

function hasKnownReference(raw: RawTransaction, head: Block, block: AdmissionView['block']): boolean {
  if (hexToBytes(raw.refBlockBytes).length !== 2) return false;
  const low = Number.parseInt(raw.refBlockBytes, 16);
  const { number } = head.header;
  const back = (number - low + REFERENCE_WINDOW_BLOCKS) % REFERENCE_WINDOW_BLOCKS;
  const candidate = back > number ? null : block(number - back);
  return candidate !== null && referenceOf(candidate).refBlockHash === raw.refBlockHash;
}
