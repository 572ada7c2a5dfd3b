import type { AccountHex } from '@quittance/tron/address';
import type { ChainTransfer, Evidence } from '../../domain/chain-block.ts';
import { findOurAccounts } from '../../store/chain/incoming.ts';
import { type Node, orNull, type Question } from '../nodes/node.ts';
import type { ExaminedBlock, ShownTransactionFacts } from '../proof/prove-block.ts';
import type { FeeTerms } from './fee-terms.ts';
import { infoWithLogs, type ReadBlock, type ReadDeps } from './read-block.ts';
import { readLogs } from './read-logs.ts';

/** For a single block, logs don't save any requests. */
const MIN_BLOCKS = 2;

/**
 * Returns the blocks for which USDT logs, shown by each of `nodes` over JSON-RPC, can replace infos. This is the case if only direct calls,
 * which the header proves, moved USDT to or from a project's address, and if the contract itself didn't change. The result contains only
 * transfers of project addresses. Other blocks need infos, which show a log's position in its transaction. A node that hasn't indexed a
 * block returns no logs for it. So a node's answer for a block counts only if it contains every direct call that the block proves, and the
 * block has at least one. Nodes also silently truncate long answers. So the answer must contain, in order, logs of an earlier block, of
 * this block and of a later block. That way a node can't hide more than it can with infos: only transfers made by contracts. `nodes` must
 * belong to different operators, as many as must agree. Each node is asked once, or not at all if that doesn't save any requests.
 * `useless` are the nodes whose logs couldn't be used for any block.
 */
export async function readByLogs(deps: ReadDeps, nodes: readonly Node[], blocks: readonly ExaminedBlock[]) {
  const [node] = nodes;
  const checkable = blocks.filter((block) => block.isProven && block.transactions.some(movesUsdt));
  if (node === undefined || checkable.length < MIN_BLOCKS) return { blocks: [], useless: [] };
  const shown = await Promise.all(nodes.map((each) => readTransfers(deps, each, checkable)));
  const useless = nodes.filter((_, index) => shown[index]?.size === 0);
  const usable = checkable.filter(({ id }) => shown.every((transfers) => transfers.has(id)));
  const transfersIn = ({ id }: ExaminedBlock) => shown.flatMap((transfers) => transfers.get(id) ?? []);
  const parties = new Set(usable.flatMap(transfersIn).flatMap(({ from, to }) => [from, to]));
  const ours = await findOurAccounts(deps.db, deps.network, [...parties]);
  const isOurs = ({ from, to }: ChainTransfer) => ours.has(from) || ours.has(to);
  const word: Evidence = { nodes: nodes.map(({ origin }) => origin), operatorCount: nodes.length };
  const read = usable.flatMap((block): ReadBlock[] => {
    if (transfersIn(block).some((transfer) => isOurs(transfer) && !transfer.isProven)) return [];
    const transfers = shown[0]?.get(block.id)?.filter(isOurs) ?? [];
    const nothingElse = { events: [], digest: '', hasOddSplit: false, isForwarded: false };
    // Every direct call in the block logged its transfer itself, so the contract hadn't been replaced yet.
    return [{ node, block, logs: { ...nothingElse, transfers, successor: deps.fees.successorAt(block.number) }, word }];
  });
  return { blocks: read, useless };
}

function movesUsdt({ call }: ShownTransactionFacts): boolean {
  return call !== null && call.value > 0n;
}

/** Returns the transfers by block id, for the blocks where the node shows everything that can be checked. */
async function readTransfers(
  { usdt, fees }: ReadDeps,
  node: Node,
  blocks: readonly ExaminedBlock[],
): Promise<Map<string, ChainTransfer[]>> {
  const numbers = blocks.map(({ number }) => number);
  // One more block on each side shows that the first and the last block are complete.
  const question = logsBetween(Math.max(0, Math.min(...numbers) - 1), Math.max(...numbers) + 1, usdt);
  const logs = (await node.ask(question, { isOptional: true }).catch(orNull)) ?? [];
  const heights = logs.map(({ blockNumber }) => blockNumber);
  const [first = 0, last = 0] = [heights[0], heights.at(-1)];
  if (!heights.every((height, index) => height >= (heights[index - 1] ?? first))) return new Map();
  const byBlock = grouped(logs, ({ blockId }) => blockId);
  const readable = blocks.flatMap((block): [string, ChainTransfer[]][] => {
    if (block.number <= first || block.number >= last) return [];
    const transfers = transfersOf(block, byBlock.get(block.id) ?? [], usdt, fees.known());
    return transfers === null ? [] : [[block.id, transfers]];
  });
  return new Map(readable);
}

/** Returns `null` if this block needs its infos. */
function transfersOf(
  block: ExaminedBlock,
  shown: readonly ShownLog[],
  usdt: AccountHex,
  terms: readonly FeeTerms[],
): ChainTransfer[] | null {
  const byTransaction = grouped(shown, ({ txId }) => txId);
  const transactions = block.transactions.filter(({ txId, call }) => call !== null || byTransaction.has(txId));
  const infos = transactions.map((transaction) => {
    const logs = byTransaction.get(transaction.txId) ?? [];
    byTransaction.delete(transaction.txId);
    return infoWithLogs(
      block,
      transaction,
      logs.map(({ log }) => log),
    );
  });
  // A log that belongs to another block's transaction is left over.
  if (byTransaction.size > 0) return null;
  try {
    const { transfers, events, hasOddSplit } = readLogs({ ...block, transactions }, infos, usdt, terms);
    return events.length === 0 && !hasOddSplit ? transfers : null;
  } catch (error) {
    return orNull(error);
  }
}

function grouped(logs: readonly ShownLog[], keyOf: (log: ShownLog) => string): Map<string, ShownLog[]> {
  const groups = new Map<string, ShownLog[]>();
  for (const log of logs) {
    const group = groups.get(keyOf(log));
    if (group === undefined) groups.set(keyOf(log), [log]);
    else group.push(log);
  }
  return groups;
}

/**
 * A log from a node's JSON-RPC, not validated yet, in the same form as in infos. `blockId` and `txId` are hex without a prefix if they are
 * valid. `blockNumber` is `NaN` if it isn't a number.
 */
type ShownLog = {
  blockNumber: number;
  blockId: string;
  txId: string;
  log: { address: string; topics: unknown; data: string };
};

/** A log takes about 600 bytes. java-tron returns at most 10,000 (`LogMatch`). */
const LOGS_BYTES = 16 * 1024 * 1024;
const MAX_LOGS = 20_000;
const UNREAD = new Set(['transactionIndex', 'logIndex', 'removed']);

/**
 * Asks for a contract's logs in the blocks from `first` to `last` (`eth_getLogs`). A node that hasn't indexed a block returns no logs for
 * it, so an empty answer proves nothing.
 */
export function logsBetween(first: number, last: number, contract: AccountHex): Question<ShownLog[]> {
  const filter = { fromBlock: hexOf(first), toBlock: hexOf(last), address: `0x${contract}` };
  return {
    substitutable: 'logs',
    ...{ maxBytes: LOGS_BYTES, maxHeldBytes: LOGS_BYTES },
    http: {
      path: '/jsonrpc',
      body: { jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params: [filter] },
      shape: { skipped: { result: UNREAD }, elements: { result: readLog } },
      // For example `{"jsonrpc":"2.0","id":1,"result":[…]}`, or `{…,"error":{"code":-32005,"message":"…"}}`.
      read: (json) => {
        const { result, error } = json as { result?: unknown; error?: { message?: unknown } | null };
        if (Array.isArray(result) && result.length <= MAX_LOGS) return result as ShownLog[];
        const { message = 'neither logs nor an error' } = error ?? {};
        throw new TypeError(`it did not return the logs for blocks ${first} to ${last}: ${String(message)}`);
      },
    },
    grpc: null,
  };
}

function readLog(shown: unknown): ShownLog {
  const { blockNumber, blockHash, transactionHash, address, topics, data } = (shown ?? {}) as Record<string, unknown>;
  const bare = Array.isArray(topics) ? topics.map(withoutPrefix) : topics;
  return {
    blockNumber: typeof blockNumber === 'string' ? Number(blockNumber) : Number.NaN,
    blockId: withoutPrefix(blockHash),
    txId: withoutPrefix(transactionHash),
    log: { address: withoutPrefix(address), topics: bare, data: withoutPrefix(data) },
  };
}

function withoutPrefix(hex: unknown): string {
  return typeof hex === 'string' ? hex.replace(/^0x/, '') : '';
}

function hexOf(number: number): string {
  return `0x${number.toString(16)}`;
}
