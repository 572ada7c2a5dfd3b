import { hexToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { writeBytes, writeInt64 } from '@quittance/tron/protobuf';
import { type ScannedField, visitFields } from '@quittance/tron/scan-message';
import { contractRetName } from '@quittance/tron/transaction';
import { createMessageReader } from './message-reader.ts';
import { AnswerTooLarge, type MessageSink, type Question } from './question.ts';

/**
 * A transaction's outcome in a node's JSON, not validated yet. If only the logs of some contracts were requested, all other logs are
 * `null`. For an example, see `readLogs`.
 */
export type ShownInfo = {
  id?: unknown;
  blockNumber?: unknown;
  blockTimeStamp?: unknown;
  result?: unknown;
  receipt?: { result?: unknown } | null;
  log?: unknown;
};

/** A real network once had a block with 31 MB of infos. Above this limit Quittance requests single transactions instead. */
const INFOS_BYTES = 128 * 1024 * 1024;
const INFOS_HELD_BYTES = 16 * 1024 * 1024;
/** USDT logs hold 32 bytes. Other logs and return values can be of any size and aren't kept. */
const MAX_LOG_BYTES = 64 * 1024;
const MAX_RECEIPT_BYTES = 4096;
/**
 * Limits per answer. If a block has more USDT logs than the first limit, Quittance requests single transactions instead. No block has as
 * many transactions as the second limit.
 */
const MAX_LOGS = 60_000;
const MAX_INFOS = 20_000;
const [ADDRESS_BYTES, ADDRESS_PREFIX] = [20, 0x41];

/** The call results and internal calls make up most of the bytes, but Quittance doesn't use them. */
const UNREAD = new Set(['contractResult', 'internal_transactions', 'resMessage', 'orderDetails', 'contract_address']);

/** Asks for the outcomes of a block's transactions in order, with the given contracts' logs. */
export function infosOf(number: number, ...contracts: AccountHex[]): Question<ShownInfo[]> {
  return {
    ...SIZE,
    http: {
      path: '/wallet/gettransactioninfobyblocknum',
      body: { num: number },
      shape: { ...shapeOf(contracts), skipped: { '': UNREAD } },
      read: (json) => {
        if (!Array.isArray(json)) throw new TypeError(`it returned no list for block ${number}`);
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

/**
 * Asks for one transaction's outcome. The answer is `null` if the node knows no block that contains it. If `contracts` is `null`, all logs
 * are kept.
 */
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

/** Whether a log certainly belongs to a contract that wasn't requested. Nodes write addresses with or without the prefix 41. */
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
  const isKept = contracts === null ? () => true : isLogOf(contracts.map((each) => hexToBytes(each)));
  let logCount = 0;
  let log: unknown[] = [];
  let info: ShownInfo = {};
  const begin = () => {
    log = [];
    info = {};
  };
  const end = () => {
    if (infos.length >= MAX_INFOS) throw new AnswerTooLarge(`more than ${MAX_INFOS} transactions`);
    if (log.length > 0) info.log = log;
    infos.push(info);
    begin();
  };
  const shape = {
    ...{ 1: { take: 32 }, 3: { take: 0 }, 4: { take: 0 }, 7: { take: MAX_RECEIPT_BYTES } },
    ...{ 8: { take: MAX_LOG_BYTES }, 9: { take: 0 } },
  };
  const reader = createMessageReader(isList ? { 1: { enter: shape, begin, end } } : shape, (field, value) => {
    if (field !== 8) return readField(info, field, value);
    const shown = value instanceof Uint8Array ? readLog(value, isKept) : null;
    if (shown !== null) logCount += 1;
    if (logCount > MAX_LOGS) throw new AnswerTooLarge(`more than ${MAX_LOGS} logs`);
    log.push(shown);
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

function readField(info: ShownInfo, field: number, value: number | Uint8Array | null): void {
  if (typeof value === 'number') {
    if (field === 3) info.blockNumber = value;
    if (field === 4) info.blockTimeStamp = value;
    if (field === 9 && value === 1) info.result = 'FAILED';
  } else if (value !== null && field === 1) info.id = hexOf(value, 0, value.length);
  else if (value !== null && field === 7) {
    const result = readResult(value);
    if (result !== 0) info.receipt = { result: contractRetName(result) ?? result };
  }
}

/** `ResourceReceipt.result`=7; 0 if absent. */
function readResult(bytes: Uint8Array): number {
  let result = 0;
  const isRead = visitFields(bytes, 0, bytes.length, ({ number, wireType, low32 }) => {
    if (number === 7 && wireType === 0) result = low32;
    return true;
  });
  return isRead === null ? 0 : result;
}

/** `TransactionInfo.Log`: address=1, topics=2, data=3. Returns `null` if the log isn't wanted; then only its address has been read. */
function readLog(bytes: Uint8Array, isWanted: (bytes: Uint8Array, start: number, end: number) => boolean) {
  let [address, addressEnd, data, dataEnd] = [0, 0, 0, 0];
  const topics: ScannedField[] = [];
  const isRead = visitFields(bytes, 0, bytes.length, (field) => {
    if (field.wireType !== 2) return true;
    if (field.number === 1) [address, addressEnd] = [field.start, field.end];
    if (field.number === 2) topics.push(field);
    if (field.number === 3) [data, dataEnd] = [field.start, field.end];
    return true;
  });
  if (isRead === null) throw new TypeError('a log is not a protobuf message');
  if (!isWanted(bytes, address, addressEnd)) return null;
  return {
    address: hexOf(bytes, address, addressEnd),
    topics: topics.map(({ start, end }) => hexOf(bytes, start, end)),
    data: hexOf(bytes, data, dataEnd),
  };
}

/**
 * Whether an address, with or without the prefix 41, belongs to one of the contracts. It's also true for bytes that aren't an address,
 * which a later check refuses.
 */
function isLogOf(contracts: readonly Uint8Array[]) {
  return (bytes: Uint8Array, start: number, end: number): boolean => {
    const from = end - ADDRESS_BYTES;
    const isAddress = from === start || (from === start + 1 && bytes[start] === ADDRESS_PREFIX);
    return !isAddress || contracts.some((each) => each.every((byte, index) => bytes[from + index] === byte));
  };
}

function hexOf({ buffer, byteOffset }: Uint8Array, start: number, end: number): string {
  return Buffer.from(buffer, byteOffset + start, end - start).toString('hex');
}
