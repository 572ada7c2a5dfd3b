import { type BlockHeaderJson, encodeBlockHeader } from './block-header.ts';
import { bytesFromHex } from './hex.ts';
import { type ScannedField, visitFields } from './scan-message.ts';
import {
  scanTransaction,
  type TransactionBytes,
  type TransactionPlace,
  transactionAt,
  transactionBytes,
} from './transaction-bytes.ts';

/** A header as shown by a node, not checked yet. */
export type ShownHeader = {
  /** Whether these are the bytes as received. If not, they were encoded from JSON, which omits fields that java-tron doesn't know. */
  readonly isExact: boolean;
  /** `BlockHeader.raw_data`. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  /** The `blockID` in JSON, or `null` if the node gives none. */
  readonly shownId: string | null;
};

/** A block as shown by a node. Each transaction has the id that the node gives for it, or `null` if it gives none. */
export type ShownBlock = ShownHeader & { readonly transactions: Iterable<ShownTransaction> };
type ShownTransaction = TransactionBytes & { readonly shownId: string | null };

/** A block has at most 2 MB (java-tron `BLOCK_SIZE`), and the smallest transactions have about a hundred bytes. */
const MAX_TRANSACTIONS = 20_000;

type JsonObject = Record<string, unknown>;

/**
 * Returns the header in the node's JSON of a block, or null if the JSON isn't a block. Example:
 * `{"blockID":"00…0e","block_header":{"raw_data":{"number":66987565,
 * "txTrieRoot":"faf8…52a2","witness_address":"41b2…94ba","parentHash":"00…ed","version":34,"timestamp":1777445121000},"witness_signature":"5b3c…00"}}`.
 */
export function headerFromJson(json: unknown): ShownHeader | null {
  const { blockID: shownId, block_header } = recordOf(json);
  const { raw_data, witness_signature = '' } = recordOf(block_header);
  if (typeof raw_data !== 'object' || raw_data === null || typeof shownId !== 'string') return null;
  const header = encodeBlockHeader(raw_data as BlockHeaderJson);
  const signature = typeof witness_signature === 'string' ? bytesFromHex(witness_signature) : null;
  return header === null || signature === null ? null : { isExact: false, header, signature, shownId };
}

/** Returns the block in the node's JSON, or null if the JSON isn't a block. In an empty block, `transactions` is absent. */
export function blockFromJson(json: unknown): ShownBlock | null {
  const header = headerFromJson(json);
  const { transactions: list = [] } = recordOf(json);
  if (header === null || !Array.isArray(list) || list.length > MAX_TRANSACTIONS) return null;
  const transactions: ShownTransaction[] = [];
  for (const each of list as unknown[]) {
    const bytes = transactionBytes(each);
    const { txID: shownId } = recordOf(each);
    if (bytes === null || typeof shownId !== 'string') return null;
    transactions.push({ ...bytes, shownId });
  }
  return { ...header, transactions };
}

/** Returns the header in a `Block` or `BlockExtention` (api.proto), where it's field 2 in both. Returns null if it's absent. */
export function headerFromMessage(message: Uint8Array): ShownHeader | null {
  return readBlockMessage(message, () => true);
}

/** Returns the block in a `Block` message (Tron.proto: transactions=1, block_header=2), or null if it isn't one. */
export function blockFromMessage(message: Uint8Array): ShownBlock | null {
  const places: TransactionPlace[] = [];
  const header = readBlockMessage(message, ({ start, end }) => {
    const place = scanTransaction(message, start, end);
    if (place !== null) places.push(place);
    return place !== null && places.length <= MAX_TRANSACTIONS;
  });
  const transactions = { [Symbol.iterator]: () => transactionsAt(message, places) };
  return header === null ? null : { ...header, transactions };
}

function* transactionsAt(message: Uint8Array, places: readonly TransactionPlace[]): Generator<ShownTransaction> {
  for (const place of places) yield { ...transactionAt(message, place), shownId: null };
}

function readBlockMessage(message: Uint8Array, onTransaction: (place: ScannedField) => boolean): ShownHeader | null {
  let place: ScannedField | null = null;
  const isRead = visitFields(message, 0, message.length, (field) => {
    if (field.number === 2 && field.wireType === 2) place = field;
    return field.number === 1 && field.wireType === 2 ? onTransaction(field) : true;
  });
  const found = place as ScannedField | null;
  if (isRead === null || found === null) return null;
  let header: Uint8Array | null = null;
  let signature = new Uint8Array(0);
  const isHeaderRead = visitFields(message, found.start, found.end, ({ number, wireType, start, end }) => {
    if (number === 1 && wireType === 2) header = message.subarray(start, end);
    if (number === 2 && wireType === 2) signature = message.slice(start, end);
    return true;
  });
  const raw = header as Uint8Array | null;
  return isHeaderRead === null || raw === null ? null : { isExact: true, header: raw, signature, shownId: null };
}

function recordOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}
