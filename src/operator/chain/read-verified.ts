import { setTimeout as delay } from 'node:timers/promises';
import { needsAgreement } from '../../chain/follow/quorum.ts';
import { addVote, settle, toChainBlock, toWindowBlock } from '../../chain/follow/window.ts';
import type { Node } from '../../chain/nodes/node.ts';
import { orNull } from '../../chain/proof/or-null.ts';
import type { ProvenHeader } from '../../chain/proof/prove-block.ts';
import { type ReadBlock, readLogsOf, readRange } from '../../chain/verify/read-block.ts';
import { withLogs } from '../../chain/verify/read-with-logs.ts';
import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import { findReplacement } from '../../store/chain/contract-states.ts';
import type { ReadSolidDeps } from '../node-connection.ts';

/** `lost`: nodes, by origin, that are asked no more, and why. */
export type VerifiedDeps = ReadSolidDeps & { lost: ReadonlyMap<string, LostBranch> };

const PARALLEL_LOGS = 4;
const RETRY_MS = 500;

/** The blocks of a node do not lead to the block where the ledger stands. The blocks of another node may. */
export class LostBranch extends AppError {
  readonly node: Node;

  constructor(node: Node, message: string) {
    super('CHAIN_CONTRADICTION', message);
    this.node = node;
  }
}

/** A verified block with the header that links it, and the node that showed it. */
type Verified = { node: Node; header: ProvenHeader; block: SolidBlock };

/** Reads blocks of one node, proven from their own bytes, with the logs that enough operators show. */
export async function readVerified(deps: VerifiedDeps, first: number, last: number): Promise<Verified[]> {
  const replacedIn = await findReplacement(deps.db, deps.network);
  if (replacedIn !== null) deps.fees.noteReplaced(replacedIn);
  await deps.fees.unansweredFrom(deps);
  return fromAnyNode(deps, async (node, nodes) => {
    const blocks = await readRange(deps, node, first, last);
    return inGroups(blocks, PARALLEL_LOGS, async (block) => {
      const read = await withLogs(deps, node, block);
      return { node: read.node, header: read.block, block: await agree(deps, read, nodes) };
    });
  });
}

/** Facts that only logs show are asked of other operators too, until enough show the same. Error: `NODES_DISAGREE`. */
async function agree(deps: ReadSolidDeps, read: ReadBlock, nodes: readonly Node[]): Promise<SolidBlock> {
  const { block, node } = read;
  const window = toWindowBlock(read, null);
  const agreement = needsAgreement(read) ? deps.agreement : 1;
  settle(window, agreement);
  for (const other of nodes.filter(({ operator }) => operator !== node.operator)) {
    if (window.agreed !== null) break;
    const shown = await readLogsOf(deps, other, block).catch(orNull);
    if (shown !== null) addVote(window, other, shown, agreement);
  }
  if (window.agreed !== null) return { ...toChainBlock(window), evidence: window.agreed.evidence };
  const asked = [...window.votes.values()].map(({ origin, logs: { digest } }) => `${origin}: ${digest.slice(0, 12)}`);
  throw new AppError(
    'NODES_DISAGREE',
    `${agreement} operators must show the same USDT logs of block ${block.number}; shown by ${asked.join(', ')}`,
    { retryable: true },
  );
}

/** Asks the nodes in order of preference until one gives what is right, again and again within patience. The error is the last one's. */
export async function fromAnyNode<Result>(
  deps: VerifiedDeps,
  read: (node: Node, nodes: readonly Node[]) => Promise<Result>,
): Promise<Result> {
  const deadlineMs = performance.now() + deps.patienceMs;
  for (;;) {
    const nodes = (await deps.pool.available()).filter(({ origin }) => !deps.lost.has(origin));
    const [contradiction] = deps.lost.values();
    if (nodes.length === 0 && contradiction !== undefined) throw contradiction;
    let failure = new AppError('NO_NODE', `no node of ${deps.network} can be asked now`, { retryable: true });
    for (const node of nodes) {
      try {
        return await read(node, nodes);
      } catch (error) {
        if (!(error instanceof AppError) || !error.retryable) throw error;
        failure = error;
      }
    }
    if (performance.now() >= deadlineMs) throw failure;
    await delay(RETRY_MS);
  }
}
