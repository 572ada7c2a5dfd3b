import { contractRetName } from '../tron/transaction.ts';
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
