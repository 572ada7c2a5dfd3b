import { utf8ToBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeInt64 } from '@quittance/tron/protobuf';
import { visitFields } from '@quittance/tron/scan-message';
import {
  blockFromJson,
  blockFromMessage,
  headerFromJson,
  headerFromMessage,
  type ShownBlock,
  type ShownHeader,
} from '@quittance/tron/shown-block';
import { type Question, wholeMessage } from './question.ts';

/** A 2 MB block takes this much in JSON, with a margin. The second limit is enough for a range of six blocks on a busy day. */
const BLOCK_BYTES = 24 * 1024 * 1024;
const RANGE_BYTES = 64 * 1024 * 1024;
/** The corresponding limits for answers as raw bytes. java-tron doesn't produce blocks larger than 2 MB (`BLOCK_SIZE`). */
const BLOCK_MESSAGE_BYTES = 4 * 1024 * 1024;
const RANGE_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Memory limit for the parts of the answer to keep: the raw data in hex, which is briefly in memory twice. */
const BLOCK_HELD_BYTES = 24 * 1024 * 1024;
/** A range takes longer than a single block, but the head doesn't have to wait for it. */
const RANGE_TIMEOUT_MS = 15_000;

/** `raw_data` repeats `raw_data_hex` at four times the length. */
const SHAPE = { skipped: { transactions: new Set(['raw_data']) } };

/**
 * Asks for the block at a height with its transactions, whether it's irreversible or not. The answer is `null` if the node doesn't have it.
 */
export function blockAt(number: number): Question<ShownBlock | null> {
  return {
    maxBytes: BLOCK_BYTES,
    maxHeldBytes: BLOCK_HELD_BYTES,
    http: {
      path: '/wallet/getblock',
      body: { id_or_num: String(number), detail: true },
      shape: SHAPE,
      read: (json) => (isAbsent(json) ? null : found(blockFromJson(json), `block ${number}`)),
    },
    grpc: {
      path: '/protocol.Wallet/GetBlockByNum',
      maxBytes: BLOCK_MESSAGE_BYTES,
      request: writeInt64(1, number),
      newSink: wholeMessage((bytes) => (bytes.length === 0 ? null : found(blockFromMessage(bytes), `block ${number}`))),
    },
  };
}

/** Asks for the blocks from `first` to `last` with their transactions; at most 100. The node may return fewer. */
export function blocksBetween(first: number, last: number): Question<ShownBlock[]> {
  const what = `blocks ${first} to ${last}`;
  return {
    substitutable: 'ranges',
    maxBytes: RANGE_BYTES,
    maxHeldBytes: BLOCK_HELD_BYTES,
    timeoutMs: RANGE_TIMEOUT_MS,
    http: {
      path: '/wallet/getblockbylimitnext',
      body: { startNum: first, endNum: last + 1 },
      shape: { ...SHAPE, elements: { block: blockFromJson } },
      // {"block":[{"blockID":…}, …]}; {} if the node refuses the range.
      read: (json) => {
        const { block: list = [] } = json as { block?: unknown };
        if (!Array.isArray(list) || list.length > last - first + 1) throw new TypeError(`it did not return ${what}`);
        return list.map((each: ShownBlock | null) => found(each, what));
      },
    },
    grpc: {
      path: '/protocol.Wallet/GetBlockByLimitNext',
      maxBytes: RANGE_MESSAGE_BYTES,
      request: Buffer.concat([writeInt64(1, first), writeInt64(2, last + 1)]),
      newSink: wholeMessage((bytes) => {
        const blocks: ShownBlock[] = [];
        const isRead = visitFields(bytes, 0, bytes.length, ({ number, wireType, start, end }) => {
          if (number !== 1 || wireType !== 2) return true;
          blocks.push(found(blockFromMessage(bytes.subarray(start, end)), what));
          return blocks.length <= last - first + 1;
        });
        if (isRead === null) throw new TypeError(`it did not return ${what}`);
        return blocks;
      }),
    },
  };
}

/**
 * Asks for a header (by default the newest) on the irreversible chain or on the whole chain. The answer is `null` if the node doesn't have
 * it.
 */
export function headerAt(side: 'solid' | 'any', number?: number): Question<ShownHeader | null> {
  const what = number === undefined ? 'its newest block' : `block ${number}`;
  const idOrNum = number === undefined ? {} : { id_or_num: String(number) };
  return {
    http: {
      path: side === 'solid' ? '/walletsolidity/getblock' : '/wallet/getblock',
      body: { ...idOrNum, detail: false },
      read: (json) => (isAbsent(json) ? null : found(headerFromJson(json), what)),
    },
    grpc: {
      path: side === 'solid' ? '/protocol.WalletSolidity/GetBlock' : '/protocol.Wallet/GetBlock',
      request: number === undefined ? new Uint8Array(0) : writeBytes(1, utf8ToBytes(String(number))),
      newSink: wholeMessage((bytes) => (bytes.length === 0 ? null : found(headerFromMessage(bytes), what))),
    },
  };
}

/** `{}` means that the node doesn't have the block. */
function isAbsent(json: unknown): boolean {
  return typeof json === 'object' && json !== null && Object.keys(json).length === 0;
}

function found<Shown>(shown: Shown | null, what: string): Shown {
  if (shown === null) throw new TypeError(`its response for ${what} is not a block`);
  return shown;
}
