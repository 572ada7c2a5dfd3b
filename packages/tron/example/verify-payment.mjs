import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import * as tron from '@quittance/tron';

// Block 79072107 of the main network, as a node's gRPC method Wallet/GetBlockByNum sent it.
const block = tron.blockFromMessage(gunzipSync(readFileSync(new URL('block-79072107.pb.gz', import.meta.url))));
const { number, txTrieRoot } = tron.decodeBlockHeader(block.header);
const transactions = [...block.transactions];
const root = tron.txTrieRoot(transactions.map(({ whole }) => whole));
if (root !== txTrieRoot) throw new Error(`the header commits to ${txTrieRoot}, and the transactions have ${root}`);
console.log(`block ${tron.blockIdOf(block.header, number)}: ${transactions.length} transactions, all in the header`);
const signer = tron.recoverWitness(block.header, tron.hexOf(block.signature));
console.log(`signed by ${tron.accountToAddress(signer)}`);

const usdt = tron.bytesFromHex(`41${tron.USDT_CONTRACTS.mainnet.account}`);
const payments = transactions.flatMap(({ rawData, isSuccess }) => {
  const call = tron.readContract(rawData, usdt)?.call;
  const transfer = isSuccess && call ? tron.decodeTransferCallBytes(call.calldata) : null;
  return transfer === null ? [] : [{ txId: tron.txIdOf(rawData), ...transfer }];
});
const [{ txId, to, value }] = payments;
console.log(
  `${payments.length} USDT transfers; the first is ${Number(value) / 1e6} USDT to ${tron.accountToAddress(to)}`,
);
console.log(`  in transaction ${txId}`);
