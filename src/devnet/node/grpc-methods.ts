import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeElement } from '../../tron/protobuf.ts';
import { txIdOf } from '../../tron/transaction.ts';
import { type Block, headerBytes, transactionBytesOf } from '../chain/block.ts';
import type { LedgerView } from '../chain/ledger.ts';
import { ParameterError, type Parameters } from '../chain/parameters.ts';
import { hasFault } from '../faults/faults.ts';
import { resultBytesOf, unsignedBytes } from '../wire/hidden-fields.ts';
import { decodeMessage, encodeMessage, type Schema } from '../wire/protobuf-json.ts';
import {
  ACCOUNT,
  ACCOUNT_REQUEST,
  BLOCK_LIMIT,
  BLOCK_REQUEST,
  BYTES_MESSAGE,
  CHAIN_PARAMETERS,
  CONTRACT_CALL,
  NUMBER_MESSAGE,
  TRANSACTION_EXTENTION,
  TRANSACTION_INFO,
  TRANSACTION_INFO_LIST,
  WITNESS_LIST,
} from '../wire/schemas.ts';
import { findBlock, rangeOf } from './find-block.ts';
import { type Answering, answerRequest, viewAt } from './node-answers.ts';

export type GrpcService = 'Wallet' | 'WalletSolidity';

/** A call that ends with another status than 0. */
export class GrpcError extends Error {
  override name = 'GrpcError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** gRPC status codes. */
const [UNKNOWN, INVALID_ARGUMENT, UNIMPLEMENTED] = [2, 3, 12];

interface Call {
  readonly view: LedgerView;
  readonly request: Parameters;
  readonly shows: (block: Block) => readonly Uint8Array[];
  /** The answer of the JSON API at the path of this name. */
  readonly json: (parameters: Parameters) => unknown;
}

interface Method {
  readonly request: Schema;
  readonly run: (call: Call) => Uint8Array;
}

/** A block that is missing, an unknown id and an empty list are all a message without fields. */
const NOTHING = new Uint8Array(0);

const BOTH: Readonly<Record<string, Method>> = {
  GetNowBlock: method({}, ({ view, shows }) => plainBlock(view.block(view.headNumber), shows)),
  GetNowBlock2: method({}, ({ view, shows }) => extendedBlock(view.block(view.headNumber), shows)),
  GetBlockByNum: method(NUMBER_MESSAGE, ({ view, request, shows }) => plainBlock(view.block(numberOf(request)), shows)),
  GetBlockByNum2: method(NUMBER_MESSAGE, ({ view, request, shows }) =>
    extendedBlock(view.block(numberOf(request)), shows),
  ),
  GetBlock: method(BLOCK_REQUEST, ({ view, request, shows }) => {
    const block = findBlock(view, String(request['id_or_num'] ?? ''));
    return extendedBlock(block, request['detail'] === true ? shows : () => []);
  }),
  GetTransactionById: method(BYTES_MESSAGE, ({ view, request }) => {
    const found = view.transaction(String(request['value'] ?? ''));
    return found === null ? NOTHING : transactionBytesOf(found.transaction);
  }),
  GetTransactionInfoById: method(BYTES_MESSAGE, ({ request, json }) =>
    encodeMessage(TRANSACTION_INFO, json({ value: request['value'] ?? '' }) as object),
  ),
  GetTransactionInfoByBlockNum: method(NUMBER_MESSAGE, ({ request, json }) => {
    const infos = json({ num: numberOf(request) });
    return encodeMessage(TRANSACTION_INFO_LIST, { transactionInfo: Array.isArray(infos) ? infos : [] });
  }),
  ListWitnesses: method({}, ({ json }) => encodeMessage(WITNESS_LIST, json({}) as object)),
  GetAccount: method(ACCOUNT_REQUEST, ({ request, json }) => {
    const address = String(request['address'] ?? '');
    // By gRPC, a text that is no address means an account that does not exist.
    return /^41.{40}$/.test(address) ? encodeMessage(ACCOUNT, json({ address }) as object) : NOTHING;
  }),
  TriggerConstantContract: method(CONTRACT_CALL, constantCall),
};

const METHODS: Readonly<Record<GrpcService, Readonly<Record<string, Method>>>> = {
  Wallet: {
    ...BOTH,
    GetChainParameters: method({}, ({ json }) => encodeMessage(CHAIN_PARAMETERS, json({}) as object)),
    GetBlockByLimitNext: method(BLOCK_LIMIT, ({ view, request, shows }) => blockList(view, request, plainBlock, shows)),
    GetBlockByLimitNext2: method(BLOCK_LIMIT, ({ view, request, shows }) =>
      blockList(view, request, extendedBlock, shows),
    ),
  },
  WalletSolidity: BOTH,
};

/** The path of the JSON API that answers the same; faults limited to it concern the method too. `GetBlock` of `Wallet` is `/wallet/getblock`. */
export function pathOfMethod(service: GrpcService, name: string): string {
  return `/${service}/${name.replace(/2$/, '')}`.toLowerCase();
}

/** The message that answers a call, with the exact bytes of headers and transactions. Throws a GrpcError. */
export function answerCall(node: Answering, service: GrpcService, name: string, request: Uint8Array): Uint8Array {
  const called = Object.hasOwn(METHODS[service], name) ? METHODS[service][name] : undefined;
  if (called === undefined) throw new GrpcError(UNIMPLEMENTED, `Method not found: protocol.${service}/${name}`);
  const decoded = decodeMessage(called.request, request);
  if (decoded === null) throw new GrpcError(UNKNOWN, 'Application error processing RPC');
  const path = pathOfMethod(service, name);
  const { view, faults } = viewAt(node, path, service === 'Wallet' ? 'full' : 'solid');
  const shows = (block: Block) => (hasFault(faults, 'empty-block') ? [] : block.transactions.map(transactionBytesOf));
  const json = (parameters: Parameters) => answerRequest(node, path, parameters);
  try {
    return called.run({ view, request: decoded, shows, json });
  } catch (error) {
    if (error instanceof ParameterError) throw new GrpcError(INVALID_ARGUMENT, error.message);
    throw error;
  }
}

function method(request: Schema, run: Method['run']): Method {
  return { request, run };
}

function numberOf({ num = 0 }: Parameters): number {
  return Number(num);
}

/** `Block`. */
function plainBlock(block: Block | null, shows: Call['shows']): Uint8Array {
  if (block === null) return NOTHING;
  return concatBytes(...shows(block).map((each) => writeElement(1, each)), writeElement(2, header(block)));
}

/** `BlockExtention`: each Transaction with its id and `Return{result: true}`. */
function extendedBlock(block: Block | null, shows: Call['shows']): Uint8Array {
  if (block === null) return NOTHING;
  const transactions = shows(block).map((bytes, index) => {
    const id = hexToBytes(block.transactions[index]?.id ?? '');
    return writeElement(1, concatBytes(writeElement(1, bytes), writeBytes(2, id), hexToBytes('22020801')));
  });
  return concatBytes(...transactions, writeElement(2, header(block)), writeBytes(3, hexToBytes(block.id)));
}

function header(block: Block): Uint8Array {
  return concatBytes(writeElement(1, headerBytes(block)), writeBytes(2, hexToBytes(block.signature)));
}

function blockList(
  view: LedgerView,
  { startNum = 0, endNum = 0 }: Parameters,
  encode: typeof plainBlock,
  shows: Call['shows'],
): Uint8Array {
  const blocks = rangeOf(view, Number(startNum), Number(endNum)) ?? [];
  return concatBytes(...blocks.map((block) => writeElement(1, encode(block, shows))));
}

/** `TransactionExtention`: unlike by JSON, a call without an owner is made, and an error has its prefix. */
function constantCall({ request, json }: Call): Uint8Array {
  const owner = request['owner_address'] ?? `41${'00'.repeat(20)}`;
  const answer = json({ ...request, owner_address: owner }) as {
    readonly result: { readonly code?: string; readonly message?: string };
    readonly transaction?: { readonly raw_data_hex: string; readonly ret: readonly { readonly ret?: string }[] };
  };
  const { transaction, result } = answer;
  if (transaction === undefined) {
    const prefix = Buffer.from('Contract validate error : ').toString('hex');
    return encodeMessage(TRANSACTION_EXTENTION, { result: { ...result, message: prefix + (result.message ?? '') } });
  }
  const rawData = hexToBytes(transaction.raw_data_hex);
  const whole = unsignedBytes(rawData, resultBytesOf(transaction.ret[0] ?? {}));
  return concatBytes(
    writeElement(1, whole),
    encodeMessage(TRANSACTION_EXTENTION, { ...answer, txid: txIdOf(rawData) }),
  );
}
