import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import {
  bytesField,
  int64Field,
  readMessage,
  repeatedBytesField,
  writeBytes,
  writeInt64,
} from '@quittance/tron/protobuf';
import { type ScannedField, visitFields } from '@quittance/tron/scan-message';
import {
  blockFromJson,
  blockFromMessage,
  headerFromJson,
  headerFromMessage,
  type ShownBlock,
  type ShownHeader,
} from '@quittance/tron/shown-block';
import { contractRetName } from '@quittance/tron/transaction';
import { printableText } from '../../domain/text.ts';
import { createMessageReader } from './message-reader.ts';
import { AnswerTooLarge, type MessageSink, type Question, wholeMessage } from './node.ts';

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

/** The main network's few hundred witnesses take less than 100 KB. */
const WITNESSES_BYTES = 1024 * 1024;
/** Tron.proto `AccountType`. */
const CONTRACT_TYPE = 2;

/** Asks for the addresses of the active super representatives, in the node's format: 21 bytes in hex. */
export function activeWitnesses(): Question<unknown[]> {
  return {
    http: {
      path: '/wallet/listwitnesses',
      body: {},
      // {"witnesses":[{"address":"41b2f713…94ba","voteCount":…,"isJobs":true}, …]}; `isJobs` is left out if it's false.
      read: (json) => {
        const { witnesses } = json as { witnesses?: unknown };
        const list = Array.isArray(witnesses) ? (witnesses as { address?: unknown; isJobs?: unknown }[]) : [];
        return list.filter((witness) => witness?.isJobs === true).map(({ address }) => address);
      },
    },
    grpc: {
      path: '/protocol.Wallet/ListWitnesses',
      maxBytes: WITNESSES_BYTES,
      request: new Uint8Array(0),
      // WitnessList: witnesses=1; Witness: address=1, isJobs=9.
      newSink: wholeMessage((bytes) => {
        const active: string[] = [];
        const isRead = visitFields(bytes, 0, bytes.length, ({ number, start, end }) => {
          const fields = number === 1 ? readMessage(bytes.subarray(start, end)) : null;
          if (fields !== null && int64Field(fields, 9) === 1n) active.push(bytesToHex(bytesField(fields, 1)));
          return true;
        });
        if (isRead === null) throw new TypeError('its response is not a list of witnesses');
        return active;
      }),
    },
  };
}

/**
 * `address` is in the node's format. `witnessKey` is the address whose key signs blocks for this account, if it isn't the account's own.
 */
type ShownAccount = { address: unknown; isContract: boolean; witnessKey: unknown };

/** Asks for an account. The answer is `null` if the account was never activated. */
export function accountAt(account: AccountHex): Question<ShownAccount | null> {
  return {
    http: {
      path: '/wallet/getaccount',
      body: { address: `41${account}` },
      // {"address":"41…","type":"Contract","witness_permission":{"type":"Witness","keys":[{"address":"41…","weight":1}]}, …}
      read: (json) => {
        const {
          address,
          type,
          witness_permission: permission,
        } = json as {
          address?: unknown;
          type?: unknown;
          witness_permission?: { keys?: { address?: unknown }[] };
        };
        if (Object.keys(json as object).length === 0) return null;
        const witnessKey = Array.isArray(permission?.keys) ? permission.keys[0]?.address : undefined;
        return { address, isContract: type === 'Contract', witnessKey };
      },
    },
    grpc: {
      path: '/protocol.Wallet/GetAccount',
      request: writeBytes(3, hexToBytes(`41${account}`)),
      // Account: type=2, address=3, witness_permission=32; Permission: keys=7; Key: address=1. An account may hold thousands of tokens.
      newSink: wholeMessage((bytes) => {
        if (bytes.length === 0) return null;
        let witnessKey: string | undefined;
        let address = '';
        let isContract = false;
        const isRead = visitFields(bytes, 0, bytes.length, ({ number, start, end, low32 }) => {
          if (number === 2) isContract = low32 === CONTRACT_TYPE;
          if (number === 3) address = bytesToHex(bytes.subarray(start, end));
          if (number !== 32) return true;
          const [key] = repeatedBytesField(readMessage(bytes.subarray(start, end)) ?? [], 7);
          if (key !== undefined) witnessKey = bytesToHex(bytesField(readMessage(key) ?? [], 1));
          return true;
        });
        if (isRead === null) throw new TypeError('its response is not an account');
        return { address, isContract, witnessKey };
      }),
    },
  };
}

/** A contract's answer as 32-byte `words` in hex, which are `null` if the call reverts, or the reason if the node refused the call. */
type ConstantAnswer = { kind: 'answered'; words: string[] | null } | { kind: 'refused'; reason: string };

const SELECTOR_BYTES = 4;
const WORD = /^(?:[0-9a-f]{64})+$/i;

/**
 * Asks for the result of calling a contract method, such as `balanceOf(address)`, with one 32-byte argument in hex or none. Nodes only know
 * the state at their newest block and at their newest irreversible block.
 */
export function constantCall(
  side: 'solid' | 'any',
  contract: AccountHex,
  method: string,
  argument = '',
): Question<ConstantAnswer> {
  const selector = keccak_256(utf8ToBytes(method)).subarray(0, SELECTOR_BYTES);
  const account = `41${contract}`;
  return {
    http: {
      path: side === 'solid' ? '/walletsolidity/triggerconstantcontract' : '/wallet/triggerconstantcontract',
      body: {
        owner_address: account,
        contract_address: account,
        function_selector: method,
        parameter: argument,
        visible: false,
      },
      read: readConstantResult,
    },
    grpc: {
      path: `/protocol.${side === 'solid' ? 'WalletSolidity' : 'Wallet'}/TriggerConstantContract`,
      // TriggerSmartContract: owner_address=1, contract_address=2, data=4.
      request: Buffer.concat([
        writeBytes(1, hexToBytes(account)),
        writeBytes(2, hexToBytes(account)),
        writeBytes(4, Buffer.concat([selector, hexToBytes(argument)])),
      ]),
      newSink: wholeMessage(readExtention),
    },
  };
}

/**
 * For example, a balance of 25 USDT:
 * `{"result":{"result":true},"energy_used":935,"constant_result":["00…017d7840"],"transaction":{"ret":[{}], …}}`. If the call reverts, the
 * result is true as well, but there are no words. A refusal's message is hex-encoded UTF-8.
 */
function readConstantResult(json: unknown): ConstantAnswer {
  const { result = {}, constant_result: list } = json as {
    result?: { result?: unknown; message?: unknown };
    constant_result?: unknown;
  };
  const [first]: unknown[] = Array.isArray(list) ? list : [];
  const isRun = result.result === true && Array.isArray(list);
  return answerOf(isRun, typeof first === 'string' ? first : '', decodeMessage(result.message));
}

/** TransactionExtention: constant_result=3, result=4; Return: result=1, message=3. */
function readExtention(bytes: Uint8Array): ConstantAnswer {
  const fields = readMessage(bytes) ?? [];
  const result = readMessage(bytesField(fields, 4)) ?? [];
  const [first = new Uint8Array(0)] = repeatedBytesField(fields, 3);
  return answerOf(int64Field(result, 1) === 1n, bytesToHex(first), Buffer.from(bytesField(result, 3)).toString('utf8'));
}

function answerOf(isRun: boolean, hex: string, message: string): ConstantAnswer {
  if (!isRun) return { kind: 'refused', reason: message === '' ? 'no reason' : printableText(message) };
  const words = WORD.test(hex) && !message.startsWith('REVERT') ? (hex.match(/.{64}/g) ?? []) : null;
  return { kind: 'answered', words };
}

/** Decodes a message that the node has hex-encoded. Returns other text unchanged. */
function decodeMessage(message: unknown): string {
  if (typeof message !== 'string') return '';
  const isHex = message.length % 2 === 0 && /^[0-9a-f]+$/i.test(message);
  return isHex ? Buffer.from(message, 'hex').toString('utf8') : message;
}

/** The energy price in sun per energy unit, or `null` if the node returns no price or one that no real network has ever had. */
type EnergyPrice = number | null;

/** The network's votes have always set it between 10 and 420. A wrong price must not deter payers. */
const MAX_SUN = 1000;
const PRICE_KEY = 'getEnergyFee';
/** About eighty parameters, which take 4 KB. */
const PARAMETERS_BYTES = 64 * 1024;

/** Asks for the energy price, which is one of the chain parameters. */
export const ENERGY_PRICE: Question<EnergyPrice> = {
  maxBytes: PARAMETERS_BYTES,
  http: { path: '/wallet/getchainparameters', body: {}, read: readChainParameters },
  grpc: {
    path: '/protocol.Wallet/GetChainParameters',
    request: new Uint8Array(0),
    newSink: wholeMessage(readParameterMessage),
  },
};

/** `{"chainParameter":[{"key":"getMaintenanceTimeInterval","value":21600000},{"key":"getEnergyFee","value":100}, …]}`. */
function readChainParameters(json: unknown): EnergyPrice {
  const { chainParameter: list } = Object(json) as { chainParameter?: unknown };
  const named: { key?: unknown; value?: unknown }[] = Array.isArray(list) ? list.map(Object) : [];
  return inBounds(named.find(({ key }) => key === PRICE_KEY)?.value);
}

/** ChainParameters: chainParameter=1 {key=1, value=2}. */
function readParameterMessage(bytes: Uint8Array): EnergyPrice {
  for (const parameter of repeatedBytesField(readMessage(bytes) ?? [], 1)) {
    const fields = readMessage(parameter) ?? [];
    if (Buffer.from(bytesField(fields, 1)).toString('latin1') === PRICE_KEY)
      return inBounds(Number(int64Field(fields, 2)));
  }
  return null;
}

function inBounds(value: unknown): EnergyPrice {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_SUN ? Number(value) : null;
}
