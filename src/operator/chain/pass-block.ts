import { blockAt } from '../../chain/nodes/ask-block.ts';
import { infosOf } from '../../chain/nodes/ask-infos.ts';
import type { Node } from '../../chain/nodes/node.ts';
import { type ExaminedBlock, examineBlock } from '../../chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers, loadProducers } from '../../chain/verify/producers.ts';
import type { ChainParameters } from '../../chain/verify/read-block.ts';
import { readLogs } from '../../chain/verify/read-logs.ts';
import { digestWord } from '../../chain/verify/settle-unproven.ts';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { findHeadBlockId } from '../../store/chain/head-blocks.ts';
import { findIncoming } from '../../store/chain/incoming.ts';
import { findPassedBlock, insertPassedBlock } from '../../store/chain/passed-blocks.ts';
import { accountToAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import type { NodeDeps } from '../node-connection.ts';
import { recordActions } from '../record-actions.ts';
import { followedCursor } from './followed-cursor.ts';
import { readHeight } from './read-range.ts';
import type { PassedBlockView, ShownBlockView } from './views.ts';

/** The block that the operator means; `id` is `null` if the nodes show only one block of this number. */
type Wanted = { number: number; id: string | null };

/** Reads the block that the operator means. Errors: `INVALID_ARGUMENT`. */
export function readWantedBlock(input: { block: string; id?: string | undefined }): Wanted {
  const number = readHeight('block', input.block);
  if (input.id === undefined) return { number, id: null };
  const id = input.id.trim().toLowerCase();
  if (/^[0-9a-f]{64}$/.test(id)) return { number, id };
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${{ field: 'id' }} ${clip(input.id)} is no block id: it has 64 hexadecimal characters`,
  );
}

/** `onSilent` hears of each node that shows no such block; `reason` is `null` where it does not have it. */
type Deps = NodeDeps & { onSilent(origin: string, reason: string | null): void };

/** `transactionCounts`: one for the block that each of `view.shownBy` shows, in the same order. */
type Passed = { view: ShownBlockView | PassedBlockView; transactionCounts: readonly number[] };

/**
 * Shows the content of the next block that no node can prove, and the nodes that show it. If the operator compared it with another
 * source (`isCompared`), the block passes, which is recorded for ever. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`.
 */
export async function passBlock(
  deps: Deps,
  actor: Actor,
  { number, id, reason, isCompared }: Wanted & { reason: string; isCompared: boolean },
): Promise<Passed> {
  const { db, network } = deps;
  const passedBy = actor.name;
  const parent = await findParent(deps, number);
  const shown = (await showAll(deps, number)).filter(({ parentId }) => parentId === parent.id);
  const block = choose(shown, { number, id }, parent);
  const before = await findPassedBlock(db, network, number);
  if (before?.digest === block.digest) {
    throw new AppError(
      'CONFLICT',
      `block ${number} (${block.id}) passes already: ${before.passedBy} said so at ${toIso(before.passedAt)}`,
    );
  }
  const view = await describe(deps, { number, shown, block });
  const transactionCounts = shown.map(({ transactionCount }) => transactionCount);
  if (!isCompared) return { view, transactionCounts };
  const passedAt = deps.now();
  await db.transaction(async (tx) => {
    await insertPassedBlock(tx, network, {
      number,
      blockId: block.id,
      digest: block.digest,
      passedAt,
      passedBy,
      reason,
    });
    const detail = { network, number, reason, shownBy: view.shownBy.map(({ node }) => node) };
    await recordActions(tx, actor, passedAt, [{ projectId: null, action: 'block.passed', subject: block.id, detail }]);
  });
  return { view: { ...view, passedBy, passedAt: toIso(passedAt), reason }, transactionCounts };
}

/** Only a block at which the watcher can stand still passes: the one after what was examined, or one after what is recorded. Returns the one before it. */
async function findParent({ db, network }: Deps, number: number): Promise<{ number: number; id: string }> {
  const { solid, head } = await followedCursor(db, network);
  const parent = [solid, head].find((block) => block.number === number - 1);
  if (parent !== undefined) return parent;
  const examinedId = number > solid.number ? await findHeadBlockId(db, network, number - 1) : null;
  if (examinedId !== null) return { number: number - 1, id: examinedId };
  const why = number <= solid.number ? 'is recorded already' : 'comes later';
  throw new AppError(
    'INVALID_ARGUMENT',
    `block ${number} ${why}: the next block of ${network} is ${head.number + 1}, and a block up to that can pass`,
  );
}

async function showAll(deps: Deps, number: number): Promise<ShownBlock[]> {
  const shown: ShownBlock[] = [];
  const known = await loadProducers(deps.db, deps.network);
  if (known === null)
    throw new AppError('NOT_FOUND', `the producers of ${deps.network} are not known yet: start the service first`);
  for (const node of await deps.pool.available()) {
    try {
      const block = await showBlock({ ...deps, known }, node, number);
      if (block === null) deps.onSilent(node.origin, null);
      else shown.push(block);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      deps.onSilent(node.origin, error.message);
    }
  }
  return shown;
}

function choose(
  shown: readonly ShownBlock[],
  { number, id }: Wanted,
  parent: { number: number; id: string },
): ShownBlock {
  const proven = shown.find(({ problem }) => problem === null);
  if (proven !== undefined) {
    throw new AppError(
      'CONFLICT',
      `${proven.node.origin} shows block ${number} (${proven.id}) so that it can be proven: nobody has to let it pass`,
    );
  }
  const ids = [...new Set(shown.map((block) => block.id))];
  const wanted = id ?? (ids.length === 1 ? ids[0] : undefined);
  const chosen = shown.find((block) => block.id === wanted);
  if (chosen !== undefined) return chosen;
  if (ids.length === 0) {
    throw new AppError(
      'NOT_FOUND',
      `no node shows a block ${number} that follows block ${parent.number} (${parent.id})`,
    );
  }
  const seen = shown.map(({ node, id: each }) => `${node.origin} shows ${each}`).join('; ');
  throw new AppError(
    'CONFLICT',
    id === null
      ? say`the nodes differ, so say which with ${{ field: 'id' }}: ${seen}`
      : say`nobody shows ${{ field: 'id' }} ${id}: ${seen}`,
  );
}

/** With what it would bring to our addresses, and which invoice that would pay. */
async function describe(
  { db, network }: Deps,
  { number, shown, block }: { number: number; shown: readonly ShownBlock[]; block: ShownBlock },
): Promise<ShownBlockView> {
  const { id: blockId, time: blockTime, transactionCount, isHeaderProven } = block;
  const placed = block.transfers.map((transfer) => ({ ...transfer, blockId, blockTime }));
  const transfers = (await findIncoming(db, network, placed)).flatMap(({ index, address, invoice }) => {
    const transfer = placed[index];
    if (transfer === undefined) return [];
    const { txId, logIndex, amount } = transfer;
    const paid = { invoiceId: invoice && encodeId('inv', invoice.id), status: invoice?.status ?? null };
    return [{ txId, logIndex, address, amount: formatAmount(microUsdt(amount)), ...paid }];
  });
  const shownBy = shown.map(({ node: { origin, operator }, id, problem }) => {
    return { node: origin, operator, blockId: id, problem };
  });
  return { network, number, blockId, transactionCount, isHeaderProven, shownBy, transfers };
}

/** A block as one node shows it, whether or not it can be proven. `id` and `parentId` are 64 hex characters. */
type ShownBlock = {
  node: Node;
  id: string;
  parentId: string;
  time: UnixMs;
  /** Over all that is shown (64 hex): who shows the same has the same. */
  digest: string;
  transactionCount: number;
  /** The USDT transfers in the logs that the node shows. */
  transfers: ChainTransfer[];
  /** Why it cannot be proven; `null` where it can. */
  problem: string | null;
  /** Id and signature belong to the header, and a known producer signed it, whatever stands in the block. */
  isHeaderProven: boolean;
};

/**
 * Shows the content of a block as a node tells it, for a person to judge; no node is paused for it. A self-made block is
 * not proven, whatever it hashes to: a known producer must have signed it. `null`: the node does not have the block.
 * Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE` if the node's answers contradict each other.
 */
async function showBlock(
  { usdt, slotMs, known }: ChainParameters & { known: KnownProducers },
  node: Node,
  number: number,
): Promise<ShownBlock | null> {
  const shown = await node.ask(blockAt(number));
  if (shown === null) return null;
  const block = examineBlock(shown, { number, slotMs, usdt });
  const logs = readLogs(block, await node.ask(infosOf(number, usdt)), usdt);
  return {
    ...{ node, id: block.id, parentId: block.parentId, time: block.time, digest: digestWord(block, logs) },
    ...{ transactionCount: block.transactions.length, transfers: logs.transfers },
    ...{ problem: problemOf(known, block), isHeaderProven: isSignedBy(known, block) },
  };
}

function problemOf(known: KnownProducers, block: ExaminedBlock): string | null {
  if (!block.isProven) return 'what the node shows as JSON lacks bytes that its header names';
  if (isSignedBy(known, block)) return null;
  const signer = block.signer === null ? 'nobody' : accountToAddress(block.signer);
  return `${signer} signed it, who is no producer that is known`;
}
