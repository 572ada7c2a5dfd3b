import { createHash } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import type { ShownHeader } from '@quittance/tron/shown-block';
import type { Evidence } from '../../domain/chain-block.ts';
import { AppError, retryableError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/concurrency.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { findPassedBlock } from '../../store/chain/passed-blocks.ts';
import type { Sql } from '../../store/db/database.ts';
import { AnswerTooLarge, type AskOptions, type Node, orNull } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { blockAt, blocksBetween, headerAt, infoOf, infosOf, type ShownInfo } from '../nodes/questions.ts';
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

/** Everything that a check needs, apart from the node. `agreement`: how many operators must agree. */
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
/** Blocks per request if logs replace all infos. There can be more of them, because infos take most of the memory. */
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
 * Reads the block at a height and its USDT logs, and checks the logs against the block. The block and its logs come from the same node,
 * unless only another node shows all of the block's bytes, or only another node shows the logs. Returns `null` if the node doesn't have it
 * yet. A miss costs one request, and a block costs two. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`, `NODES_DISAGREE`.
 */
export async function readBlock(deps: ReadDeps, node: Node, number: number): Promise<ReadBlock | null> {
  const block = await readExamined(deps, node, number);
  return block === null ? null : withLogs(deps, node, block);
}

/** Like `readBlock`, but for the newest block. Returns `no-infos` if the back end for infos lags behind the node's other back ends. */
export async function readHeadBlock(
  deps: ReadDeps,
  node: Node,
  number: number,
): Promise<ReadBlock | null | 'no-infos'> {
  const block = await readExamined(deps, node, number);
  if (block === null) return null;
  if (!block.isProven) return settleUnproven(deps, node, block);
  const logs = await readLogsIfThere(deps, node, block);
  return logs === null ? 'no-infos' : { node, block, logs, word: null };
}

/** Adds the logs to a block that the node has shown. Errors: as for `readBlock`. */
export async function withLogs(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ReadBlock> {
  if (!block.isProven) return settleUnproven(deps, node, block);
  return { node, block, logs: await readLogsOf(deps, node, block), word: null };
}

/** Without proof, a single operator is never trusted, because it could invent any payment. */
const LEAST_OPERATORS = 2;

/** A block and its logs, as shown by one operator's nodes. */
type Word = { node: Node; block: ExaminedBlock; logs: BlockLogs; digest: string };

/**
 * Settles a block when a node's JSON doesn't contain all of the block's bytes. Either one of its transactions has fields that JSON omits,
 * which anyone can add, or the node is dishonest. All other nodes are asked. If one of them shows the raw bytes, or JSON that reproduces
 * them, these bytes decide. Otherwise `agreement` operators, and at least two, must show the same id, transactions, results and logs. Like
 * any other block, it counts once the headers built on it make it irreversible. Errors: `NODES_DISAGREE` if another node may show more in a
 * moment, otherwise `BLOCK_UNVERIFIABLE`.
 */
async function settleUnproven(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ReadBlock> {
  const { number } = block;
  const others = (await deps.pool.available()).filter(({ origin }) => origin !== node.origin);
  const asked = [...(node.hasBytes ? [node] : []), ...others];
  const shown = await Promise.all(
    asked.map(async (other) => ({ node: other, block: await show(deps, other, number) })),
  );
  const proofs = shown.flatMap((each) => (each.block?.isProven === true ? { ...each, block: each.block } : []));
  // Anyone can create a block that proves itself, so a proven block with another id doesn't override the operators' agreement.
  const same = proofs.filter((each) => each.block.id === block.id);
  const [proof] = same;
  if (proof !== undefined) {
    if (claimOf(proof.block) !== claimOf(block)) {
      deps.pool.report(node, 'unverifiable', `its block ${number} does not match its proven content`);
    }
    // A node that shows the block may still lack its logs, or withhold them.
    return firstLogs(deps, proof.block, [...new Set([...same.map((each) => each.node), node, ...others])]);
  }
  const claims = shown.flatMap((each) => (each.block?.isProven === false ? { ...each, block: each.block } : []));
  const asserted = firstOfOperators([{ node, block }, ...claims.filter((each) => each.node !== node)]);
  const heard = await hear(deps, asserted);
  const agreed = await findAgreed(deps, heard, number);
  if (agreed !== null) return agreed;
  const [different] = proofs;
  if (different !== undefined) return firstLogs(deps, different.block, [different.node]);
  const isMissing = shown.some((each) => each.block === null && each.node !== node) || heard.length < asserted.length;
  // Don't pause any node, because each of them may be honest, and can still provide irreversible blocks below this one.
  throw retryableError(isMissing ? 'NODES_DISAGREE' : 'BLOCK_UNVERIFIABLE', explain(deps, block, heard));
}

/** Reads the block as bytes if the node has them, and otherwise as JSON. Returns `null` if the node doesn't answer or has no such block. */
async function show(deps: ReadDeps, node: Node, number: number): Promise<ExaminedBlock | null> {
  const bytes = await readExamined(deps, node, number, { wantsBytes: true }).catch(orNull);
  if (bytes !== null || !node.hasBytes) return bytes;
  return readExamined(deps, node, number).catch(orNull);
}

type Claim = { node: Node; block: ExaminedBlock };

function firstOfOperators(claims: readonly Claim[]): Claim[] {
  return claims.filter(({ node }, index) => claims.findIndex((each) => each.node.operator === node.operator) === index);
}

/** Returns the operators that also show the logs. At the head, logs may appear a moment after the block. */
async function hear(deps: ReadDeps, claims: readonly Claim[]): Promise<Word[]> {
  const words = await Promise.all(
    claims.map(async ({ node, block }): Promise<Word[]> => {
      const logs = await readLogsIfThere(deps, node, block).catch(orNull);
      return logs === null ? [] : [{ node, block, logs, digest: digestWord(block, logs) }];
    }),
  );
  return words.flat();
}

async function findAgreed(deps: ReadDeps, heard: readonly Word[], number: number): Promise<ReadBlock | null> {
  const passed = await findPassedBlock(deps.db, deps.network, number);
  for (const word of heard) {
    const same = heard.filter(({ digest }) => digest === word.digest);
    if (same.length < neededBy(deps) && passed?.digest !== word.digest) continue;
    const evidence: Evidence = { nodes: same.map(({ node }) => node.origin), operatorCount: same.length };
    return { node: word.node, block: word.block, logs: word.logs, word: evidence, digest: word.digest };
  }
  return null;
}

/** Returns the proven block with the logs of the first of these nodes that shows them. */
async function firstLogs(deps: ReadDeps, block: ExaminedBlock, nodes: readonly Node[]): Promise<ReadBlock> {
  const failures: unknown[] = [];
  for (const node of nodes) {
    try {
      const logs = await readLogsIfThere(deps, node, block);
      if (logs !== null) return { node, block, logs, word: null };
    } catch (error) {
      orNull(error);
      failures.push(error);
    }
  }
  // The logs of every node contradict the block.
  if (failures.length === nodes.length) throw failures[0];
  const origins = nodes.map(({ origin }) => origin).join(', ');
  const detail = `none of these nodes has returned the logs for block ${block.number} yet: ${origins}`;
  throw retryableError('NODES_DISAGREE', detail);
}

function neededBy({ agreement }: ReadDeps): number {
  return Math.max(LEAST_OPERATORS, agreement);
}

function explain(deps: ReadDeps, { number, id }: ExaminedBlock, heard: readonly Word[]): string {
  const shown = heard.map((word) => `${word.node.origin} (${word.digest.slice(0, 8)})`).join(', ');
  return (
    `block ${number} (${id}) is not proven: JSON hides bytes that anyone can put into a transaction, and fewer than ${neededBy(deps)} ` +
    `operators report the same content (${shown}). Set a node's gRPC port (#grpc=grpc://host:50051), add a node from another operator, or inspect ` +
    `the block and accept it: quittance chain pass --network ${deps.network} --block ${number} --reason "…"`
  );
}

/** Returns a digest of everything that a node claims about a block (64 hex characters). Nodes with the same claims have the same digest. */
export function digestWord(block: ExaminedBlock, logs: BlockLogs): string {
  return createHash('sha256')
    .update(`${claimOf(block)} ${logs.digest}`)
    .digest('hex');
}

/** Returns a digest of everything that a node claims about a block, except the logs. */
function claimOf({ id, parentId, time, producer, transactions }: ExaminedBlock): string {
  const claim = createHash('sha256').update(`${id} ${parentId} ${time} ${producer}\n`);
  for (const { txId, isSuccess } of transactions) claim.update(`${txId} ${isSuccess}\n`);
  return claim.digest('hex');
}

/**
 * Reads the block as the node shows it. It's proven, unless the node's JSON omits bytes. Returns `null` if the node doesn't have it. Costs
 * one request.
 */
async function readExamined(
  deps: ReadDeps,
  node: Node,
  number: number,
  call: { wantsBytes?: boolean } = {},
): Promise<ExaminedBlock | null> {
  const shown = await node.ask(blockAt(number), call);
  return shown === null ? null : checked(deps, node, () => examineBlock(shown, { ...deps, number }));
}

/**
 * Reads a block's logs. Returns `null` if the node doesn't have the block yet, or is on another branch for a moment. Neither is a fault.
 */
export async function readLogsIfThere(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<BlockLogs | null> {
  return readJudged(deps, node, block, (error) => {
    if (!(error instanceof AppError && error.code === 'BLOCK_UNVERIFIABLE')) return null;
    throw blamed(deps, node, withNumber(block, error));
  });
}

/** Reads the logs that a node shows for a block. The block may come from another node. Costs at most one request. */
export async function readLogsOf(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<BlockLogs> {
  return readJudged(deps, node, block, (error) => {
    throw blamed(deps, node, withNumber(block, error));
  });
}

/** Adds the number of the block to an error about its infos, because an operator who inspects the block needs the number. */
function withNumber({ number }: ExaminedBlock, error: unknown): unknown {
  return error instanceof AppError ? retryableError(error.code, `block ${number}: ${error.message}`) : error;
}

async function readJudged<Else>(
  deps: ReadDeps,
  node: Node,
  block: ExaminedBlock,
  onWrong: (error: unknown) => Else,
): Promise<BlockLogs | Else> {
  const byBytes = await readByBytes(deps, node, block);
  if (byBytes !== null) return byBytes;
  const infos = await readInfos(deps, node, block);
  return judgeLogs(deps, node, block, infos).catch(onWrong);
}

/**
 * Reads a block's logs from the separate gRPC API of a node that is normally asked over HTTP. Reading bytes takes a fraction of the time
 * that JSON takes, which matters if a stranger has filled the block with large transactions. Returns `null` if the node has no such API or
 * its answer can't be used. The node isn't blamed for either.
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
    // Empty the array, because awaited promises keep their results until the next full garbage collection, which may be hundreds of blocks
    // later.
    infos.length = 0;
  }
}

/** Explains to the operator that the payment is held because nodes say that Tether has replaced the contract. */
function explained(error: NoLogOfCall, successors: readonly AccountHex[]): AppError {
  if (successors.length === 0) return error;
  const names = successors.map(accountToAddress).join(' or ');
  const what = `according to the nodes, the USDT contract was replaced (Deprecate) by ${names} and forwards payments to it. Quittance holds such payments until two operators return the same data. Add a node from another operator, and check whether Tether announced this. Seen: ${error.message}`;
  return retryableError(error.code, what);
}

/**
 * Costs one request, or none if the block proves that nothing in it can have logs. A stranger may have filled the block with megabytes of
 * results. To avoid a delay, Quittance then requests single transactions.
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

/** If another node is available, Quittance stops waiting for a slow one. The last node may take as long as it needs. */
async function readSingleInfos(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ShownInfo[]> {
  const startedMs = performance.now();
  return inGroups(block.transactions, PARALLEL_INFOS, async (transaction) => {
    const { txId } = transaction;
    if (!mayHaveLogs(transaction)) return noLogs(block, transaction);
    if (performance.now() - startedMs > SINGLE_INFOS_MS && (await deps.pool.available()).length > 1) {
      const slow = `it needs more than ${SINGLE_INFOS_MS} ms to return the transaction results for block ${block.number}`;
      throw blamed(deps, node, incomplete(slow));
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
 * Reads a header, whether irreversible or not. Even if the back ends behind one address disagree about irreversibility, all of them have
 * this header.
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
    if (shown === null)
      throw incomplete(
        `it did not return ${number === undefined ? 'its newest block' : `block ${number}`}, which it must have`,
      );
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
export function checked<Result>(deps: ReadDeps, node: Node, check: () => Result): Result {
  try {
    return check();
  } catch (error) {
    throw blamed(deps, node, error);
  }
}

/** Reports a node whose answer failed a check to the pool. Returns the error to throw. */
export function blamed({ network, pool, metrics }: ReadDeps, node: Node, error: unknown): AppError {
  // Any error in a check is due to the node's answer, and the error's message may be arbitrarily long.
  const code = error instanceof AppError ? error.code : 'NODE_REFUSED';
  const problem = code === 'BLOCK_UNVERIFIABLE' ? 'unverifiable' : 'incomplete';
  const reason = reasonOf(error).slice(0, MAX_REASON);
  metrics.blockVerifyFailures.inc({ network, node: node.origin, problem });
  pool.report(node, problem, reason);
  return retryableError(code, `${node.origin}: ${reason}`);
}

const incomplete = (message: string) => retryableError('NODE_REFUSED', message);
