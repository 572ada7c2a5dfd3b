import { hash } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import type { TransactionFacts } from '../../domain/lookup/transaction-facts.ts';
import { microUsdt } from '../../domain/money.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import type { AccountHex } from '../../tron/address.ts';
import { bytesFromHex } from '../../tron/hex.ts';
import { decodeRawTransaction } from '../../tron/raw-transaction.ts';
import { contractRetName } from '../../tron/transaction.ts';
import type { TransactionBytes } from '../../tron/transaction-bytes.ts';
import { decodeTransferCall, decodeTransferLog } from '../../tron/usdt.ts';
import { constantCall } from '../nodes/ask-contract.ts';
import { infoOf, type ShownInfo } from '../nodes/ask-infos.ts';
import { transactionBy } from '../nodes/ask-transaction.ts';
import type { Node } from '../nodes/node.ts';
import { orNull } from '../proof/or-null.ts';
import { describeTransaction } from '../proof/prove-block.ts';
import { readLogs } from './read-logs.ts';

/**
 * A payer may ask for any transaction that somebody had the chain hold, so answers are small, and the node is not blamed for their
 * size or their slowness. A payment takes four kilobytes; this is enough for one to a thousand recipients.
 */
const QUESTION = { maxBytes: 512 * 1024, isOptional: true } as const;
/** The clocks of this machine and of the chain may differ by so much. */
const MAX_AHEAD_MS = 3_600_000;
/** The blocks of a year: a service that stood still for longer does not answer before its watcher goes on. */
const MAX_AHEAD_BLOCKS = 10_512_000;
/** Tron.proto `TransferAssetContract`: a token of the chain itself. */
const TRC10_TRANSFER_TYPE = 2;
const MAX_REASON = 300;

/** Our knowledge of the chain without the node that is asked. `head`: the newest examined block. */
export type Known = { usdt: AccountHex; now: UnixMs; head: { number: number; time: UnixMs } | null };

/**
 * Reads a transaction as one node shows it; `not-found`: the node knows none in a block. Costs one request, two where there is one, and
 * three where a transfer of USDT was refused.
 * Its id, and what it asks a contract to do, are recomputed from its bytes; the rest is that node's word.
 * Errors: `NODE_REFUSED`; `AnswerTooLarge`, which is one.
 */
export async function readTransaction(
  node: Pick<Node, 'origin' | 'ask'>,
  txId: string,
  known: Known,
): Promise<TransactionFacts> {
  const info = await node.ask(infoOf(txId, null), QUESTION);
  if (info === null) return { kind: 'not-found' };
  const transaction = await node.ask(transactionBy(txId), QUESTION);
  const facts = readFactsOf(node, txId, { info, transaction }, known);
  if (facts.kind !== 'failed' || facts.payer === null) return facts;
  const { account } = facts.payer;
  return { ...facts, payer: { account, isFrozen: await isFrozen(node, known.usdt, account) } };
}

/** Whether the contract refuses what this account sends. A node that does not say so says no: the payer gets the general advice. */
async function isFrozen(node: Pick<Node, 'ask'>, usdt: AccountHex, account: AccountHex): Promise<boolean> {
  const question = constantCall('any', usdt, 'isBlackListed(address)', account.padStart(64, '0'));
  const answer = await node.ask(question, { isOptional: true }).catch(orNull);
  return answer?.kind === 'answered' && BigInt(`0x${answer.words?.[0] ?? '0'}`) !== 0n;
}

function readFactsOf(
  node: Pick<Node, 'origin'>,
  txId: string,
  shown: { info: ShownInfo; transaction: TransactionBytes | null },
  known: Known,
): TransactionFacts {
  try {
    return readFacts(txId, shown, known);
  } catch (error) {
    // Any error of a check came from the node; its message may be as long as the node likes.
    const reason = reasonOf(error).slice(0, MAX_REASON);
    throw new AppError('NODE_REFUSED', `${node.origin}: ${reason}`, { retryable: true });
  }
}

/**
 * Throws on an answer that is not about this transaction, or contradicts itself. The info of one that failed:
 * `{"id":"8c0f…","fee":1000000,"blockNumber":156,"blockTimeStamp":1790865477000,"contractResult":[""],"contract_address":"41…",
 * "receipt":{"energy_fee":1000000,"result":"OUT_OF_ENERGY"},"result":"FAILED","resMessage":"4e6f…"}`.
 */
export function readFacts(
  txId: string,
  { info, transaction }: { info: ShownInfo; transaction: TransactionBytes | null },
  known: Known,
): TransactionFacts {
  const { usdt } = known;
  if (transaction === null) throw new TypeError(`it does not show transaction ${txId}`);
  const shownId = hash('sha256', transaction.rawData, 'hex');
  if (shownId !== txId) throw new TypeError(`it shows transaction ${shownId} as ${txId}`);
  const block = readPlace(info, known);
  const facts = describeTransaction(txId, transaction, bytesFromHex(`41${usdt}`) ?? new Uint8Array(0));
  const { transfers } = readLogs({ ...block, transactions: [facts] }, [info], usdt);
  const placed = { blockNumber: block.number, blockTime: block.time };
  // Only a contract can fail inside a block; anything else that fails is left out of it.
  const mayFail = facts.isContract !== false;
  const result = contractRetName(transaction.contractRet) ?? 'DEFAULT';
  if (mayFail && !facts.isSuccess) {
    const account = result === 'REVERT' ? readPayer(transaction.rawData, usdt) : null;
    return { kind: 'failed', ...placed, result, payer: account && { account, isFrozen: false } };
  }
  return {
    kind: 'done',
    ...placed,
    // What an account sends to itself brings nobody money.
    usdt: transfers.flatMap(({ from, to, amount }) => (from === to ? [] : { to, amountMicro: microUsdt(amount) })),
    otherTokens: mayFail ? readOtherTokens(info, usdt) : [],
    ...readContract(transaction.rawData, usdt),
  };
}

function readPlace({ blockNumber, blockTimeStamp }: ShownInfo, { now, head }: Known) {
  const isHeight = typeof blockNumber === 'number' && Number.isSafeInteger(blockNumber) && blockNumber > 0;
  const isTime = typeof blockTimeStamp === 'number' && Number.isSafeInteger(blockTimeStamp) && blockTimeStamp >= 0;
  if (!isHeight || !isTime) throw new TypeError(`it shows a transaction in block ${blockNumber} at ${blockTimeStamp}`);
  // A local network may be ahead of the clock, and what was examined there with it.
  const isAhead = blockTimeStamp - Math.max(now, head?.time ?? now) > MAX_AHEAD_MS;
  if (isAhead || (head !== null && blockNumber - head.number > MAX_AHEAD_BLOCKS)) {
    throw new RangeError(
      `it shows a transaction in block ${blockNumber} at ${blockTimeStamp}, far beyond block ${head?.number} and the time ${now}`,
    );
  }
  return { number: blockNumber, time: unixMs(blockTimeStamp) };
}

/** Transfer events of other contracts, also of those that call themselves USDT. */
function readOtherTokens({ log = [] }: ShownInfo, usdt: AccountHex): { contract: AccountHex; to: AccountHex }[] {
  return (log as unknown[]).flatMap((each) => {
    const transfer = decodeTransferLog(each ?? {});
    if (transfer === null || transfer.contract === usdt || transfer.value === 0n) return [];
    return [{ contract: transfer.contract, to: transfer.to }];
  });
}

type Done = Extract<TransactionFacts, { kind: 'done' }>;

/** Whose USDT a transaction asks the USDT contract itself to move; `null`: it asks for something else. */
function readPayer(rawData: Uint8Array, usdt: AccountHex): AccountHex | null {
  const contract = decodeRawTransaction(rawData)?.contract;
  if (contract?.kind !== 'trigger' || contract.contract !== usdt) return null;
  const call = decodeTransferCall(contract.data);
  return call === null ? null : (call.from ?? contract.owner);
}

/** Reads from a transaction's bytes what it does. */
function readContract(rawData: Uint8Array, usdt: AccountHex): Pick<Done, 'trx' | 'isTrc10' | 'isUsdtCall'> {
  const contract = decodeRawTransaction(rawData)?.contract;
  const isTrc10 = contract?.kind === 'other' && contract.type === TRC10_TRANSFER_TYPE;
  const isUsdtCall = contract?.kind === 'trigger' && contract.contract === usdt;
  if (contract?.kind !== 'transfer') return { trx: null, isTrc10, isUsdtCall };
  if (contract.amountSun < 0n) throw new RangeError(`it shows a transfer of ${contract.amountSun} sun`);
  return { trx: { to: contract.to, amountSun: contract.amountSun }, isTrc10, isUsdtCall };
}
