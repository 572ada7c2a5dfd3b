import type { ChainTransfer } from '../domain/chain-block.ts';
import { AppError } from '../domain/errors.ts';
import { accountToAddress } from '../tron/address.ts';
import { decodeTransferLog } from '../tron/usdt.ts';
import type { Node } from './node-member.ts';
import { isSignedBy, type KnownProducers } from './producers.ts';
import { type ProvenHeader, proveBlock, proveHeader } from './prove-block.ts';
import type { ChainParameters } from './read-block.ts';

/** A block as one node shows it, whether or not it can be proven. `id` and `parentId` are 64 hex characters. */
export type ShownBlock = {
  node: Node;
  id: string;
  parentId: string;
  transactionCount: number;
  /** What the logs that the node shows say of USDT. */
  transfers: ChainTransfer[];
  /** Why it cannot be proven; `null` where it can. */
  problem: string | null;
  /** Id and signature belong to the header, and a known producer signed it, whatever stands in the block. */
  isHeaderProven: boolean;
};

const HASH = /^[0-9a-f]{64}$/;
/** As when blocks are followed: a block of 2 MB in JSON, with room. */
const BLOCK_BYTES = 24 * 1024 * 1024;

/**
 * What a node says stands in a block, taken as it comes, for a person to judge; nobody is paused for it. A block of somebody's own is
 * not proven, whatever it hashes to: a known producer must have signed it. `null`: the node does not have the block.
 * Error: `NODE_REFUSED`.
 */
export async function showBlock(
  chain: ChainParameters & { known: KnownProducers },
  node: Node,
  number: number,
): Promise<ShownBlock | null> {
  const answer = await node.post(
    '/wallet/getblock',
    { id_or_num: String(number), detail: true },
    { maxBytes: BLOCK_BYTES },
  );
  const { blockID: id, block_header, transactions = [] } = (answer ?? {}) as Record<string, unknown>;
  if (id === undefined) return null;
  const parentId = (block_header as { raw_data?: { parentHash?: unknown } } | null | undefined)?.raw_data?.parentHash;
  const isBlock = typeof id === 'string' && HASH.test(id) && Number.parseInt(id.slice(0, 16), 16) === number;
  if (!isBlock || typeof parentId !== 'string' || !HASH.test(parentId) || !Array.isArray(transactions)) {
    throw new AppError('NODE_REFUSED', `${node.origin} shows no block ${number}`, { retryable: true });
  }
  const infos = await node.post('/wallet/gettransactioninfobyblocknum', { num: number }, { maxBytes: BLOCK_BYTES });
  return {
    ...{ node, id, parentId, transactionCount: transactions.length, transfers: readShownTransfers(infos, chain) },
    problem: problemOf(chain, () => proveBlock(answer, { ...chain, number })),
    isHeaderProven: problemOf(chain, () => proveHeader(answer, { ...chain, number })) === null,
  };
}

function problemOf({ known }: { known: KnownProducers }, prove: () => ProvenHeader): string | null {
  try {
    const header = prove();
    if (isSignedBy(known, header)) return null;
    return `${accountToAddress(header.signer)} signed it, who is no producer that is known`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

type ShownInfo = { id?: unknown; log?: unknown } | null;

/** What cannot be read is left out: it is shown, not believed. */
function readShownTransfers(infos: unknown, { usdt }: ChainParameters): ChainTransfer[] {
  if (!Array.isArray(infos)) return [];
  return (infos as ShownInfo[]).flatMap((info): ChainTransfer[] => {
    const { id: txId, log = [] } = info ?? {};
    if (typeof txId !== 'string' || !HASH.test(txId) || !Array.isArray(log)) return [];
    return (log as object[]).flatMap((each, logIndex) => {
      const transfer = decodeTransferLog(each ?? {});
      if (transfer === null || transfer.contract !== usdt || transfer.value === 0n) return [];
      const { from, to, value: amount } = transfer;
      return [{ txId, logIndex, from, to, amount, isProven: false }];
    });
  });
}
