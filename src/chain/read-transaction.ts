import { hash } from 'node:crypto';
import { AppError } from '../domain/errors.ts';
import { microUsdt } from '../domain/money.ts';
import { unixMs } from '../domain/time.ts';
import type { TransactionFacts } from '../domain/transaction-facts.ts';
import type { AccountHex } from '../tron/address.ts';
import { bytesFromHex } from '../tron/hex.ts';
import { decodeRawTransaction } from '../tron/raw-transaction.ts';
import { contractRetNumber } from '../tron/transaction.ts';
import { transactionBytes } from '../tron/transaction-bytes.ts';
import { decodeTransferLog } from '../tron/usdt.ts';
import type { Node } from './node-member.ts';
import { describeTransaction } from './prove-block.ts';
import { readLogs } from './read-logs.ts';

/**
 * The largest transactions have 500 kB in bytes, a megabyte in hex, and their logs are limited by energy. An answer that is too
 * large pauses the node, so the bound is beyond what a payer could have the chain hold for little.
 */
const ANSWER_BYTES = 8 * 1024 * 1024;
/** Further ones of a multisend are the business of others. */
const MAX_TRANSFERS = 10_000;
/** Tron.proto `TransferAssetContract`: a token of the chain itself. */
const TRC10_TRANSFER_TYPE = 2;
/** The last time that has an ISO form of four digits for the year. */
const MAX_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_REASON = 300;

/**
 * What one node shows of a transaction; `not-found`: it knows none in a block. One request, two where there is one. Beyond what
 * is recomputed from its bytes (its id, and what it asks a contract to do) it is that node's word. Error: `NODE_REFUSED`.
 */
export async function readTransaction(
  node: Pick<Node, 'origin' | 'post'>,
  txId: string,
  usdt: AccountHex,
): Promise<TransactionFacts> {
  const info = await node.post('/wallet/gettransactioninfobyid', { value: txId }, { maxBytes: ANSWER_BYTES });
  if (isEmpty(info)) return { kind: 'not-found' };
  const json = await node.post('/wallet/gettransactionbyid', { value: txId }, { maxBytes: ANSWER_BYTES });
  try {
    return readFacts(txId, { info, json }, usdt);
  } catch (error) {
    // Whatever a check stumbles over came from the node; its message may be as long as the node likes.
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, MAX_REASON);
    throw new AppError('NODE_REFUSED', `${node.origin}: ${reason}`, { retryable: true });
  }
}

/**
 * Throws on what is no answer about this transaction, or contradicts itself. The info of one that failed:
 * `{"id":"8c0f…","fee":1000000,"blockNumber":156,"blockTimeStamp":1790865477000,"contractResult":[""],"contract_address":"41…",
 * "receipt":{"energy_fee":1000000,"result":"OUT_OF_ENERGY"},"result":"FAILED","resMessage":"4e6f…"}`.
 */
export function readFacts(
  txId: string,
  { info, json }: { info: unknown; json: unknown },
  usdt: AccountHex,
): TransactionFacts {
  const bytes = transactionBytes(json);
  if (bytes === null) throw new TypeError(`what it shows as ${txId} is no transaction`);
  const shownId = hash('sha256', bytes.rawData, 'hex');
  if (shownId !== txId) throw new TypeError(`it shows transaction ${shownId} as ${txId}`);
  const block = readPlace(info);
  const transaction = describeTransaction(txId, bytes, bytesFromHex(`41${usdt}`) ?? new Uint8Array(0));
  const { transfers } = readLogs({ ...block, transactions: [transaction] }, [info], usdt);
  const placed = { blockNumber: block.number, blockTime: block.time };
  // Only a contract can fail inside a block; anything else that fails is left out of it.
  if (transaction.isContract && !bytes.isSuccess) return { kind: 'failed', ...placed, result: readResult(json) };
  if (transfers.length > MAX_TRANSFERS) throw new RangeError(`it shows ${transfers.length} transfers in ${txId}`);
  return {
    kind: 'done',
    ...placed,
    usdt: transfers.map(({ to, amount }) => ({ to, amountMicro: microUsdt(amount) })),
    otherTokens: transaction.isContract ? readOtherTokens(info, usdt) : [],
    ...readPlain(transaction.isContract ? null : bytes.rawData),
  };
}

function readPlace(info: unknown) {
  const { blockNumber, blockTimeStamp } = info as { blockNumber?: unknown; blockTimeStamp?: unknown };
  const isHeight = typeof blockNumber === 'number' && Number.isSafeInteger(blockNumber) && blockNumber > 0;
  const isTime = typeof blockTimeStamp === 'number' && Number.isSafeInteger(blockTimeStamp);
  if (!isHeight || !isTime || blockTimeStamp < 0 || blockTimeStamp > MAX_TIME_MS) {
    throw new TypeError(`it shows a transaction in block ${blockNumber} at ${blockTimeStamp}`);
  }
  return { number: blockNumber, time: unixMs(blockTimeStamp) };
}

function readResult(json: unknown): string {
  const [first] = (json as { ret?: { contractRet?: unknown }[] }).ret ?? [];
  const name = first?.contractRet;
  return typeof name === 'string' && contractRetNumber(name) !== null ? name : 'DEFAULT';
}

/** Transfer events of other contracts. Whatever calls itself USDT is among them. */
function readOtherTokens(info: unknown, usdt: AccountHex): { contract: AccountHex; to: AccountHex }[] {
  const { log = [] } = info as { log?: unknown[] };
  if (log.length > MAX_TRANSFERS) throw new RangeError(`it shows ${log.length} logs`);
  return log.flatMap((each) => {
    const transfer = decodeTransferLog(each ?? {});
    if (transfer === null || transfer.contract === usdt || transfer.value === 0n) return [];
    return [{ contract: transfer.contract, to: transfer.to }];
  });
}

/** What a transaction that calls no contract moved. */
function readPlain(rawData: Uint8Array | null): Pick<Extract<TransactionFacts, { kind: 'done' }>, 'trx' | 'isTrc10'> {
  const contract = rawData === null ? undefined : decodeRawTransaction(rawData)?.contract;
  const isTrc10 = contract?.kind === 'other' && contract.type === TRC10_TRANSFER_TYPE;
  if (contract?.kind !== 'transfer') return { trx: null, isTrc10 };
  if (contract.amountSun < 0n) throw new RangeError(`it shows a transfer of ${contract.amountSun} sun`);
  return { trx: { to: contract.to, amountSun: contract.amountSun }, isTrc10 };
}

function isEmpty(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && Object.keys(answer).length === 0;
}
