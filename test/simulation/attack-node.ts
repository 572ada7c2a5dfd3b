import { GENESIS_BLOCK_IDS } from '@quittance/tron/genesis';
import { createJsonReader } from '../../src/core/chain/nodes/json-reader.ts';
import type { Node } from '../../src/core/chain/nodes/node.ts';
import { AppError } from '../../src/core/domain/errors.ts';
import { type AttackChain, type Block, blockJson, HONEST, infosJson, type RpcLog, rpcLogsOf } from './attack-chain.ts';

type Body = {
  id_or_num?: string;
  num?: number;
  startNum?: number;
  endNum?: number;
  address?: string;
  function_selector?: string;
  params?: readonly { fromBlock: string; toBlock: string }[];
};
type Request = { path: string; body: Body };

/** Far above any answer of this chain. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;

const ASIDE_MS = 60_000;

/** A node's deviations from an honest one; `undefined` means the truth. They may change while a test runs. */
export type Lies = {
  /** Replaces a block at a height, in blocks, ranges and infos; `null` means none. */
  block?(number: number, path: string): Block | null | undefined;
  /** Replaces the newest irreversible block. */
  solid?(): Block | undefined;
  /** Replaces the current producers. */
  producers?(): readonly { account: string }[] | undefined;
  /** Replaces the logs of JSON-RPC. */
  logs?(logs: RpcLog[]): RpcLog[];
  /** Replaces any other answer; `refuse` gives none. */
  answer?(request: Request): object | 'refuse' | undefined;
};

export type AttackNode = Node & {
  lies: Lies;
  hasJsonRpc: boolean;
  /** The answer of its gRPC port about infos, or a refusal; `null` if it has no such port. */
  twin: object | 'refuse' | null;
  /** The number of requests by path. */
  requests: Map<string, number>;
  requestCount(): number;
  /** Returns its answer in JSON's form. */
  show(request: Request): object | 'refuse';
};

/** Creates a node on the chain that answers like java-tron. Nothing pauses or limits it, so a liar can do its worst. */
export function createAttackNode(name: string, chain: AttackChain): AttackNode {
  const requests = new Map<string, number>();
  const asideUntilMs = { logs: 0, ranges: 0, bytes: 0 };
  const node: AttackNode = {
    ...{ url: name, origin: name, operator: name, hasBytes: false, hasJsonRpc: true, twin: null },
    isOpenFor: (kind) => {
      const has = { ranges: true, logs: node.hasJsonRpc, bytes: node.twin !== null };
      return has[kind] && performance.now() >= asideUntilMs[kind];
    },
    setAside: (kind) => {
      asideUntilMs[kind] = performance.now() + ASIDE_MS;
    },
    ...{ requestsLeft: () => null, requests, lies: {} },
    requestCount: () => [...requests.values()].reduce((sum, count) => sum + count, 0),
    show: ({ path, body }) => {
      requests.set(path, (requests.get(path) ?? 0) + 1);
      return node.lies.answer?.({ path, body }) ?? answerOf(node.lies, chain, { path, body });
    },
    ask: async ({ http: { path, body, shape = {}, read } }, { wantsBytes = false } = {}) => {
      // An answer is never immediate.
      await null;
      const answer = wantsBytes && node.twin !== null ? node.twin : node.show({ path, body });
      if (answer === 'refuse') throw refused(`${name} refuses`);
      const reader = createJsonReader(shape, MAX_HELD_BYTES);
      reader.push(Buffer.from(JSON.stringify(answer)));
      try {
        return read(reader.end());
      } catch (error) {
        throw refused(`${name}: ${(error as Error).message}`);
      }
    },
  };
  return node;
}

function refused(message: string): AppError {
  return new AppError('NODE_REFUSED', message, { retryable: true });
}

function answerOf(lies: Lies, chain: AttackChain, { path, body }: Request): object {
  if (path === '/wallet/listwitnesses') {
    const producers = lies.producers?.() ?? chain.producers;
    return { witnesses: producers.map(({ account }) => ({ address: `41${account}`, isJobs: true })) };
  }
  if (path === '/wallet/getaccount') return { address: body.address };
  if (body.id_or_num === '0') return { blockID: GENESIS_BLOCK_IDS.nile, block_header: { raw_data: {} } };
  const isSolid = path.startsWith('/walletsolidity');
  if (isSolid && body.id_or_num === undefined) return blockJson(lies.solid?.() ?? chain.solid(), false);
  const last = isSolid ? chain.solid().number : chain.head().number;
  const blockAt = (number: number) => {
    const lie = lies.block?.(number, path);
    if (lie !== undefined) return lie;
    return number <= last ? (chain.at(number) ?? null) : null;
  };
  const between = (first: number, end: number) =>
    Array.from({ length: end - first }, (_, index) => blockAt(first + index) ?? []).flat();
  if (path.endsWith('/getblockbylimitnext')) {
    const { startNum = 0, endNum = 0 } = body;
    return { block: between(startNum, endNum).map((block) => blockJson(block, true)) };
  }
  if (path === '/jsonrpc') {
    const { fromBlock = '', toBlock = '' } = body.params?.[0] ?? {};
    const logs = between(Number(fromBlock), Number(toBlock) + 1).flatMap(rpcLogsOf);
    return { jsonrpc: '2.0', id: 1, result: lies.logs?.(logs) ?? logs };
  }
  if (path.endsWith('/getblock')) {
    const block = blockAt(Number(body.id_or_num));
    return block === null ? {} : blockJson(block, !isSolid);
  }
  const block = blockAt(Number(body.num));
  return block === null ? [] : infosJson(block);
}

/** Returns the producers after a vote with these newcomers. */
export function votedIn(newcomers: readonly (typeof HONEST)[number][]): typeof HONEST {
  return [...newcomers, ...HONEST.slice(newcomers.length)];
}
