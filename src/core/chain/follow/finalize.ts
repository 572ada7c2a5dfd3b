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

const MAX_NAMED = 20;
/** Maximum number of blocks per transaction while catching up. It keeps memory use and lock times low, and still needs few commits. */
export const BATCH_BLOCKS = 60;
/**
 * Limits on blocks that only operators' agreement confirms, because their header proves nothing: in a row, and per hour of the chain's
 * time.
 */
const MAX_UNPROVEN_IN_A_ROW = 60;
const MAX_UNPROVEN_IN_AN_HOUR = 240;
const HOUR_MS = 3_600_000;

/** Returns the height up to which our own verified headers prove that the chain is irreversible. It's never below the solid cursor. */
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
    const reason = `its irreversible block ${solid.number} (${solid.id}) is not signed by any known producer`;
    deps.pool.report(node, 'unverifiable', reason);
    return;
  }
  deps.metrics.chainSolidNumber.set({ network: deps.network }, solid.number);
  const ours = following.window.find(({ number }) => number === solid.number);
  if (ours !== undefined && ours.id !== solid.id) {
    // Either our window is an orphaned branch, or the node is wrong. We read our blocks again, and the next blocks decide.
    replaceFrom(following, following.window.indexOf(ours));
    deps.pool.report(
      node,
      'contradicts',
      `its irreversible block ${solid.number} is ${solid.id}, but the ledger has ${ours.id}`,
    );
    return;
  }
  if (solid.number > following.nodeSolid.number) following.nodeSolid = { number: solid.number, time: solid.time };
}

/**
 * Records blocks in order, up to the first that isn't ready. A block is ready if both our own headers and the node say that it's
 * irreversible, and enough operators agree on its logs. Returns the number of recorded blocks.
 */
export async function finalize(deps: FollowDeps, watching: Watching, following: Following): Promise<number> {
  const { network, metrics } = deps;
  if (!isLinked(following)) {
    // Only a bug can cause this. Record nothing from such a window.
    replaceFrom(following, 0);
    throw new AppError('CHAIN_CONTRADICTION', 'the verified blocks were not linked, so Quittance reads them again', {
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
    // Do this before the blocks are recorded, because recorded blocks are never examined again. After a crash in between, the same alarms
    // are simply raised again.
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
 * Returns the height up to which blocks can be judged. Once Tether replaces the contract, only its successor logs payments that other
 * contracts make. The operators' agreed event names the successor; after a restart the nodes are asked for it, because the ledger doesn't
 * store it. While it's unknown, all later blocks are held, and an alarm is raised as soon as one of them is irreversible.
 */
export async function judgeableUpTo(deps: FollowDeps, following: Following): Promise<number> {
  const { fees, agreement, alarms } = deps;
  const unanswered = await fees.unansweredFrom(deps);
  // Waiting gains nothing if there's only one operator, because we never trust a successor that only one operator names.
  const held = agreement > 1 ? unanswered - 1 : Number.POSITIVE_INFINITY;
  const { number: recorded } = following.base;
  if (held <= recorded && recorded < following.nodeSolid.number) {
    const detail =
      `block ${recorded + 1} and all later ones are held: Tether replaced the USDT contract (Deprecate, block ${unanswered}), and Quittance cannot see ` +
      `payments until ${agreement} operators name the contract that replaced it. Answers: ${fees.answers()}. Until then no invoice becomes PAID ` +
      'or expires. Configure each node to answer constant calls (triggerconstantcontract), or add a node from another operator. Quittance checks again every minute.';
    await alarms.raise('unverifiable-block', '', detail);
  }
  return held;
}

/**
 * Like `judgeableUpTo`, but counts only blocks that were read with the current successor. Blocks that were read without it are read again.
 */
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
 * Returns how many blocks at the start of the window may be recorded. Stops at an unproven block that exceeds the limits, because colluding
 * operators could invent payments in blocks that no one can prove. A block that the operator let pass resets the count.
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
          `block ${number} (${id}) is held, because no node can prove it. Before it, ${counts.inARow} blocks in a row and ${inAnHour} blocks within an hour were not proven either. ` +
          "Set a node's gRPC port (#grpc=grpc://host:50051), which proves such blocks, or compare the block with another source and accept " +
          `it: quittance chain pass --network ${network} --block ${number}`;
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

/** Whether the window is a single chain that starts at the solid block. Only a linked block counts as built on another. */
function isLinked({ base, window }: Following): boolean {
  return window.every((block, index) => {
    const parent = window[index - 1] ?? base;
    return isNext(parent, block);
  });
}

function toSolidBlock(block: WindowBlock): SolidBlock {
  if (block.agreed === null) throw new Error(`operators do not agree on block ${block.number}`);
  return { ...toChainBlock(block), evidence: block.agreed.evidence };
}

/** Logs a block whose contents its header doesn't prove, so that the operator knows which payments rely on nodes alone. */
async function logUnproven(deps: FollowDeps, { number, id, isProven, agreed }: WindowBlock): Promise<void> {
  if (isProven || agreed === null) return;
  const { transfers } = agreed.logs;
  const shown = [...new Set(transfers.map(({ txId }) => txId))];
  const named = shown.length === 0 ? 'none' : shown.slice(0, MAX_NAMED).join(', ');
  const rest = shown.length > MAX_NAMED ? ` and ${shown.length - MAX_NAMED} more` : '';
  const detail =
    `block ${number} (${id}) contains bytes that no node shows, so its transactions are not proven: Quittance counts them as ` +
    `${agreed.evidence.nodes.join(' and ')} show them. Its USDT transfers: ${named}${rest}. ` +
    'To prove such blocks, add a node with gRPC.';
  deps.log.warn({ block: number, transactions: shown.slice(0, MAX_NAMED) }, 'a block was accepted without proof');
  // All unproven blocks share one alarm, because a stranger can cause one every three seconds.
  await deps.alarms.raise('unproven-block', '', detail);
}
