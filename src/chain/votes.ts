import { AppError } from '../domain/errors.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';
import type { Node } from './node-member.ts';
import { ofDifferentOperators } from './operators.ts';
import type { ProvenBlock } from './prove-block.ts';
import { type ReadBlock, readLogsOf } from './read-block.ts';
import { type BlockLogs, readLogs } from './read-logs.ts';
import { addVote, settle, toWindowBlock, type WindowBlock } from './window.ts';

/** A node may be this many blocks behind another without being wrong. */
const LAG_BLOCKS = 3;
/** Blocks whose logs are asked for in one step. */
const STEP_BLOCKS = 8;

/** What stands only in logs needs agreement. Where the header proves every log of a block, nobody else is asked. */
function needsAgreement({ block, logs }: ReadBlock): boolean {
  const isOpen = block.transactions.some(({ isSuccess, isContract, call }) => isSuccess && isContract && call === null);
  return isOpen || logs.transfers.some(({ isProven }) => !isProven);
}

/** Makes a window block of what one node showed, and of what the others show at the same time as far as they have it. */
export async function withVotes(
  deps: FollowDeps,
  read: ReadBlock,
  isAttested: boolean,
  others: readonly Node[],
): Promise<WindowBlock> {
  const block = toWindowBlock(read, isAttested);
  const agreement = needsAgreement(read) ? deps.agreement : 1;
  settle(block, agreement);
  if (block.agreed === null) {
    await Promise.all(others.map((node) => ask(deps, block, read.block, node, { mayLag: true })));
  }
  return block;
}

/** The nodes that are asked beside the one that shows the blocks. */
export function othersFor({ agreement }: FollowDeps, nodes: readonly Node[], first: Node): Node[] {
  return ofDifferentOperators(
    nodes.filter(({ operator }) => operator !== first.operator),
    agreement - 1,
  );
}

/**
 * Asks for the logs of blocks on which too few operators agree, oldest first: those that were not asked yet at once, and all
 * of them again, now and then, while they disagree. Disagreement about a block that all must have is an alarm.
 */
export async function gatherVotes(deps: FollowDeps, following: Following, nodes: readonly Node[]): Promise<void> {
  const open = following.window.filter(({ agreed }) => agreed === null).slice(0, STEP_BLOCKS);
  if (open.length === 0) return;
  const nowMs = performance.now();
  const isRetry = nowMs >= following.disputeNextMs;
  if (isRetry) following.disputeNextMs = nowMs + Math.max(500, deps.blockMs);
  for (const block of open) {
    const { proven } = block;
    if (proven === null) continue;
    const mayLag = block.number > tipOf(following).number - LAG_BLOCKS;
    const operators = ofDifferentOperators(nodes, nodes.length);
    const asked = isRetry ? operators : operators.filter(({ operator }) => !block.votes.has(operator));
    await Promise.all(asked.map((node) => ask(deps, block, proven, node, { mayLag })));
    if (block.agreed !== null || mayLag || !isRetry) continue;
    const shown = [...block.votes.values()].map(
      ({ origin, logs }) => `${origin}: ${logs.transfers.length} transfers (${logs.digest.slice(0, 12)})`,
    );
    await deps.alarms.raise(
      'nodes-disagree',
      String(block.number),
      `block ${block.number} (${block.id}) waits until ${deps.agreement} operators show the same USDT logs; so far ${shown.join(', ') || 'none shows any'}. ` +
        'Nothing after it becomes PAID. Add a node of another operator, or wait until one answers right.',
    );
  }
}

async function ask(
  deps: FollowDeps,
  block: WindowBlock,
  proven: ProvenBlock,
  node: Node,
  { mayLag }: { mayLag: boolean },
): Promise<void> {
  const logs = await (mayLag ? logsIfThere(deps, node, proven) : readLogsOf(deps, node, proven)).catch(
    (error: unknown) => {
      // The pool knows of it. The block waits, and another node may answer.
      if (error instanceof AppError) return null;
      throw error;
    },
  );
  if (logs !== null) addVote(block, node, logs, deps.agreement);
}

/** The same, where the node may not have the block yet or be on another branch for a moment: that is no fault of it. */
async function logsIfThere(deps: FollowDeps, node: Node, proven: ProvenBlock): Promise<BlockLogs | null> {
  const infos = await node.post('/wallet/gettransactioninfobyblocknum', { num: proven.number });
  try {
    return readLogs(proven, infos, deps.usdt);
  } catch (error) {
    if (error instanceof AppError && error.code === 'NODE_REFUSED') return null;
    return readLogsOf(deps, node, proven);
  }
}
