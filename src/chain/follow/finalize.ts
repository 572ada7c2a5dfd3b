import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { applySolidBlocks } from '../../payments/apply-solid-blocks.ts';
import { applyContractEvents } from '../../payments/contract-states.ts';
import type { Watching } from '../../payments/watching.ts';
import { findPassedBlock } from '../../store/chain/passed-blocks.ts';
import type { Node } from '../nodes/node.ts';
import { isKnownSolid, solidHeightBy } from '../verify/producers.ts';
import { readNewestSolid } from '../verify/read-block.ts';
import { type FollowDeps, type Following, replaceFrom } from './following.ts';
import { isNext, toChainBlock, type WindowBlock } from './window.ts';

/** Transactions that an alarm names. */
const MAX_NAMED = 20;
/** Blocks of one transaction, at most, while catching up. Memory and lock time stay small, and commits are few. */
export const BATCH_BLOCKS = 60;
/** Blocks that no header proves and that count by the word of operators: in a row, and in an hour of the chain's time. */
const MAX_UNPROVEN_IN_A_ROW = 60;
const MAX_UNPROVEN_IN_AN_HOUR = 240;
const HOUR_MS = 3_600_000;

/** The height up to which our own verified headers prove the chain to be irreversible; the solid cursor's at least. */
export function ownSolidOf({ window, producers, base }: Following): number {
  if (producers === null) return base.number;
  const signed = window.flatMap(({ number, producer, signer }) =>
    signer === null ? [] : { number, producer, signer },
  );
  return Math.max(base.number, solidHeightBy(producers, signed) ?? 0);
}

/** Asks the node for its newest irreversible block, which must be on our chain. Costs one request. */
export async function askSolid(deps: FollowDeps, following: Following, node: Node): Promise<void> {
  const solid = await readNewestSolid(deps, node);
  if (!isKnownSolid(following.producers, solid)) {
    const reason = `its irreversible block ${solid.number} (${solid.id}) is signed by no known producer`;
    deps.pool.report(node, 'unverifiable', reason);
    return;
  }
  deps.metrics.chainSolidNumber.set({ network: deps.network }, solid.number);
  const ours = following.window.find(({ number }) => number === solid.number);
  if (ours !== undefined && ours.id !== solid.id) {
    // Our window is a branch that lost, or the node is wrong: the next blocks decide. Our blocks are read again.
    replaceFrom(following, following.window.indexOf(ours));
    deps.pool.report(
      node,
      'contradicts',
      `its irreversible block ${solid.number} is ${solid.id}, and the ledger has ${ours.id}`,
    );
    return;
  }
  if (solid.number > following.nodeSolid.number) following.nodeSolid = { number: solid.number, time: solid.time };
}

/**
 * Records the blocks that are irreversible by our own headers and by the node's word, and on whose logs enough operators
 * agree, in order, up to the first that is not. Returns how many.
 */
export async function finalize(deps: FollowDeps, watching: Watching, following: Following): Promise<number> {
  const { network, metrics } = deps;
  if (!isLinked(following)) {
    // No part of this program leaves it so; if one ever does, nothing is recorded from it.
    replaceFrom(following, 0);
    throw new AppError('CHAIN_CONTRADICTION', 'the verified blocks were not linked, and are read again', {
      retryable: true,
    });
  }
  const solid = Math.min(ownSolidOf(following), following.nodeSolid.number);
  following.judgedUpTo = await judgedUpTo(deps, following);
  const limit = Math.min(solid, following.judgedUpTo);
  const firstOpen = following.window.findIndex(({ number, agreed }) => number > limit || agreed === null);
  const ready = await countAllowed(deps, following, firstOpen < 0 ? following.window.length : firstOpen);
  for (let done = 0; done < ready; done += BATCH_BLOCKS) {
    const blocks = following.window.slice(0, Math.min(BATCH_BLOCKS, ready - done));
    // Before the blocks are recorded, for they are not looked at again: after a crash between, the same alarms are raised anew.
    await applyContractEvents(
      { ...watching, log: deps.log },
      blocks.map(({ number, agreed }) => ({ number, events: agreed?.logs.events ?? [] })),
    );
    for (const block of blocks) await logUnproven(deps, block);
    const counts = await applySolidBlocks(watching, blocks.map(toSolidBlock));
    for (const block of blocks) following.unproven = countUnproven(following.unproven, block);
    for (const [kind, count] of Object.entries(counts)) metrics.transfers.inc({ network, kind }, count);
    const last = blocks.at(-1);
    if (last === undefined) break;
    following.base = { number: last.number, id: last.id, time: last.time };
    following.window.splice(0, blocks.length);
  }
  if (ready > 0) {
    following.diagnosingFork.clear();
    await deps.alarms.resolve('unverifiable-block');
    await deps.alarms.resolve('not-solid');
    if (following.window.every(({ agreed }) => agreed !== null)) await deps.alarms.resolve('nodes-disagree');
  }
  return ready;
}

/**
 * The height up to which blocks can be judged. Once the contract is replaced, payments through other contracts are logged by its successor alone.
 * The event that operators agree on names it. After a restart nodes are asked for it, because the ledger does not keep it. Until it is known, all
 * later blocks are held, and an alarm says so once one of them is irreversible.
 */
export async function judgeableUpTo(deps: FollowDeps, following: Following): Promise<number> {
  const { fees, agreement, alarms } = deps;
  const unanswered = await fees.unansweredFrom(deps);
  // One operator is not believed, whatever successor it names, so nothing is gained by waiting.
  const held = agreement > 1 ? unanswered - 1 : Number.POSITIVE_INFINITY;
  const { number: recorded } = following.base;
  if (held <= recorded && recorded < following.nodeSolid.number) {
    const detail =
      `block ${recorded + 1} and all later ones are held: Tether replaced the USDT contract (Deprecate, block ${unanswered}), and Quittance cannot see ` +
      `payments until ${agreement} operators name the contract that replaced it. Answers: ${fees.answers()}. Until then no invoice becomes PAID ` +
      'or expires. Make each node answer constant calls (triggerconstantcontract), or add a node of another operator. Quittance asks again every minute.';
    await alarms.raise('unverifiable-block', '', detail);
  }
  return held;
}

/** The same, of blocks that were read with the successor that is known. Those that were read before it was known are read again. */
async function judgedUpTo(deps: FollowDeps, following: Following): Promise<number> {
  const { fees, agreement } = deps;
  for (const { number, agreed } of following.window) {
    if (agreed === null) break;
    for (const { name, account } of agreed.logs.events)
      if (name === 'Deprecate') fees.noteReplaced(number, agreement > 1 ? account : null);
  }
  const held = await judgeableUpTo(deps, following);
  for (const [index, { number, agreed }] of following.window.entries()) {
    if (agreed?.logs.successor === fees.successorAt(number)) continue;
    if (agreed !== null) replaceFrom(following, index);
    return Math.min(held, number - 1);
  }
  return held;
}

/**
 * How many of the first blocks of the window may be recorded: up to one that is not proven, after many that were not. Operators that agree to
 * make things up need no more than that nobody can prove what they show. A block that a person let pass begins the count anew.
 */
async function countAllowed(deps: FollowDeps, following: Following, ready: number): Promise<number> {
  const { db, network, alarms } = deps;
  let counts = following.unproven;
  for (const [index, block] of following.window.slice(0, ready).entries()) {
    const { number, id, time, digest } = block;
    const inAnHour = counts.times.filter((each) => each > time - HOUR_MS).length;
    const isTooMuch = counts.inARow >= MAX_UNPROVEN_IN_A_ROW || inAnHour >= MAX_UNPROVEN_IN_AN_HOUR;
    if (!block.isProven && isTooMuch) {
      block.isPassed = (await findPassedBlock(db, network, number))?.digest === digest;
      if (!block.isPassed) {
        const detail =
          `block ${number} (${id}) is held: no node proves it, nor ${counts.inARow} blocks in a row before it and ${inAnHour} of the hour before. ` +
          "Name a node's gRPC port (#grpc=grpc://host:50051), which proves such blocks, or compare the block with another source and let it " +
          `pass: quittance chain pass --network ${network} --block ${number}`;
        await alarms.raise('unverifiable-block', '', detail);
        return index;
      }
    }
    counts = countUnproven(counts, block);
  }
  return ready;
}

function countUnproven({ inARow, times }: Following['unproven'], block: WindowBlock): Following['unproven'] {
  if (block.isProven) return { inARow: 0, times };
  if (block.isPassed) return { inARow: 1, times: [block.time] };
  return { inARow: inARow + 1, times: [...times, block.time].slice(-MAX_UNPROVEN_IN_AN_HOUR) };
}

/** Whether the window is one chain from the solid block on. A block counts as built on another only if it links to it. */
function isLinked({ base, window }: Following): boolean {
  return window.every((block, index) => {
    const parent = window[index - 1] ?? base;
    return isNext(parent, block);
  });
}

function toSolidBlock(block: WindowBlock): SolidBlock {
  if (block.agreed === null) throw new Error(`block ${block.number} is not agreed on`);
  return { ...toChainBlock(block), evidence: block.agreed.evidence };
}

/** No header proves what is in such a block: the operator should know which payments rest on the word of nodes. */
async function logUnproven(deps: FollowDeps, { number, id, isProven, agreed }: WindowBlock): Promise<void> {
  if (isProven || agreed === null) return;
  const { transfers } = agreed.logs;
  const shown = [...new Set(transfers.map(({ txId }) => txId))];
  const named = shown.length === 0 ? 'none' : shown.slice(0, MAX_NAMED).join(', ');
  const rest = shown.length > MAX_NAMED ? ` and ${shown.length - MAX_NAMED} more` : '';
  const detail =
    `block ${number} (${id}) holds bytes that no node shows, so its transactions are not proven: they count as ` +
    `${agreed.evidence.nodes.join(' and ')} show them. Its transfers of USDT: ${named}${rest}. ` +
    'A node that Quittance asks over gRPC proves such blocks.';
  deps.log.warn({ block: number, transactions: shown.slice(0, MAX_NAMED) }, 'a block counts without a proof');
  // All such blocks share one alarm: a stranger can have such a block made every three seconds.
  await deps.alarms.raise('unproven-block', '', detail);
}
