import { hexToBytes } from '@noble/hashes/utils.js';
import { writeBytes } from '../../tron/protobuf.ts';
import { splitTransaction, type TransactionBytes, transactionBytes } from '../../tron/transaction-bytes.ts';
import { type Question, wholeMessage } from './question.ts';

/** A transaction by its id, wherever it stands; `null`: the node does not know it. */
export function transactionBy(txId: string): Question<TransactionBytes | null> {
  const found = (bytes: TransactionBytes | null) => {
    if (bytes === null) throw new TypeError(`what it shows as ${txId} is no transaction`);
    return bytes;
  };
  return {
    http: {
      path: '/wallet/gettransactionbyid',
      body: { value: txId },
      read: (json) => (Object.keys(json as object).length === 0 ? null : found(transactionBytes(json))),
    },
    grpc: {
      path: '/protocol.Wallet/GetTransactionById',
      request: writeBytes(1, hexToBytes(txId)),
      newSink: wholeMessage((bytes) => (bytes.length === 0 ? null : found(splitTransaction(bytes)))),
    },
  };
}
