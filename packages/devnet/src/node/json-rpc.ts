import type { Block } from '../chain/block.ts';
import type { Parameters } from '../chain/parameters.ts';
import type { LogJson } from '../evm/abi.ts';
import { infoJson } from './block-json.ts';
import type { EndpointContext } from './endpoint.ts';
import { blockById } from './find-block.ts';

/** java-tron serves this on a separate port (8545, off by default). Big providers serve it next to `/wallet`, and so does the devnet. */
export const JSON_RPC_PATH = '/jsonrpc';

/** Returns the response to a body that isn't JSON. The library writes an id that it couldn't read as this text. */
export function unreadableJson(): object {
  return { jsonrpc: '2.0', id: 'null', error: unreadable().shown };
}

/**
 * Handles a JSON-RPC call, or a list of calls. Only `eth_getLogs` is supported. Example:
 * `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[…]}` → `{"jsonrpc":"2.0","id":1,"result":[…]}`.
 */
export function jsonRpcJson(context: EndpointContext): unknown {
  const { parameters } = context;
  if (!Array.isArray(parameters)) return answerCall(context, parameters);
  return parameters.map((each: unknown) => answerCall(context, each));
}

function answerCall(context: EndpointContext, call: unknown): object {
  if (typeof call !== 'object' || call === null) return failed('null', new JsonRpcError(-32600, 'invalid request'));
  const { id = null, method, params } = call as Parameters;
  try {
    if (method !== 'eth_getLogs') throw new JsonRpcError(-32601, 'method not found');
    if (!Array.isArray(params) || params.length !== 1) throw new JsonRpcError(-32602, 'method parameters invalid');
    return { jsonrpc: '2.0', id, result: getLogs(context, params[0]) };
  } catch (error) {
    if (error instanceof JsonRpcError) return failed(id, error);
    throw error;
  }
}

function failed(id: unknown, error: JsonRpcError): object {
  return { jsonrpc: '2.0', id, error: error.shown };
}

/** The defaults of java-tron's `node.jsonrpc.maxBlockRange` and `maxSubTopics`, and its `LogBlockQuery.MAX_RESULT`. */
const MAX_BLOCK_RANGE = 5_000;
const MAX_SUB_TOPICS = 1_000;
const MAX_RESULTS = 10_000;
const MAX_TOPICS = 4;

/** If a filter has any other field, java-tron refuses the whole request as unreadable. */
const FIELDS = ['fromBlock', 'toBlock', 'address', 'topics', 'blockHash'];

/** A log must come from one of these contracts, and have one of these topics at each position. An empty list allows all. */
interface LogFilter {
  readonly contracts: readonly string[];
  readonly topics: readonly (readonly string[])[];
}

/** A log as shown by java-tron's `LogFilterElement`, with its fields in alphabetical order. Quantities are hex without leading zeros. */
interface FilteredLog {
  readonly address: string;
  readonly blockHash: string;
  readonly blockNumber: string;
  readonly data: string;
  /** Counts all logs in the block, including those that don't match. */
  readonly logIndex: string;
  readonly removed: false;
  readonly topics: readonly string[];
  readonly transactionHash: string;
  readonly transactionIndex: string;
}

/**
 * `eth_getLogs` returns the matching logs in chain order. Example of a filter:
 * `{"fromBlock":"0x496ed40","toBlock":"0x496eda4","address":"0xa614f803b6fd780986a42c78ec9c7f77e6ded13c"}`. As in java-tron, a block above
 * the head isn't an error, and a missing block counts as empty. Throws a JsonRpcError.
 */
function getLogs({ ledger, view }: EndpointContext, given: unknown): readonly FilteredLog[] {
  if (typeof given !== 'object' || given === null || !Object.keys(given).every((name) => FIELDS.includes(name))) {
    throw unreadable();
  }
  const wanted = given as Parameters;
  const filter = { contracts: contractsOf(wanted['address']), topics: topicsOf(wanted['topics']) };
  const { from, to } = rangeOf({ ledger, view }, wanted);
  const found: FilteredLog[] = [];
  for (let number = Math.max(from, 1); number <= Math.min(to, view.headNumber); number += 1) {
    const block = view.block(number);
    if (block !== null) found.push(...matchesIn(block, filter));
    if (found.length > MAX_RESULTS) {
      throw new JsonRpcError(-32005, `query returned more than ${MAX_RESULTS} results`, '{}');
    }
  }
  return found;
}

function* matchesIn(block: Block, filter: LogFilter): Generator<FilteredLog> {
  let logIndex = 0;
  for (const [transactionIndex, transaction] of block.transactions.entries()) {
    for (const log of infoJson(block, transaction, false).log ?? []) {
      if (matches(filter, log)) {
        yield {
          address: `0x${log.address}`,
          blockHash: `0x${block.id}`,
          blockNumber: quantity(block.header.number),
          data: `0x${log.data}`,
          logIndex: quantity(logIndex),
          removed: false,
          topics: log.topics.map((topic) => `0x${topic}`),
          transactionHash: `0x${transaction.id}`,
          transactionIndex: quantity(transactionIndex),
        };
      }
      logIndex += 1;
    }
  }
}

function matches({ contracts, topics }: LogFilter, log: LogJson): boolean {
  if (contracts.length > 0 && !contracts.includes(log.address)) return false;
  return topics.every((allowed, index) => {
    const topic = log.topics[index];
    return topic !== undefined && (allowed.length === 0 || allowed.includes(topic));
  });
}

/**
 * Returns the requested blocks. If the lower bound is absent or `latest`, it's the head. If the upper bound is absent or `latest`, there's
 * no upper limit.
 */
function rangeOf(
  { ledger, view }: Pick<EndpointContext, 'ledger' | 'view'>,
  { fromBlock, toBlock, blockHash }: Parameters,
): { from: number; to: number } {
  if ((blockHash ?? null) !== null) {
    if ((fromBlock ?? toBlock ?? null) !== null) {
      throw invalidParams('cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other');
    }
    const number = blockById(view, hexDigits(String(blockHash)))?.header.number;
    if (number === undefined) throw invalidParams('invalid blockHash');
    return { from: number, to: number };
  }
  const [fromText, toText] = [String(fromBlock ?? ''), String(toBlock ?? '')];
  const solid = Math.min(view.headNumber, ledger.solidNumber());
  const to = heightOf(toText, solid) ?? Number.MAX_SAFE_INTEGER;
  const isOnlyTo = fromText === '' && toText !== '';
  const from = heightOf(fromText, solid) ?? (isOnlyTo ? Math.min(to, view.headNumber) : view.headNumber);
  if (from > to) throw invalidParams('please verify: fromBlock <= toBlock');
  if (Math.min(to, view.headNumber) - from > MAX_BLOCK_RANGE) {
    throw invalidParams(`exceed max block range: ${MAX_BLOCK_RANGE}`);
  }
  return { from, to };
}

/** Returns a bound's height, or null for the head or for no bound. */
function heightOf(bound: string, solid: number): number | null {
  const tag = bound.toLowerCase();
  if (tag === 'pending') throw invalidParams('TAG pending not supported');
  if (tag === '' || tag === 'latest') return null;
  if (tag === 'earliest') return 0;
  if (tag === 'finalized') return solid;
  if (!bound.startsWith('0x')) throw invalidParams('Incorrect hex syntax');
  if (/^0x[0-9a-f]{1,13}$/i.test(bound)) return Number(bound);
  throw new JsonRpcError(-32001, `For input string: "${bound.slice(2)}"`, 'java.lang.NumberFormatException');
}

/** An address has 20 bytes. java-tron refuses an address that has TRON's prefix 41. */
function contractsOf(address: unknown): readonly string[] {
  if (address === undefined || address === null) return [];
  if (typeof address === 'string') {
    const contract = hexOfLength(address, 20);
    if (contract === null) throw invalidParams(`invalid address: ${address}`);
    return [contract];
  }
  if (!Array.isArray(address)) throw invalidParams('invalid addresses in query');
  return address.map((each: unknown, index) => {
    const contract = hexOfLength(String(each), 20);
    if (contract === null) throw invalidParams(`invalid address at index ${index}: ${each}`);
    return contract;
  });
}

/** `[[a, b], null, c]` means a or b, followed by any topic, followed by c. */
function topicsOf(topics: unknown): LogFilter['topics'] {
  if (topics === undefined || topics === null) return [];
  // java-tron's parser reads a single value as a list with one element.
  const places: readonly unknown[] = Array.isArray(topics) ? topics : [topics];
  if (places.length > MAX_TOPICS) throw invalidParams(`topics size should be <= ${MAX_TOPICS}`);
  return places.map((place) => {
    if (place === null) return [];
    if (typeof place !== 'string' && !Array.isArray(place)) throw invalidParams('invalid topic(s)');
    const allowed: readonly unknown[] = typeof place === 'string' ? [place] : place;
    if (allowed.length > MAX_SUB_TOPICS) throw invalidParams(`exceed max topics: ${MAX_SUB_TOPICS}`);
    return allowed.map((each) => {
      const topic = hexOfLength(String(each), 32);
      if (topic === null) throw invalidParams(`invalid topic(s): ${each}`);
      return topic;
    });
  });
}

function hexOfLength(text: string, bytes: number): string | null {
  const digits = hexDigits(text);
  return digits.length === 2 * bytes && /^[0-9a-f]*$/.test(digits) ? digits : null;
}

/** Returns lowercase hex of whole bytes, without `0x`. */
function hexDigits(text: string): string {
  const digits = text.replace(/^0x/, '').toLowerCase();
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}

function quantity(value: number): string {
  return `0x${value.toString(16)}`;
}

/** A request's error, in the form that JSON-RPC defines. */
class JsonRpcError extends Error {
  override name = 'JsonRpcError';
  readonly #code: number;
  readonly #data: string | undefined;

  /** java-tron adds `data` to its own errors. The errors of its JSON-RPC library (jsonrpc4j) don't have it. */
  constructor(code: number, message: string, data?: string) {
    super(message);
    this.#code = code;
    this.#data = data;
  }

  /** The member `error` of the response. */
  get shown() {
    return { code: this.#code, message: this.message, ...(this.#data === undefined ? {} : { data: this.#data }) };
  }
}

/** `JsonRpcInvalidParamsException`. */
function invalidParams(message: string): JsonRpcError {
  return new JsonRpcError(-32602, message, '{}');
}

/** The error for a body or method parameter that doesn't have the expected form. */
function unreadable(): JsonRpcError {
  return new JsonRpcError(-32700, 'JSON parse error');
}
