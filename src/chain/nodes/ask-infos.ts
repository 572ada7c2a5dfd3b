import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '../../tron/address.ts';
import {
  bytesField,
  int64Field,
  readMessage,
  repeatedBytesField,
  writeBytes,
  writeInt64,
} from '../../tron/protobuf.ts';
import { contractRetName } from '../../tron/transaction.ts';
import { createMessageReader } from './message-reader.ts';
import type { MessageSink, Question } from './question.ts';
import { AnswerTooLarge } from './refusal.ts';

/**
 * The outcome of a transaction as a node's JSON has it, with nothing checked. Logs of other contracts are `null` where only those
 * of one were asked for. Example: see `readLogs`.
 */
export type ShownInfo = {
  id?: unknown;
  blockNumber?: unknown;
  blockTimeStamp?: unknown;
  result?: unknown;
  receipt?: { result?: unknown } | null;
  log?: unknown;
};

/** A block of 31 MB of infos was made on a real network; beyond this single transactions are asked for. */
const INFOS_BYTES = 128 * 1024 * 1024;
const INFOS_HELD_BYTES = 16 * 1024 * 1024;
/** Logs of USDT hold 32 bytes; what others log, and return, may have any size and is not kept. */
const MAX_LOG_BYTES = 64 * 1024;
const MAX_RECEIPT_BYTES = 4096;
/** The bounds of one answer: beyond so many logs of USDT single transactions are asked for; no block has so many transactions. */
const MAX_LOGS = 60_000;
const MAX_INFOS = 20_000;

/** The results of calls, and the calls between contracts: they take most of the bytes, and none of them counts. */
const UNREAD = new Set(['contractResult', 'internal_transactions', 'resMessage', 'orderDetails', 'contract_address']);

/** The outcomes of a block's transactions, in order, with the logs of some contracts. */
export function infosOf(number: number, ...contracts: AccountHex[]): Question<ShownInfo[]> {
  return {
    ...SIZE,
    http: {
      path: '/wallet/gettransactioninfobyblocknum',
      body: { num: number },
      shape: { ...shapeOf(contracts), skipped: { '': UNREAD } },
      read: (json) => {
        if (!Array.isArray(json)) throw new TypeError(`it shows no list for block ${number}`);
        return json as ShownInfo[];
      },
    },
    grpc: {
      path: '/protocol.Wallet/GetTransactionInfoByBlockNum',
      request: writeInt64(1, number),
      newSink: () => createInfoSink(contracts, true),
    },
  };
}

/** The outcome of one transaction; `null`: the node knows none in a block. With `contracts` `null` all logs are kept. */
export function infoOf(txId: string, contracts: readonly AccountHex[] | null): Question<ShownInfo | null> {
  return {
    ...SIZE,
    http: {
      path: '/wallet/gettransactioninfobyid',
      body: { value: txId },
      shape: contracts === null ? {} : { ...shapeOf(contracts), skipped: { '': UNREAD } },
      read: (json) => (Object.keys(json as object).length === 0 ? null : (json as ShownInfo)),
    },
    grpc: {
      path: '/protocol.Wallet/GetTransactionInfoById',
      request: writeBytes(1, hexToBytes(txId)),
      newSink: () => {
        const sink = createInfoSink(contracts, false);
        return { ...sink, end: () => sink.end()[0] ?? null };
      },
    },
  };
}

const SIZE = { maxBytes: INFOS_BYTES, maxHeldBytes: INFOS_HELD_BYTES };

function shapeOf(contracts: readonly AccountHex[]) {
  const isOther = isOtherThan(contracts);
  const keepLog = (log: unknown) => (isOther(log) ? null : log);
  const keepInfo = (info: unknown) => {
    const { id, blockNumber, blockTimeStamp, result, receipt, log } = (info ?? {}) as ShownInfo;
    return { id, blockNumber, blockTimeStamp, result, receipt, log: Array.isArray(log) ? log.map(keepLog) : log };
  };
  return { elements: { '': keepInfo, log: keepLog }, maxTextBytes: MAX_LOG_BYTES };
}

/** Whether a log is surely of another contract; addresses come with and without the prefix 41. */
function isOtherThan(contracts: readonly AccountHex[]): (log: unknown) => boolean {
  return (log) => {
    const { address } = (log ?? {}) as { address?: unknown };
    return (
      typeof address === 'string' &&
      /^(?:41)?[0-9a-f]{40}$/i.test(address) &&
      !contracts.some((each) => address.toLowerCase().endsWith(each))
    );
  };
}

/** `TransactionInfoList` (api.proto: transactionInfo=1), or one `TransactionInfo` (Tron.proto). */
function createInfoSink(contracts: readonly AccountHex[] | null, isList: boolean): MessageSink<ShownInfo[]> {
  const infos: ShownInfo[] = [];
  const isOther = contracts === null ? () => false : isOtherThan(contracts);
  let logCount = 0;
  let log: unknown[] = [];
  let info: ShownInfo = {};
  const begin = () => {
    log = [];
    info = {};
  };
  const end = () => {
    if (infos.length >= MAX_INFOS) throw new AnswerTooLarge(`more than ${MAX_INFOS} transactions`);
    infos.push(log.length === 0 ? info : { ...info, log });
    begin();
  };
  const shape = {
    ...{ 1: { take: 32 }, 3: { take: 0 }, 4: { take: 0 }, 7: { take: MAX_RECEIPT_BYTES } },
    ...{ 8: { take: MAX_LOG_BYTES }, 9: { take: 0 } },
  };
  const reader = createMessageReader(isList ? { 1: { enter: shape, begin, end } } : shape, (path, value) => {
    const field = path.at(-1);
    if (field === 8) {
      const read = value instanceof Uint8Array ? readLog(value) : null;
      const isKept = read !== null && !isOther(read);
      if (isKept) logCount += 1;
      if (logCount > MAX_LOGS) throw new AnswerTooLarge(`more than ${MAX_LOGS} logs`);
      log.push(isKept ? read : null);
    } else Object.assign(info, readField(field, value));
  });
  let bytes = 0;
  return {
    push: (chunk) => {
      bytes += chunk.length;
      reader.push(chunk);
    },
    end: () => {
      reader.end();
      if (!isList && bytes > 0) end();
      return infos;
    },
  };
}

function readField(field: number | undefined, value: bigint | Uint8Array | null): ShownInfo {
  if (field === 1 && value instanceof Uint8Array) return { id: bytesToHex(value) };
  if (field === 3 && typeof value === 'bigint') return { blockNumber: Number(value) };
  if (field === 4 && typeof value === 'bigint') return { blockTimeStamp: Number(value) };
  if (field === 7 && value instanceof Uint8Array) {
    const number = Number(int64Field(readMessage(value) ?? [], 7));
    return number === 0 ? {} : { receipt: { result: contractRetName(number) ?? number } };
  }
  return field === 9 && value === 1n ? { result: 'FAILED' } : {};
}

/** `TransactionInfo.Log`: address=1, topics=2, data=3. */
function readLog(bytes: Uint8Array) {
  const fields = readMessage(bytes);
  if (fields === null) throw new TypeError('a log is no message');
  return {
    address: bytesToHex(bytesField(fields, 1)),
    topics: repeatedBytesField(fields, 2).map(bytesToHex),
    data: bytesToHex(bytesField(fields, 3)),
  };
}
