import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import type { ShownHeader } from '@quittance/tron/shown-block';
import type { Evidence } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/concurrency.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import type { Sql } from '../../store/db/database.ts';
import { blockAt, blocksBetween, headerAt } from '../nodes/ask-block.ts';
import { infoOf, infosOf, type ShownInfo } from '../nodes/ask-infos.ts';
import type { AskOptions, Node } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { AnswerTooLarge } from '../nodes/question.ts';
import {
  type ExaminedBlock,
  examineBlock,
  isReproduced,
  type ProvenHeader,
  proveHeader,
  readBlockId,
  type ShownTransactionFacts,
} from '../proof/prove-block.ts';
import type { KnownTerms } from './fee-terms.ts';
import { type BlockLogs, NoLogOfCall, readLogs } from './read-logs.ts';

/** The input for checking a network's blocks. `slotMs`: block times are multiples of this; `null` if unknown. */
export type ChainParameters = { usdt: AccountHex; slotMs: number | null };

/** The input that a check depends on, apart from the node. `agreement`: how many operators must agree. */
export type ReadDeps = ChainParameters & {
  db: Sql;
  network: Network;
  pool: Pick<NodePool, 'report' | 'available'>;
  agreement: number;
  fees: KnownTerms;
  metrics: Metrics;
};

/** Real networks produce a block every 3 s, at times that are multiples of 3 s (java-tron `BLOCK_PRODUCED_INTERVAL`). */
export const SLOT_MS = 3000;

/**
 * Blocks per `getblockbylimitnext` request, which are 2.5 MB of JSON on the main network. With ten blocks, the service would need 305 MB,
 * which is above the target.
 */
export const RANGE_BLOCKS = 6;
/** Blocks per request if logs replace all infos, because infos take most of the memory. */
export const LONG_RANGE_BLOCKS = 16;
/** Maximum number of concurrent requests for single transactions' infos, and the timeout for all of them. */
const PARALLEL_INFOS = 4;
const SINGLE_INFOS_MS = 15_000;
/** Maximum length of a node's message in errors. */
const MAX_REASON = 600;

export type BlockMark = { number: number; id: string; time: UnixMs };

/**
 * A block with its USDT logs. `word`: the operators that agree on the logs, in which case no other node has to be asked. `digest`: a digest
 * of everything that these operators claim about an unproven block (64 hex characters).
 */
export type ReadBlock = {
  node: Node;
  block: ExaminedBlock;
  logs: BlockLogs;
  word: Evidence | null;
  digest?: string;
};

/**
 * Reads the block as the node shows it. It's proven, unless the node's JSON omits bytes. Returns `null` if the node doesn't have it. Costs
 * one request.
 */
export async function readExamined(
  deps: ReadDeps,
  node: Node,
  number: number,
  call: { wantsBytes?: boolean } = {},
): Promise<ExaminedBlock | null> {
  const shown = await node.ask(blockAt(number), call);
  return shown === null ? null : checked(deps, node, () => examineBlock(shown, { ...deps, number }));
}

/**
 * Reads a block's logs. Returns `null` if the node doesn't have the block yet or is on another branch for a moment, because neither is a
 * fault.
 */
export async function readLogsIfThere(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<BlockLogs | null> {
  const byBytes = await readByBytes(deps, node, block);
  if (byBytes !== null) return byBytes;
  const infos = await readInfos(deps, node, block);
  try {
    return await judgeLogs(deps, node, block, infos);
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'BLOCK_UNVERIFIABLE')) return null;
    return checked(deps, node, () => {
      throw error;
    });
  }
}

/** Reads the logs that a node shows for a block. The block may come from another node. Costs at most one request. */
export async function readLogsOf(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<BlockLogs> {
  const byBytes = await readByBytes(deps, node, block);
  if (byBytes !== null) return byBytes;
  const infos = await readInfos(deps, node, block);
  try {
    return await judgeLogs(deps, node, block, infos);
  } catch (error) {
    return checked(deps, node, () => {
      throw error;
    });
  }
}

/**
 * Reads a block's logs from the separate gRPC API of a node that is normally asked over HTTP. Bytes can be read in a fraction of the time
 * that JSON takes, which matters if a stranger has filled the block. Returns `null` if the node has no such API or its answer can't be
 * used. The node isn't blamed for either.
 */
async function readByBytes(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<BlockLogs | null> {
  if (!node.isOpenFor('bytes')) return null;
  try {
    return await judgeLogs(deps, node, block, await readInfos(deps, node, block, true), true);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    node.setAside('bytes', reasonOf(error).slice(0, MAX_REASON));
    return null;
  }
}

async function judgeLogs(
  deps: ReadDeps,
  node: Node,
  block: ExaminedBlock,
  infos: ShownInfo[],
  isByBytes = false,
): Promise<BlockLogs> {
  const { usdt, fees } = deps;
  const judge = (shown: readonly ShownInfo[]) =>
    readLogs(block, shown, usdt, fees.known(), fees.successorAt(block.number));
  try {
    const logs = judge(infos);
    return logs.hasOddSplit && (await fees.refresh(deps)) ? judge(infos) : logs;
  } catch (error) {
    const isAsked = fees.successorAt(block.number) !== null;
    if (!(error instanceof NoLogOfCall) || isAsked) throw error;
    if (!(await fees.isForwarding(deps, block.number))) throw explained(error, fees.namedSuccessors());
    // Judge again, now with the successor's logs.
    return judge(await readInfos(deps, node, block, isByBytes));
  } finally {
    // Awaited promises keep their results until the next full garbage collection, which may be hundreds of blocks later.
    infos.length = 0;
  }
}

/** Explains to the operator how the held payment relates to a contract that Tether replaced. */
function explained(error: NoLogOfCall, successors: readonly AccountHex[]): AppError {
  if (successors.length === 0) return error;
  const names = successors.map(accountToAddress).join(' or ');
  const what = `according to the nodes, the USDT contract was replaced (Deprecate) by ${names} and forwards payments to it. Such payments are held until two operators return the same data. Add a node from another operator, and check whether Tether announced this. Seen: ${error.message}`;
  return new AppError(error.code, what, { retryable: true });
}

/**
 * Costs one request, or none if the block proves that nothing in it can have logs. A stranger who fills a block with megabytes of results
 * must not delay it; in that case, single transactions are requested.
 */
async function readInfos(deps: ReadDeps, node: Node, block: ExaminedBlock, isByBytes = false): Promise<ShownInfo[]> {
  if (block.isProven && !block.transactions.some(mayHaveLogs))
    return block.transactions.map((each) => noLogs(block, each));
  try {
    const question = infosOf(block.number, ...contractsOf(deps, block));
    if (isByBytes)
      return await node.ask({ ...question, substitutable: 'bytes' }, { mayBeLarge: true, wantsBytes: true });
    return await node.ask(question, { mayBeLarge: true });
  } catch (error) {
    if (!(error instanceof AnswerTooLarge)) throw error;
  }
  return readSingleInfos(deps, node, block);
}

/** If another node is available, a slow one is abandoned. The last node may take as long as it needs. */
async function readSingleInfos(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ShownInfo[]> {
  const startedMs = performance.now();
  return inGroups(block.transactions, PARALLEL_INFOS, async (transaction) => {
    const { txId } = transaction;
    if (!mayHaveLogs(transaction)) return noLogs(block, transaction);
    if (performance.now() - startedMs > SINGLE_INFOS_MS && (await deps.pool.available()).length > 1) {
      return checked(deps, node, () => {
        throw incomplete(
          `it needs more than ${SINGLE_INFOS_MS} ms to return the transaction results for block ${block.number}`,
        );
      });
    }
    const info = await node.ask(infoOf(txId, contractsOf(deps, block)));
    if (info === null) throw incomplete(`${node.origin} did not return the result for ${txId}`);
    return info;
  });
}

/** Returns the contracts whose logs are read: USDT, and its successor if there is one. */
function contractsOf({ usdt, fees }: ReadDeps, { number }: ExaminedBlock): AccountHex[] {
  const successor = fees.successorAt(number);
  return successor === null ? [usdt] : [usdt, successor];
}

/** Whether a transaction can have logs. Only successful contract calls and creations can, no matter which contract they call. */
function mayHaveLogs({ isSuccess, isContract }: ShownTransactionFacts): boolean {
  return isSuccess && isContract !== false;
}

/** Returns the info that a node would show for a transaction with these logs. */
export function infoWithLogs(
  block: ExaminedBlock,
  transaction: ShownTransactionFacts,
  log: readonly unknown[],
): ShownInfo {
  const info = { ...noLogs(block, transaction), log };
  return mayHaveLogs(transaction) ? { ...info, receipt: { result: 'SUCCESS' } } : info;
}

/** Returns the info that every node must show for a transaction that can't have logs. */
function noLogs({ number, time }: ExaminedBlock, { txId }: ShownTransactionFacts): ShownInfo {
  return { id: txId, blockNumber: number, blockTimeStamp: time };
}

/**
 * Reads the blocks from `first` to `last` (at most `LONG_RANGE_BLOCKS`) in order, like `readExamined`. Costs one request. Errors: as for
 * `readBlock`; an incomplete range is `NODE_REFUSED`.
 */
export async function readBlocks(deps: ReadDeps, node: Node, first: number, last: number): Promise<ExaminedBlock[]> {
  const shown = await node.ask(blocksBetween(first, last));
  return checked(deps, node, () => {
    if (shown.length !== last - first + 1) {
      throw incomplete(`it did not return all blocks from ${first} to ${last}`);
    }
    return shown.splice(0).map((block, index) => examineBlock(block, { ...deps, number: first + index }));
  });
}

/** Block 0, which has no signature and is recognised by its id. */
export type Genesis = BlockMark & { number: 0; producer: null };
/** A header by any signer, or block 0. */
export type SolidHeader = ProvenHeader | Genesis;

/** Reads block 0 of the node's network. Costs one request. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`. */
export async function readGenesis(deps: ReadDeps, node: Node): Promise<Genesis> {
  const shown = await node.ask(headerAt('any', 0));
  return checked(deps, node, () => {
    if (shown === null) throw incomplete('it did not return block 0');
    const { number, ...rest } = readBlockId(shown);
    if (number === 0) return { number, ...rest, producer: null };
    throw incomplete(`it returned block ${number} instead of block 0`);
  });
}

/** Reads the newest block that the node calls irreversible, regardless of who signed it. Costs one request. */
export async function readNewestSolid(deps: ReadDeps, node: Node): Promise<SolidHeader> {
  return readHeader(deps, node, 'solid');
}

/** Reads the irreversible header at a height. Costs one request. Errors: as for `readBlock`. */
export function readHeaderAt(deps: ReadDeps, node: Node, number: number): Promise<ProvenHeader> {
  return readHeader(deps, node, 'solid', number) as Promise<ProvenHeader>;
}

/**
 * Reads a header, whether irreversible or not. If the back ends behind one address disagree about irreversibility, all of them have this
 * header.
 */
export function readAnyHeaderAt(deps: ReadDeps, node: Node, number: number): Promise<ProvenHeader> {
  return readHeader(deps, node, 'any', number) as Promise<ProvenHeader>;
}

/**
 * Reads any header. Returns `null` if the node doesn't have it, because the node may not keep any history. The node isn't paused for this
 * or for a refusal.
 */
export async function readHeaderIfThere(deps: ReadDeps, node: Node, number: number): Promise<ProvenHeader | null> {
  const shown = await askHeader(node, headerAt('any', number), { isOptional: true });
  return shown === null ? null : checked(deps, node, () => proveHeader(shown, { ...deps, number }));
}

async function readHeader(deps: ReadDeps, node: Node, side: 'solid' | 'any', number?: number): Promise<SolidHeader> {
  const shown = await askHeader(node, headerAt(side, number));
  return checked(deps, node, () => {
    if (shown === null) throw incomplete(`it did not return block ${number ?? 'of its own'}, which it must have`);
    if (number !== undefined) return proveHeader(shown, { ...deps, number });
    const mark = readBlockId(shown);
    return mark.number === 0
      ? { ...mark, number: 0, producer: null }
      : proveHeader(shown, { ...deps, number: mark.number });
  });
}

/** If JSON doesn't reproduce a header, requests it over gRPC if the node supports that. */
async function askHeader(
  node: Node,
  question: ReturnType<typeof headerAt>,
  call: AskOptions = {},
): Promise<ShownHeader | null> {
  const shown = await node.ask(question, call);
  const isHidden = shown !== null && node.hasBytes && !isReproduced(shown);
  return isHidden ? node.ask(question, { ...call, wantsBytes: true }) : shown;
}

/** Runs a check on a node's answer. If it fails, reports the node to the pool. */
export function checked<Result>({ network, pool, metrics }: ReadDeps, node: Node, check: () => Result): Result {
  try {
    return check();
  } catch (error) {
    // Any error in a check is due to the node's answer, and its message may be arbitrarily long.
    const code = error instanceof AppError ? error.code : 'NODE_REFUSED';
    const problem = code === 'BLOCK_UNVERIFIABLE' ? 'unverifiable' : 'incomplete';
    const reason = reasonOf(error).slice(0, MAX_REASON);
    metrics.blockVerifyFailures.inc({ network, node: node.origin, problem });
    pool.report(node, problem, reason);
    throw new AppError(code, `${node.origin}: ${reason}`, { retryable: true });
  }
}

function incomplete(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
