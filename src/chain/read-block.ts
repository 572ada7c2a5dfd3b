import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { AccountHex } from '../tron/address.ts';
import type { Node } from './node-member.ts';
import type { NodePool } from './node-pool.ts';
import { type ProvenBlock, type ProvenHeader, proveBlock, proveHeader, readBlockId } from './prove-block.ts';
import { type BlockLogs, readLogs } from './read-logs.ts';

/** What a network's blocks must look like. `slotMs`: block times are multiples of it; `null` where it is not known. */
export type ChainParameters = { usdt: AccountHex; slotMs: number | null };

/** Nodes, and where to say that one of them shows what cannot be. */
export type ReadDeps = ChainParameters & { network: Network; pool: Pick<NodePool, 'report'>; metrics: Metrics };

/** Real networks make a block every 3 s, at times that are multiples of it (java-tron `BLOCK_PRODUCED_INTERVAL`). */
export const SLOT_MS = 3000;

/** Blocks of one `getblockbylimitnext`: 2.5 MB of JSON on the main network; with ten the service takes 305 MB, above our mark. */
export const RANGE_BLOCKS = 6;
/** A range takes longer than one block, and nothing waits for it at the head. */
const RANGE_TIMEOUT_MS = 15_000;
/** A block of 2 MB in JSON, with room; a range of six on a busy day. Everything else that a node says is small. */
const BLOCK_BYTES = 24 * 1024 * 1024;
const RANGE_BYTES = 64 * 1024 * 1024;
/** As much of what a node said as a person needs. */
const MAX_REASON = 300;

/** A block by its height, id and time. */
export type BlockMark = { number: number; id: string; time: UnixMs };

export type ReadBlock = { node: Node; block: ProvenBlock; logs: BlockLogs };

/**
 * The block at a height, proven from its own bytes, and its USDT logs, checked against it; both from one node. `null`: the
 * node does not have it yet. One request for a miss, two for a block. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`.
 */
export async function readBlock(deps: ReadDeps, node: Node, number: number): Promise<ReadBlock | null> {
  const block = await readProven(deps, node, number);
  return block === null ? null : { node, block, logs: await readLogsOf(deps, node, block) };
}

/** The same at the head, where behind one address the back end that answers for the infos may lag: `no-infos`. */
export async function readHeadBlock(
  deps: ReadDeps,
  node: Node,
  number: number,
): Promise<ReadBlock | null | 'no-infos'> {
  const block = await readProven(deps, node, number);
  if (block === null) return null;
  const logs = await readLogsIfThere(deps, node, block);
  return logs === null ? 'no-infos' : { node, block, logs };
}

async function readProven(deps: ReadDeps, node: Node, number: number): Promise<ProvenBlock | null> {
  const answer = await node.post(
    '/wallet/getblock',
    { id_or_num: String(number), detail: true },
    { maxBytes: BLOCK_BYTES },
  );
  if (isAbsent(answer)) return null;
  return checked(deps, node, () => proveBlock(answer, { ...deps, number }));
}

/** The same where the node may not have the block yet, or be on another branch for a moment: that is no fault of it. */
export async function readLogsIfThere(deps: ReadDeps, node: Node, block: ProvenBlock): Promise<BlockLogs | null> {
  const infos = await node.post(
    '/wallet/gettransactioninfobyblocknum',
    { num: block.number },
    { maxBytes: BLOCK_BYTES },
  );
  try {
    return readLogs(block, infos, deps.usdt);
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'BLOCK_UNVERIFIABLE')) return null;
    return checked(deps, node, () => readLogs(block, infos, deps.usdt));
  }
}

/** The logs that a node, perhaps another one, shows for a proven block. One request. */
export async function readLogsOf(deps: ReadDeps, node: Node, block: ProvenBlock): Promise<BlockLogs> {
  const infos = await node.post(
    '/wallet/gettransactioninfobyblocknum',
    { num: block.number },
    { maxBytes: BLOCK_BYTES },
  );
  return checked(deps, node, () => readLogs(block, infos, deps.usdt));
}

/**
 * The blocks from `first` to `last` (at most `RANGE_BLOCKS`), proven, in order. One request. Errors as of `readBlock`; a range
 * that is not shown whole is `NODE_REFUSED`.
 */
export async function readRange(deps: ReadDeps, node: Node, first: number, last: number): Promise<ProvenBlock[]> {
  const request = { startNum: first, endNum: last + 1 };
  const answer = await node.post('/wallet/getblockbylimitnext', request, {
    timeoutMs: RANGE_TIMEOUT_MS,
    maxBytes: RANGE_BYTES,
  });
  return checked(deps, node, () => {
    const shown = (answer as { block?: unknown }).block;
    if (!Array.isArray(shown) || shown.length !== last - first + 1) {
      throw incomplete(`it does not show all of the blocks ${first} to ${last}`);
    }
    return shown.map((json: unknown, index) => proveBlock(json, { ...deps, number: first + index }));
  });
}

/** Block 0, which nobody signed. It is known by its id. */
export type Genesis = BlockMark & { number: 0; producer: null };
/** A header of anybody, or block 0. */
export type SolidHeader = ProvenHeader | Genesis;

/** The newest block that the node calls irreversible, signed by anybody. One request. */
export async function readNewestSolid(deps: ReadDeps, node: Node): Promise<SolidHeader> {
  const answer = await node.post('/walletsolidity/getblock', { detail: false });
  return checked(deps, node, () => {
    const { number, ...rest } = readBlockId(answer);
    return number === 0 ? { number, ...rest, producer: null } : proveHeader(answer, { ...deps, number });
  });
}

/** The irreversible header at a height. One request. Errors as of `readBlock`. */
export function readHeaderAt(deps: ReadDeps, node: Node, number: number): Promise<ProvenHeader> {
  return readHeader(deps, node, '/walletsolidity/getblock', number);
}

/** The same, whether or not it is irreversible yet: where back ends behind one address differ in that, all of them have it. */
export function readAnyHeaderAt(deps: ReadDeps, node: Node, number: number): Promise<ProvenHeader> {
  return readHeader(deps, node, '/wallet/getblock', number);
}

async function readHeader(deps: ReadDeps, node: Node, path: string, number: number): Promise<ProvenHeader> {
  const answer = await node.post(path, { id_or_num: String(number), detail: false });
  return checked(deps, node, () => {
    if (isAbsent(answer)) throw incomplete(`it does not show block ${number}, which it must have`);
    return proveHeader(answer, { ...deps, number });
  });
}

/** `{}` stands for a block that the node does not have. */
function isAbsent(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && Object.keys(answer).length === 0;
}

/** Lets a check of what a node said run, and tells the pool which node it was that failed it. */
export function checked<Result>({ network, pool, metrics }: ReadDeps, node: Node, check: () => Result): Result {
  try {
    return check();
  } catch (error) {
    // Whatever a check stumbles over came from the node; its message may be as long as the node likes.
    const code = error instanceof AppError ? error.code : 'NODE_REFUSED';
    const problem = code === 'BLOCK_UNVERIFIABLE' ? 'unverifiable' : 'incomplete';
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, MAX_REASON);
    metrics.blockVerifyFailures.inc({ network, node: node.origin, problem });
    pool.report(node, problem, reason);
    throw new AppError(code, `${node.origin}: ${reason}`, { retryable: true });
  }
}

function incomplete(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}
