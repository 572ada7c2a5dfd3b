import { AppError } from '../../domain/errors.ts';
import { solidThreshold } from '../../domain/solidity.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import type { Checkpoint, Member } from '../proof/checkpoints.ts';
import { type BlockMark, type ReadDeps, readHeaderIfThere } from './read-block.ts';
import { maxRunBlocks, readRun } from './read-run.ts';

type WalkDeps = ReadDeps & { now(): UnixMs };

/** Derives the current producers from those of a checkpoint, using signatures alone. */
export type Walk = {
  checkpoint: Checkpoint;
  /**
   * Returns as many members as the checkpoint has, whose keys are used to count the blocks up to `newest`. After a failure the next call
   * resumes. Errors: `CHAIN_CONTRADICTION` if the blocks don't lead there, or too slowly; `NO_NODE` if no node shows them.
   */
  to(nodes: readonly Node[], newest: BlockMark): Promise<readonly Member[]>;
};

/** Shorter than the 7,198 blocks between two votes, so that at most one vote can change the members within a stride. */
const MIN_STRIDE = 7000;
/**
 * An attempt reaches as far ahead as known members still produce blocks, so many changes need more attempts. All attempts together read up
 * to 21,600 headers.
 */
const MAX_ATTEMPTS = 200;
/** Former producers may have sold or lost their keys since then, and 19 such keys are enough to forge another chain. */
const MAX_AGE_MS = 2 * 365 * 86_400_000;
/** If the chain contradicted the checkpoint, the same nodes aren't asked again for this long, because they would show the same. */
const REFUSED_MS = 600_000;

/**
 * From a known set, the walk looks as far ahead as enough of its members still produce blocks: first at the newest block, then at half the
 * distance, and so on. Nothing is stored, so it starts over after a restart.
 */
export function createWalk(deps: WalkDeps, checkpoint: Checkpoint): Walk {
  let known = checkpoint.producers;
  let at = checkpoint.number;
  let stride = Number.MAX_SAFE_INTEGER;
  /** The node that showed the most recent valid run. */
  let preferred: Node | null = null;
  let refusal: { error: AppError; untilMs: number; asked: string } | null = null;
  const name = `the checkpoint of ${toIso(checkpoint.time)}`;
  const refuse = (what: string, nodes: readonly Node[]): AppError => {
    const error = contradiction(what);
    refusal = { error, untilMs: performance.now() + REFUSED_MS, asked: originsOf(nodes) };
    return error;
  };
  /** Asks one node, or all of them if no shorter stride is possible. In that case, nodes with invalid runs are reported and paused. */
  const look = async (nodes: readonly Node[], first: number, isShortest: boolean) => {
    const failed: string[] = [];
    const doubted: { node: Node; votes: number }[] = [];
    for (const node of [...nodes].sort((left, right) => Number(right === preferred) - Number(left === preferred))) {
      const run = await readRun(deps, node, first, known).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error;
        failed.push(error.message);
        return null;
      });
      if (run === null) continue;
      if (run.members !== null) preferred = node;
      if (run.members !== null || !isShortest) return run;
      doubted.push({ node, votes: run.votes });
    }
    for (const { node, votes } of doubted) {
      const reason = `of the ${known.length} producers known to block ${at} ${votes} sign the blocks from ${first} on that it shows`;
      deps.pool.report(node, 'disagrees', reason);
    }
    if (doubted.length > 0) return { votes: Math.max(...doubted.map(({ votes }) => votes)), members: null };
    const why = failed.length === 0 ? '' : `: ${failed.join('; ')}`;
    const needed = `no node shows the headers from block ${first} on, which are needed to follow the producers from ${name}; a node with the whole history shows them${why}`;
    throw new AppError('NO_NODE', needed, { retryable: true });
  };
  return {
    checkpoint,
    to: async (nodes, newest) => {
      if (refusal !== null && refusal.asked === originsOf(nodes) && performance.now() < refusal.untilMs) {
        throw refusal.error;
      }
      if (deps.now() - checkpoint.time > MAX_AGE_MS) throw refuse(`${name} is older than two years`, nodes);
      const operators = ofDifferentOperators(nodes, nodes.length);
      const target = newest.number - maxRunBlocks(known.length) + 1;
      for (let attempts = 1; at < target; attempts += 1) {
        if (attempts > MAX_ATTEMPTS)
          throw refuse(`${MAX_ATTEMPTS} attempts led from ${name} only to block ${at}`, nodes);
        const step = Math.min(stride, target - at);
        const isShortest = step <= MIN_STRIDE;
        const { members, votes } = await look(operators, at + step, isShortest);
        if (members !== null) {
          at += step;
          known = members;
          stride = 2 * step;
        } else if (isShortest) {
          throw refuse(
            `at block ${at + step}, ${votes} of the ${known.length} producers to which ${name} leads up to block ${at} sign, and ${solidThreshold(known.length)} must, on top of a whole round`,
            nodes,
          );
        } else stride = Math.max(MIN_STRIDE, Math.ceil(step / 2));
      }
      return known;
    },
  };
}

function originsOf(nodes: readonly Node[]): string {
  return nodes.map(({ origin }) => origin).join();
}

/**
 * Returns the nodes that are on the same chain as the checkpoint, or whose chain is unknown because they keep no history. Reports the
 * others. If all nodes contradict the checkpoint, it's unclear which side is wrong, so no node is blamed, and an operator has to decide.
 */
export async function ofCheckpointChain(
  deps: ReadDeps,
  nodes: readonly Node[],
  { number, id }: Checkpoint,
): Promise<Node[]> {
  const shown = await Promise.all(nodes.map((node) => idShownBy(deps, node, number)));
  const others = nodes.flatMap((node, index) => {
    const theirs = shown[index] ?? null;
    return theirs === null || theirs === id ? [] : [{ node, theirs }];
  });
  if (others.length === nodes.length) {
    const seen = others.map(({ node, theirs }) => `${node.origin} shows ${theirs}`).join(', ');
    const advice = `Either no node is of ${deps.network}: correct QUITTANCE_${deps.network.toUpperCase()}_NODES. Or the checkpoint is wrong: compare block ${number} with a block explorer, and if that shows the block of the nodes, install another release`;
    const what = `the checkpoint of this release is block ${number} (${id}), and ${seen}. ${advice}`;
    throw new AppError('CHAIN_CONTRADICTION', what, { retryable: true });
  }
  for (const { node, theirs } of others) {
    deps.pool.report(node, 'wrong-network', `its block ${number} is ${theirs}, and that of the checkpoint ${id}`);
  }
  return nodes.filter((node) => !others.some((other) => other.node === node));
}

function contradiction(what: string): AppError {
  const advice =
    'so the current block producers are unknown, and Quittance trusts no node. Configure nodes of other operators, or install the newest release, which has a newer checkpoint';
  return new AppError('CHAIN_CONTRADICTION', `${what}, ${advice}`, { retryable: true });
}

/** Returns the id of the node's block at a height, or `null` if the node doesn't show it. */
export async function idShownBy(deps: ReadDeps, node: Node, number: number): Promise<string | null> {
  const header = await readHeaderIfThere(deps, node, number).catch((error: unknown) => {
    if (error instanceof AppError) return null;
    throw error;
  });
  return header?.id ?? null;
}

/** Counts the named producers that the walk led to, with the same key. `isEnough`: this many can decide. */
export function explainedBy(walked: readonly Member[], named: readonly Member[]): { count: number; isEnough: boolean } {
  const known = new Set(walked.map(({ account, signer }) => `${account} ${signer}`));
  const count = named.filter(({ account, signer }) => known.has(`${account} ${signer}`)).length;
  return { count, isEnough: named.length === walked.length && count >= solidThreshold(walked.length) };
}
