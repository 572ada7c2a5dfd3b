import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeElement, writeInt64 } from '../../tron/protobuf.ts';
import { encodeRawTransaction, type RawTransaction } from '../../tron/raw-transaction.ts';
import { signMessage } from '../../tron/signature.ts';
import { encodeTransaction } from '../../tron/transaction.ts';
import type { Noise } from '../evm/abi.ts';
import { NOISE, PAYER, STRANGER } from '../evm/keys.ts';
import { encodeNoiseCall } from '../evm/noise.ts';
import { readSent } from '../wire/hidden-fields.ts';
import { referenceOf } from './admission.ts';
import type { Ledger } from './ledger.ts';

/** The data that a stranger, or a producer, can put on the chain so that JSON does not show the bytes, or shows too many of them. */
export const POISONS = [
  'unknown-outer-field',
  'unknown-result-field',
  'order-id',
  'result-beyond-2^53',
  'unknown-header-field',
  'huge-infos',
] as const;

export type PoisonKind = (typeof POISONS)[number];

/** For `huge-infos`: how many bytes of JSON, where, and by how many transactions, one when absent. */
export type PoisonOptions = Partial<Noise> & { readonly transactions?: number };

/** A field that no java-tron knows: the number of the one in block 79072107 of the main network. */
const UNKNOWN_FIELD = writeInt64(1002, 1);

/** The bytes appended to a whole Transaction. A real java-tron mined them: the first from a client, those in a Result from a peer. */
const APPENDED: Readonly<Partial<Record<PoisonKind, Uint8Array>>> = {
  'unknown-outer-field': hexToBytes('3001'),
  'unknown-result-field': writeElement(5, UNKNOWN_FIELD),
  'order-id': writeElement(5, writeBytes(25, Buffer.from('orderid'))),
  'result-beyond-2^53': writeElement(5, writeInt64(15, 2n ** 53n + 1n)),
};

/** More than the 24 MiB that a client may take for the most of an answer. */
const HUGE_INFOS_BYTES = 26 * 1024 * 1024;

const EXPIRATION_MS = 60 * 60 * 1000;
const FEE_LIMIT_SUN = 15_000_000_000n;

/** A signed transaction with the hidden bytes of a kind appended; its id and its signature stay as they are. */
export function poisoned(transaction: Uint8Array, kind: PoisonKind): Uint8Array {
  const appended = APPENDED[kind];
  if (appended === undefined) throw new TypeError(`${kind} is not appended to a transaction`);
  return concatBytes(transaction, appended);
}

/**
 * Poisons the next block: a transaction of that kind waits for it (1 sun to a stranger, or calls that make noise), whose id is
 * returned (the first one's); for `unknown-header-field` its header, and null. `now` never answers the same twice.
 */
export function createPoison(ledger: Ledger, now: () => number) {
  const build = (contract: RawTransaction['contract']): Uint8Array => {
    const rawData = encodeRawTransaction({
      ...referenceOf(ledger.view('solid').block(ledger.solidNumber()) ?? ledger.head()),
      expirationMs: ledger.head().header.timestamp + EXPIRATION_MS,
      timestampMs: now(),
      feeLimitSun: contract.kind === 'trigger' ? FEE_LIMIT_SUN : 0n,
      memo: '',
      permissionId: 0,
      contract,
    });
    const signatures = [hexToBytes(signMessage(rawData, PAYER.privateKey))];
    return encodeTransaction({ rawData, signatures, results: [] });
  };
  return (kind: PoisonKind, options: PoisonOptions = {}): string | null => {
    if (kind === 'unknown-header-field') {
      ledger.hideInNextHeader(bytesToHex(UNKNOWN_FIELD));
      return null;
    }
    const owner = PAYER.account;
    if (kind !== 'huge-infos') {
      return relay(ledger, poisoned(build({ kind: 'transfer', owner, to: STRANGER, amountSun: 1n }), kind));
    }
    const { bytes = HUGE_INFOS_BYTES, shape = 'log', transactions = 1 } = options;
    const data = encodeNoiseCall({ bytes: Math.ceil(bytes / transactions), shape });
    const ids = Array.from({ length: transactions }, () =>
      relay(ledger, build({ kind: 'trigger', owner, contract: NOISE, data, callValueSun: 0n })),
    );
    return ids[0] ?? null;
  };
}

/** Takes a whole signed Transaction as a peer brings it, with its Result, and returns its id; throws when it is refused. */
export function relay(ledger: Ledger, transaction: Uint8Array): string {
  const sent = readSent(transaction);
  if (sent === null) throw new TypeError('these bytes are no Transaction');
  const submitted = ledger.submit(sent);
  if (submitted.kind === 'accepted') return submitted.id;
  throw new Error(`devnet refused a transaction of a peer: ${submitted.refusal.message}`);
}
