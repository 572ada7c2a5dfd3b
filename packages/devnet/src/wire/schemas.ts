import { contractRetName } from '@quittance/tron/transaction';
import { field, list, type Schema } from './protobuf-json.ts';

/** Tron.proto `Transaction.Result.contractResult`. */
const CONTRACT_RESULTS = Array.from({ length: 16 }, (_, code) => contractRetName(code) ?? '');

const CODES = ['SUCESS', 'FAILED'];

const ORDER_DETAIL: Schema = {
  makerOrderId: field(1, 'bytes'),
  takerOrderId: field(2, 'bytes'),
  fillSellQuantity: field(3, 'integer'),
  fillBuyQuantity: field(4, 'integer'),
};

/** Tron.proto `Transaction.Result`, without the map `cancel_unfreezeV2_amount`. */
export const RESULT: Schema = {
  fee: field(1, 'integer'),
  ret: field(2, CODES),
  contractRet: field(3, CONTRACT_RESULTS),
  assetIssueID: field(14, 'text'),
  withdraw_amount: field(15, 'integer'),
  unfreeze_amount: field(16, 'integer'),
  exchange_received_amount: field(18, 'integer'),
  exchange_inject_another_amount: field(19, 'integer'),
  exchange_withdraw_another_amount: field(20, 'integer'),
  exchange_id: field(21, 'integer'),
  shielded_transaction_fee: field(22, 'integer'),
  orderId: field(25, 'bytes'),
  orderDetails: list(26, { message: ORDER_DETAIL }),
  withdraw_expire_amount: field(27, 'integer'),
};

const LOG: Schema = { address: field(1, 'bytes'), topics: list(2, 'bytes'), data: field(3, 'bytes') };

const RECEIPT: Schema = {
  energy_fee: field(2, 'integer'),
  energy_usage_total: field(4, 'integer'),
  net_usage: field(5, 'integer'),
  net_fee: field(6, 'integer'),
  result: field(7, CONTRACT_RESULTS),
};

const INTERNAL_TRANSACTION: Schema = {
  hash: field(1, 'bytes'),
  caller_address: field(2, 'bytes'),
  transferTo_address: field(3, 'bytes'),
  callValueInfo: list(4, { message: {} }),
  note: field(5, 'bytes'),
};

/** Tron.proto `TransactionInfo`, with the fields that a devnet uses. */
export const TRANSACTION_INFO: Schema = {
  id: field(1, 'bytes'),
  fee: field(2, 'integer'),
  blockNumber: field(3, 'integer'),
  blockTimeStamp: field(4, 'integer'),
  contractResult: list(5, 'bytes'),
  contract_address: field(6, 'bytes'),
  receipt: field(7, { message: RECEIPT }),
  log: list(8, { message: LOG }),
  result: field(9, CODES),
  resMessage: field(10, 'bytes'),
  internal_transactions: list(17, { message: INTERNAL_TRANSACTION }),
};

export const TRANSACTION_INFO_LIST: Schema = { transactionInfo: list(1, { message: TRANSACTION_INFO }) };

const WITNESS: Schema = {
  address: field(1, 'bytes'),
  voteCount: field(2, 'integer'),
  url: field(4, 'text'),
  totalProduced: field(5, 'integer'),
  latestBlockNum: field(7, 'integer'),
  latestSlotNum: field(8, 'integer'),
  isJobs: field(9, 'boolean'),
};

export const WITNESS_LIST: Schema = { witnesses: list(1, { message: WITNESS }) };

/** Tron.proto `ChainParameters`. */
export const CHAIN_PARAMETERS: Schema = {
  chainParameter: list(1, { message: { key: field(1, 'text'), value: field(2, 'integer') } }),
};

const PERMISSION: Schema = {
  type: field(1, ['Owner', 'Witness', 'Active']),
  id: field(2, 'integer'),
  permission_name: field(3, 'text'),
  threshold: field(4, 'integer'),
  operations: field(6, 'bytes'),
  keys: list(7, { message: { address: field(1, 'bytes'), weight: field(2, 'integer') } }),
};

/** Tron.proto `Account`, with the fields that a devnet uses. */
export const ACCOUNT: Schema = {
  address: field(3, 'bytes'),
  balance: field(4, 'integer'),
  create_time: field(9, 'integer'),
  is_witness: field(14, 'boolean'),
  net_window_size: field(24, 'integer'),
  account_resource: field(26, { message: { energy_window_size: field(9, 'integer') } }),
  owner_permission: field(31, { message: PERMISSION }),
  witness_permission: field(32, { message: PERMISSION }),
  active_permission: list(33, { message: PERMISSION }),
  frozenV2: list(34, { message: { type: field(1, ['BANDWIDTH', 'ENERGY', 'TRON_POWER']) } }),
};

/** api.proto `Return`. */
const RETURN: Schema = {
  result: field(1, 'boolean'),
  code: field(2, ['SUCCESS', 'SIGERROR', 'CONTRACT_VALIDATE_ERROR', 'CONTRACT_EXE_ERROR']),
  message: field(3, 'bytes'),
};

/** api.proto `TransactionExtention`. The message's first field, the Transaction, is encoded separately. */
export const TRANSACTION_EXTENTION: Schema = {
  txid: field(2, 'bytes'),
  constant_result: list(3, 'bytes'),
  result: field(4, { message: RETURN }),
  energy_used: field(5, 'integer'),
  logs: list(6, { message: LOG }),
};

/** The api.proto requests. */
export const BLOCK_REQUEST: Schema = { id_or_num: field(1, 'text'), detail: field(2, 'boolean') };
export const NUMBER_MESSAGE: Schema = { num: field(1, 'integer') };
export const BYTES_MESSAGE: Schema = { value: field(1, 'bytes') };
export const BLOCK_LIMIT: Schema = { startNum: field(1, 'integer'), endNum: field(2, 'integer') };
export const ACCOUNT_REQUEST: Schema = { address: field(3, 'bytes') };
export const CONTRACT_CALL: Schema = {
  owner_address: field(1, 'bytes'),
  contract_address: field(2, 'bytes'),
  call_value: field(3, 'integer'),
  data: field(4, 'bytes'),
};
