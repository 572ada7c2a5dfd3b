import { decodeMessage, encodeMessage, type Schema } from '@quittance/devnet/wire/protobuf-json';
import {
  ACCOUNT,
  ACCOUNT_REQUEST,
  BLOCK_LIMIT,
  BLOCK_REQUEST,
  CONTRACT_CALL,
  NUMBER_MESSAGE,
  TRANSACTION_EXTENTION,
  WITNESS_LIST,
} from '@quittance/devnet/wire/schemas';
import { accountFromHex41 } from '@quittance/tron/address';
import { blockIdOf, encodeBlockHeader } from '@quittance/tron/block-header';
import { writeElement } from '@quittance/tron/protobuf';
import { USDT_FILTER } from './block-logs.ts';
import type { Day, DayBlock, DayPlan } from './day.ts';

/** The chain as one request sees it, up to the height `top`. */
export type View = { day: Day; plan: DayPlan; top: number };

/** `newest` is the highest block in the response, or 0 if it has none. */
export type Answer = { parts: Buffer[]; newest: number };

type Parameters = Record<string, unknown>;

const EMPTY: Buffer[] = [Buffer.from('{}')];
const EMPTY_LIST: Buffer[] = [Buffer.from('[]')];
const COMMA = Buffer.from(',');
const OPEN_LIST = Buffer.from('[');
const OPEN_TRANSACTIONS = Buffer.from(',"transactions":[');
const CLOSE_BLOCK = Buffer.from(']}');
const CLOSE_HEADER = Buffer.from('}');
const OPEN_RANGE = Buffer.from('{"block":[');
const MAX_RANGE_BLOCKS = 100;
/** java-tron's limits for `eth_getLogs`: the distance between the first and the last block, and the number of logs in a response. */
const MAX_LOG_RANGE = 5000;
const MAX_LOGS = 10_000;
/** Candidates that make no blocks; the main network has several hundred. */
const CANDIDATE_COUNT = 373;

/** Returns a node's response to a call. Throws for calls that this benchmark doesn't know, so that someone notices them. */
export function answerOf(view: View, call: string, parameters: Parameters): Answer {
  switch (call) {
    case 'getnowblock':
      return { parts: whole(blockAt(view, view.top)), newest: view.top };
    case 'getblock':
      return getBlock(view, parameters);
    case 'getblockbylimitnext':
      return getRange(view, parameters);
    case 'gettransactioninfobyblocknum': {
      const block = blockAt(view, Number(parameters['num']));
      return { parts: block === null ? EMPTY_LIST : [block.infos()], newest: block?.number ?? 0 };
    }
    case 'jsonrpc':
      return getLogs(view, parameters);
    case 'listwitnesses':
      return json(witnesses(view));
    case 'getchainparameters':
      return json({ chainParameter: [{ key: 'getEnergyFee', value: 100 }] });
    case 'getaccount':
      return json(account(view, String(parameters['address'])));
    case 'triggerconstantcontract':
      return json({ result: { result: true }, energy_used: 935, constant_result: [constantOf(view, parameters)] });
    default:
      throw new Error(`the benchmark's node does not know ${call} ${JSON.stringify(parameters)}`);
  }
}

/** Does the same for gRPC. Returns `null` for an unknown method. */
export function grpcAnswerOf(view: View, method: string, request: Uint8Array): Answer | null {
  const parametersOf = (schema: Schema) => decodeMessage(schema, request) ?? {};
  const encoded = (schema: Schema, call: string, parameters: Parameters): Answer => {
    const { parts, newest } = answerOf(view, call, parameters);
    return {
      parts: [Buffer.from(encodeMessage(schema, JSON.parse(Buffer.concat(parts).toString()) as object))],
      newest,
    };
  };
  const block = (number: unknown, read: (block: DayBlock) => Buffer[]): Answer => {
    const found = blockAt(view, Number(number));
    return found === null ? { parts: [], newest: 0 } : { parts: read(found), newest: found.number };
  };
  switch (method) {
    case 'GetBlockByNum':
      return block(parametersOf(NUMBER_MESSAGE)['num'], (found) => found.message());
    case 'GetBlock': {
      const { id_or_num: wanted = view.top } = parametersOf(BLOCK_REQUEST);
      if (Number(wanted) === 0) return { parts: [GENESIS_MESSAGE], newest: 0 };
      return block(wanted, (found) => found.message().slice(-1));
    }
    case 'GetBlockByLimitNext': {
      const { startNum, endNum } = parametersOf(BLOCK_LIMIT);
      const parts: Buffer[] = [];
      for (let number = Number(startNum); number < Math.min(Number(endNum), view.top + 1); number += 1) {
        const message = Buffer.concat(view.day.block(number)?.message() ?? []);
        parts.push(Buffer.from(writeElement(1, message)));
      }
      return { parts, newest: Math.min(Number(endNum) - 1, view.top) };
    }
    case 'GetTransactionInfoByBlockNum':
      return block(parametersOf(NUMBER_MESSAGE)['num'], (found) => [found.infosMessage()]);
    case 'ListWitnesses':
      return encoded(WITNESS_LIST, 'listwitnesses', {});
    case 'GetAccount':
      return encoded(ACCOUNT, 'getaccount', parametersOf(ACCOUNT_REQUEST));
    case 'TriggerConstantContract':
      return encoded(TRANSACTION_EXTENTION, 'triggerconstantcontract', parametersOf(CONTRACT_CALL));
    default:
      return null;
  }
}

function getBlock(view: View, { id_or_num, detail }: Parameters): Answer {
  const wanted = id_or_num === undefined ? view.top : Number(id_or_num);
  if (wanted === 0) return json(GENESIS);
  const block = blockAt(view, wanted);
  return { parts: detail === true ? whole(block) : header(block), newest: block?.number ?? 0 };
}

function getRange(view: View, parameters: Parameters): Answer {
  const [start, end] = [Number(parameters['startNum']), Number(parameters['endNum'])];
  if (!(start < end && end - start <= MAX_RANGE_BLOCKS)) return { parts: EMPTY, newest: 0 };
  const parts: Buffer[] = [OPEN_RANGE];
  let newest = 0;
  for (let number = start; number < end; number += 1) {
    const block = blockAt(view, number);
    if (block === null) break;
    if (newest > 0) parts.push(COMMA);
    parts.push(...whole(block));
    newest = number;
  }
  return newest === 0 ? { parts: EMPTY, newest } : { parts: [...parts, CLOSE_BLOCK], newest };
}

/** Answers `eth_getLogs` only for all USDT logs. */
function getLogs(view: View, { id, method, params }: Parameters): Answer {
  const [{ fromBlock, toBlock, address, ...rest } = {}, ...more] = (params ?? []) as Record<string, unknown>[];
  const isKnown = method === 'eth_getLogs' && String(address).toLowerCase() === USDT_FILTER;
  if (!isKnown || more.length > 0 || Object.keys(rest).length > 0) {
    throw new Error(`the benchmark's node does not know ${method} ${JSON.stringify(params)}`);
  }
  const failed = (code: number, message: string) => json({ jsonrpc: '2.0', id, error: { code, message, data: '{}' } });
  const [from, to] = [Number(fromBlock), Math.min(Number(toBlock), view.top)];
  if (to - from > MAX_LOG_RANGE) return failed(-32602, `exceed max block range: ${MAX_LOG_RANGE}`);
  const parts: Buffer[] = [];
  let [count, newest] = [0, 0];
  for (let number = from; number <= to; number += 1) {
    const block = blockAt(view, number);
    if (block === null) continue;
    count += block.logCount;
    newest = number;
    if (count > MAX_LOGS) return failed(-32005, `query returned more than ${MAX_LOGS} results`);
    for (const logs of block.logs()) if (logs.length > 0) parts.push(parts.length === 0 ? OPEN_LIST : COMMA, logs);
  }
  const head = Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`);
  return { parts: parts.length === 0 ? [head, ...EMPTY_LIST, CLOSE_HEADER] : [head, ...parts, CLOSE_BLOCK], newest };
}

function blockAt({ day, top }: View, number: number): DayBlock | null {
  return number > top ? null : day.block(number);
}

function whole(block: DayBlock | null): Buffer[] {
  return block === null ? EMPTY : [block.head, OPEN_TRANSACTIONS, ...block.transactions, CLOSE_BLOCK];
}

function header(block: DayBlock | null): Buffer[] {
  return block === null ? EMPTY : [block.head, CLOSE_HEADER];
}

function json(value: object): Answer {
  return { parts: [Buffer.from(JSON.stringify(value))], newest: 0 };
}

/** Block 0 of the main network has no witness and no signature. This one belongs to no real network. */
const GENESIS_HEADER = { txTrieRoot: '00'.repeat(32), parentHash: 'be'.repeat(32) };
const GENESIS = {
  blockID: blockIdOf(encodeBlockHeader(GENESIS_HEADER) ?? new Uint8Array(), 0),
  block_header: { raw_data: GENESIS_HEADER },
};

const GENESIS_MESSAGE = Buffer.from(
  writeElement(2, writeElement(1, encodeBlockHeader(GENESIS_HEADER) ?? new Uint8Array())),
);

function witnesses({ day }: View) {
  const made = day.producers.map(({ account: of }, turn) => ({
    address: `41${of}`,
    voteCount: 500_000_000 - turn,
    url: `https://producer-${turn}.invalid`,
    isJobs: true,
  }));
  const others = Array.from({ length: CANDIDATE_COUNT }, (_, index) => ({
    address: `41${(index + 1).toString(16).padStart(40, '0')}`,
    voteCount: 1_000_000 - index,
    url: `https://candidate-${index}.invalid`,
  }));
  return { witnesses: [...made, ...others] };
}

function account({ day }: View, address: string): object {
  const producer = day.producers.find((each) => each.account === accountFromHex41(address));
  if (producer === undefined) return { address };
  const keys = [{ address: `41${producer.signer}`, weight: 1 }];
  return {
    address,
    is_witness: true,
    witness_permission: { type: 'Witness', id: 1, permission_name: 'witness', threshold: 1, keys },
  };
}

/** `balanceOf` returns the sum of the payments so far; every other call returns no or zero. */
function constantOf({ plan, top }: View, { function_selector, parameter, data }: Parameters): string {
  const isBalance = function_selector === 'balanceOf(address)' || String(data).startsWith('70a08231');
  const owner = String(parameter ?? data ?? '').slice(-40);
  const paid = plan.payments.filter((payment) => isBalance && payment.account === owner && payment.number <= top);
  const sum = paid.reduce((total, { amountMicro }) => total + BigInt(amountMicro), 0n);
  return sum.toString(16).padStart(64, '0');
}
