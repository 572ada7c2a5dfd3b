import type { ChainBlock, ChainTransfer } from '../domain/chain-block.ts';
import { AppError } from '../domain/errors.ts';
import { unixMs } from '../domain/time.ts';
import type { AccountHex } from '../tron/address.ts';
import { decodeTransferLog } from '../tron/usdt.ts';

/** What we read of `getblock`. Everything is unknown until it was checked. */
type BlockAnswer = {
  blockID?: unknown;
  block_header?: { raw_data?: { number?: unknown; parentHash?: unknown; timestamp?: unknown; txTrieRoot?: unknown } };
  transactions?: unknown;
};

type InfoAnswer = {
  id?: unknown;
  blockNumber?: unknown;
  result?: unknown;
  receipt?: { result?: unknown };
  log?: unknown;
};

const HASH = /^[0-9a-f]{64}$/;
/** `txTrieRoot` of a block without transactions. */
const EMPTY_ROOT = '00'.repeat(32);

export type BlockHeader = { number: number; id: string; parentId: string; time: ChainBlock['time'] };

/**
 * Reads a block header as the node's JSON shows it (zero and empty fields are left out), and checks its shape: the id
 * starts with the number. Throws `NODE_REFUSED` with what is wrong.
 */
export function readHeader(answer: unknown): BlockHeader {
  const { blockID, block_header } = answer as BlockAnswer;
  const raw = block_header?.raw_data;
  const number = raw?.number ?? 0;
  const timestamp = raw?.timestamp ?? 0;
  const parentId = raw?.parentHash;
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 0) throw wrong(`number ${number}`);
  if (typeof blockID !== 'string' || !HASH.test(blockID)) throw wrong(`blockID ${blockID}`);
  if (BigInt(`0x${blockID.slice(0, 16)}`) !== BigInt(number)) throw wrong(`id ${blockID} of block number ${number}`);
  if (typeof parentId !== 'string' || !HASH.test(parentId)) throw wrong(`parentHash ${parentId}`);
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp) || timestamp < 0) {
    throw wrong(`timestamp ${timestamp}`);
  }
  return { number, id: blockID, parentId, time: unixMs(timestamp) };
}

/**
 * Checks a block and its transaction infos against each other and reads its successful USDT transfers.
 * `[]` as infos can mean an empty block, an unknown block, a node without history, or a sick back end; it stands only
 * if count and ids agree pairwise with the block's transactions. Throws `NODE_REFUSED` otherwise.
 */
export function verifyBlock(number: number, blockAnswer: unknown, infosAnswer: unknown, usdt: AccountHex): ChainBlock {
  const header = readHeader(blockAnswer);
  if (header.number !== number) throw wrong(`block ${header.number} where ${number} was asked for`);
  const transactions = (blockAnswer as BlockAnswer).transactions ?? [];
  if (!Array.isArray(transactions)) throw wrong(`transactions of block ${number}`);
  if (!Array.isArray(infosAnswer)) throw wrong(`transaction infos of block ${number}`);
  if (infosAnswer.length !== transactions.length) {
    throw wrong(`${infosAnswer.length} infos for ${transactions.length} transactions of block ${number}`);
  }
  // A back end that lost the transactions of a block and their infos would agree with itself; the header still tells.
  const root = (blockAnswer as BlockAnswer).block_header?.raw_data?.txTrieRoot ?? EMPTY_ROOT;
  if (transactions.length === 0 && root !== EMPTY_ROOT) {
    throw wrong(`no transactions in block ${number}, whose header has txTrieRoot ${root}`);
  }
  const transfers = transactions.flatMap((transaction: unknown, index) =>
    readTransaction(number, index, transaction, infosAnswer[index], usdt),
  );
  return { ...header, transfers };
}

function readTransaction(
  number: number,
  index: number,
  transaction: unknown,
  info: InfoAnswer | null | undefined,
  usdt: AccountHex,
): ChainTransfer[] {
  const { txID, ret } = (transaction ?? {}) as { txID?: unknown; ret?: { contractRet?: unknown }[] };
  if (typeof txID !== 'string' || !HASH.test(txID)) throw wrong(`txID ${txID} in block ${number}`);
  if (info?.id !== txID) throw wrong(`info ${info?.id} for transaction ${txID} (${index}) of block ${number}`);
  if (info.blockNumber !== number)
    throw wrong(`info of transaction ${txID} says block ${info.blockNumber}, not ${number}`);
  const logs = info.log ?? [];
  if (!Array.isArray(logs)) throw wrong(`logs of transaction ${txID}`);
  const succeeded =
    Array.isArray(ret) &&
    ret[0]?.contractRet === 'SUCCESS' &&
    info.receipt?.result === 'SUCCESS' &&
    info.result === undefined;
  if (!succeeded) return [];
  return logs.flatMap((log: unknown, logIndex): ChainTransfer[] => {
    const transfer = typeof log === 'object' && log !== null ? decodeTransferLog(log) : null;
    // Zero-value transfers are spam that poisons address histories; they move nothing.
    if (transfer === null || transfer.contract !== usdt || transfer.value === 0n) return [];
    return [{ txId: txID, logIndex, from: transfer.from, to: transfer.to, amount: transfer.value }];
  });
}

function wrong(seen: string): AppError {
  return new AppError('NODE_REFUSED', `the node's answer does not hold together: ${seen}`, { retryable: true });
}
