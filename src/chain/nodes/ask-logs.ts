import type { AccountHex } from '../../tron/address.ts';
import type { Question } from './question.ts';

/**
 * A log as a node's JSON-RPC shows it, in the form in which infos show theirs, with nothing checked. `blockId` and `txId` are hex without
 * prefix where they are that; `blockNumber` is `NaN` where it is no number.
 */
export type ShownLog = {
  blockNumber: number;
  blockId: string;
  txId: string;
  log: { address: string; topics: unknown; data: string };
};

/** A log takes about 600 bytes; java-tron shows 10,000 at most (`LogMatch`). */
const LOGS_BYTES = 16 * 1024 * 1024;
const MAX_LOGS = 20_000;
const UNREAD = new Set(['transactionIndex', 'logIndex', 'removed']);

/**
 * The logs of a contract in the blocks from `first` to `last` (`eth_getLogs`). A node answers none for a block whose logs it has not
 * indexed, so that none proves nothing.
 */
export function logsBetween(first: number, last: number, contract: AccountHex): Question<ShownLog[]> {
  const filter = { fromBlock: hexOf(first), toBlock: hexOf(last), address: `0x${contract}` };
  return {
    substitutable: 'logs',
    ...{ maxBytes: LOGS_BYTES, maxHeldBytes: LOGS_BYTES },
    http: {
      path: '/jsonrpc',
      body: { jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params: [filter] },
      shape: { skipped: { result: UNREAD }, elements: { result: readLog } },
      // {"jsonrpc":"2.0","id":1,"result":[…]}, or {…,"error":{"code":-32005,"message":"…"}}.
      read: (json) => {
        const { result, error } = json as { result?: unknown; error?: { message?: unknown } | null };
        if (Array.isArray(result) && result.length <= MAX_LOGS) return result as ShownLog[];
        const { message = 'neither logs nor an error' } = error ?? {};
        throw new TypeError(`it does not show the logs of the blocks ${first} to ${last}: ${String(message)}`);
      },
    },
    grpc: null,
  };
}

function readLog(shown: unknown): ShownLog {
  const { blockNumber, blockHash, transactionHash, address, topics, data } = (shown ?? {}) as Record<string, unknown>;
  const bare = Array.isArray(topics) ? topics.map(withoutPrefix) : topics;
  return {
    blockNumber: typeof blockNumber === 'string' ? Number(blockNumber) : Number.NaN,
    blockId: withoutPrefix(blockHash),
    txId: withoutPrefix(transactionHash),
    log: { address: withoutPrefix(address), topics: bare, data: withoutPrefix(data) },
  };
}

function withoutPrefix(hex: unknown): string {
  return typeof hex === 'string' ? hex.replace(/^0x/, '') : '';
}

function hexOf(number: number): string {
  return `0x${number.toString(16)}`;
}
