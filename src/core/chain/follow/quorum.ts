import type { AccountHex } from '@quittance/tron/address';
import { inGroups } from '../../runtime/concurrency.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import { describeNodes } from '../nodes/node-pool.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { type ReadBlock, readLogsIfThere, readLogsOf } from '../verify/read-block.ts';
import type { FollowDeps } from './following.ts';
import { addVote, type ChainWindow, settle, toWindowBlock, type WindowBlock } from './window.ts';

/** A node can be this many blocks behind another without being faulty. */
export const LAG_BLOCKS = 3;
/** Maximum number of blocks whose logs are requested in one step: at the head, and while catching up. */
const STEP_BLOCKS = 4;
const BEHIND_STEP_BLOCKS = 64;
const BEHIND_PAUSE_MS = 250;
const PARALLEL_BLOCKS = 8;
/**
 * If this many blocks are waiting for agreement while catching up, reading pauses for up to `AWAY_MS`. After that, an operator that is
 * still down no longer holds up reading.
 */
const MANY_OPEN_BLOCKS = 64;
const AWAY_MS = 10_000;
/**
 * If the oldest block still waits for agreement after this many block times, an alarm is raised. On a real network, that's within a minute.
 */
const WAITING_BLOCKS = 15;
/** Operators whose answers differ are asked again after this many block times. */
const DISPUTE_BLOCKS = 2;

/** Whether other nodes must confirm the logs, because the header doesn't prove all of them. */
export function needsAgreement({ block, logs }: ReadBlock): boolean {
  const isOpen = block.transactions.some(
    ({ isSuccess, isContract, call }) => isSuccess && isContract !== false && call === null,
  );
  return isOpen || logs.isForwarded || logs.transfers.some(({ isProven }) => !isProven);
}

/** Creates a window block from one node's answer, and adds the answers from the other nodes that already have the block. */
export async function withQuorum(
  deps: FollowDeps,
  read: ReadBlock,
  signer: AccountHex | null,
  others: readonly Node[],
): Promise<WindowBlock> {
  const block = toWindowBlock(read, signer);
  const agreement = needsAgreement(read) ? deps.agreement : 1;
  settle(block, agreement);
  if (block.agreed === null) {
    await Promise.all(others.map((node) => ask(deps, block, read.block, node, { mayLag: true })));
  }
  return block;
}

/** Returns the nodes to ask in addition to the one that provided the blocks. */
export function othersFor({ agreement }: FollowDeps, nodes: readonly Node[], first: Node): Node[] {
  return ofDifferentOperators(
    nodes.filter(({ operator }) => operator !== first.operator),
    agreement - 1,
  );
}

export type Quorum = ReturnType<typeof createQuorum>;

/** Collects the logs that other operators show for the blocks in the window. All times are monotonic. */
export function createQuorum(deps: FollowDeps, window: ChainWindow) {
  const noteWaiting = createWaitingNote(deps);
  let nextMs = 0;
  /** The time at which operators that disagree are asked again. */
  let disputeNextMs = 0;
  /** The time when many blocks started waiting for further operators, or `null` if only a few are waiting. */
  let openSinceMs: number | null = null;

  const gather = async (
    nodes: readonly Node[],
    { isNewestAsked, isBehind }: { isNewestAsked: boolean; isBehind: boolean },
  ): Promise<void> => {
    const asked = isNewestAsked ? window.blocks.slice(0, -1) : window.blocks;
    const open = asked.filter(({ agreed }) => agreed === null).slice(0, isBehind ? BEHIND_STEP_BLOCKS : STEP_BLOCKS);
    const operators = ofDifferentOperators(nodes, nodes.length);
    const nowMs = performance.now();
    await noteWaiting(window.blocks.find(({ agreed }) => agreed === null));
    if (open.length === 0 || operators.length < deps.agreement || nowMs < nextMs) return;
    nextMs = nowMs + (isBehind ? BEHIND_PAUSE_MS : deps.blockMs / 2);
    await inGroups(open, isBehind ? PARALLEL_BLOCKS : 1, async (block) => {
      const { examined } = block;
      if (examined === null) return;
      // If no known key signed a block, other nodes may have a good reason not to have it.
      const mayLag = block.signer === null || block.number > window.tip().number - LAG_BLOCKS;
      const isDisputed = new Set([...block.votes.values()].map(({ logs }) => logs.digest)).size > 1;
      const isRetry = isDisputed && nowMs >= disputeNextMs;
      const silent = operators.filter(({ operator }) => !block.votes.has(operator));
      // An operator may lack a block without a known signer, so all of them are asked.
      const isAnyones = isDisputed || block.signer === null;
      const wanted = isRetry ? operators : isAnyones ? silent : silent.slice(0, deps.agreement - 1);
      await Promise.all(wanted.map((node) => ask(deps, block, examined, node, { mayLag })));
      if (block.agreed === null && isRetry && !mayLag) await logOpen(deps, block);
    });
    if (isBehind && open.some(({ agreed }) => agreed !== null)) nextMs = nowMs;
    if (nowMs >= disputeNextMs) disputeNextMs = nowMs + DISPUTE_BLOCKS * deps.blockMs;
  };
  return {
    /**
     * Requests logs for the blocks that too few operators agree on, oldest first, from the operators that haven't shown their logs yet. If
     * the operators' logs differ, all of the operators are asked again periodically. If operators disagree about a block that all of them
     * must have, an alarm is raised. If too few operators are available to reach agreement, no node is asked. `isNewestAsked` means that
     * the operators were asked for the newest block a moment ago.
     */
    gather: (nodes: readonly Node[], options: { isNewestAsked: boolean }) =>
      gather(nodes, { ...options, isBehind: false }),
    /**
     * Settles as many blocks as possible that are waiting for agreement. Call this while catching up: it asks for more blocks per step, and
     * starts the next step immediately as long as blocks are being settled.
     */
    gatherOpen: async () => {
      if (window.countOpen() > 0) {
        await gather(await deps.pool.available(), { isNewestAsked: false, isBehind: true });
      }
      openSinceMs = window.countOpen() < MANY_OPEN_BLOCKS ? null : (openSinceMs ?? performance.now());
    },
    /** Whether reading should pause because no block can be recorded without an operator that is currently down. */
    awaitsOperator: () => openSinceMs !== null && performance.now() - openSinceMs < AWAY_MS,
  };
}

/**
 * Returns a function that raises an alarm if the oldest block that waits for agreement stays the same for too long, which is also the case
 * while too few operators answer.
 */
function createWaitingNote(deps: FollowDeps): (oldest: WindowBlock | undefined) => Promise<void> {
  let waiting = { id: '', nextMs: 0 };
  return async (oldest) => {
    const [nowMs, patienceMs] = [performance.now(), WAITING_BLOCKS * deps.blockMs];
    if (oldest?.id !== waiting.id) waiting = { id: oldest?.id ?? '', nextMs: nowMs + patienceMs };
    if (oldest === undefined || nowMs < waiting.nextMs) return;
    waiting.nextMs = nowMs + patienceMs;
    await logOpen(deps, oldest);
  };
}

/** Reports the oldest block only, because the others have to wait for it anyway. */
async function logOpen({ agreement, alarms, pool }: FollowDeps, { number, id, votes }: WindowBlock): Promise<void> {
  const shown = [...votes.values()].map(
    ({ origin, logs }) => `${origin}: ${logs.transfers.length} transfers (${logs.digest.slice(0, 12)})`,
  );
  await alarms.raise(
    'nodes-disagree',
    '',
    `block ${number} (${id}) waits until ${agreement} operators return the same USDT logs; so far ${shown.join(', ') || 'none'}. ` +
      'No invoice paid in this or a later block becomes PAID. Repair the node that is wrong or does not respond, or add a node from another ' +
      `operator. Nodes: ${describeNodes(pool)}`,
  );
}

async function ask(
  deps: FollowDeps,
  block: WindowBlock,
  examined: ExaminedBlock,
  node: Node,
  { mayLag }: { mayLag: boolean },
): Promise<void> {
  const logs = await (mayLag ? readLogsIfThere(deps, node, examined) : readLogsOf(deps, node, examined)).catch(orNull);
  if (logs !== null) addVote(block, node, logs, deps.agreement);
}
