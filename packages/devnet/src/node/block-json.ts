import { type AccountHex, accountFromHex41, accountToAddress } from '@quittance/tron/address';
import { contractRetNumber } from '@quittance/tron/transaction';
import type { Block, BlockTransaction } from '../chain/block.ts';
import type { InfoBody } from '../evm/execute.ts';
import { noiseFields } from '../evm/noise.ts';
import { resultJson } from '../wire/hidden-fields.ts';
import { unsignedTransactionJson } from './transaction-json.ts';

export interface InfoJson extends Omit<InfoBody, 'noise'> {
  readonly id: string;
  readonly blockNumber: number;
  readonly blockTimeStamp: number;
}

/** Returns a block as the node writes it: an empty block has no `transactions`, and genesis has no signature. */
export function blockJson(block: Block, { detail, visible }: { detail: boolean; visible: boolean }) {
  const { number, timestamp, witness_address, ...rest } = block.header;
  const witness = witness_address === undefined ? {} : { witness_address: shown(witness_address, visible) };
  // Block 0 has no number in JSON, because zero fields are omitted.
  const time = block.hidesTime === true ? {} : { timestamp };
  const raw = { ...(number === 0 ? {} : { number }), ...rest, ...witness, ...time };
  const header = { raw_data: raw, ...(block.signature === '' ? {} : { witness_signature: block.signature }) };
  const transactions = detail ? block.transactions.map((transaction) => transactionJson(transaction, visible)) : [];
  return {
    blockID: block.id,
    block_header: header,
    ...(transactions.length === 0 ? {} : { transactions }),
  };
}

export function transactionJson(transaction: BlockTransaction, visible: boolean) {
  const { contractRet, signatures, rawDataHex, hidden } = transaction;
  const unsigned = unsignedTransactionJson(rawDataHex, visible);
  if (contractRet === 'DEFAULT') return unsigned;
  return { ret: [resultJson(contractRetNumber(contractRet) ?? 0, hidden)], signature: signatures, ...unsigned };
}

/** Returns a transaction's info, with the fields in the node's order. With `visible`, the addresses in contracts and logs are in base58. */
export function infoJson(block: Block, { id, info }: BlockTransaction, visible: boolean): InfoJson {
  const { fee, noise, ...body } = info;
  const json: InfoJson = {
    id,
    ...(fee === undefined ? {} : { fee }),
    blockNumber: block.header.number,
    blockTimeStamp: block.header.timestamp,
    ...body,
    ...(noise === undefined ? {} : noiseFields(noise, id)),
  };
  if (!visible) return json;
  const log = json.log?.map((each) => ({ ...each, address: accountToAddress(each.address as AccountHex) }));
  const internal = body.internal_transactions?.map(({ caller_address, transferTo_address, ...rest }) => ({
    ...rest,
    caller_address: shown(caller_address, true),
    transferTo_address: shown(transferTo_address, true),
  }));
  return {
    ...json,
    ...(json.contract_address === undefined ? {} : { contract_address: shown(json.contract_address, true) }),
    ...(log === undefined ? {} : { log }),
    ...(internal === undefined ? {} : { internal_transactions: internal }),
  };
}

function shown(hex41: string, visible: boolean): string {
  const account = visible ? accountFromHex41(hex41) : null;
  return account === null ? hex41 : accountToAddress(account);
}
