import type { AccountHex } from '@quittance/tron/address';
import { AppError, retryableError } from '../../domain/errors.ts';
import { nodesVariable } from '../../domain/network.ts';
import { solidHeight, solidThreshold } from '../../domain/solidity.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/concurrency.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { Checkpoint, Member } from '../proof/checkpoints.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { type BlockMark, checked, type ReadDeps, readHeaderIfThere } from './read-block.ts';

type WalkDeps = ReadDeps & { now(): UnixMs };

export type Walk = ReturnType<typeof createWalk>;

/** This is shorter than the 7,198 blocks between two votes, so that at most one vote can change the members within a stride. */
const MIN_STRIDE = 7000;
/**
 * An attempt reaches as far ahead as known members still produce blocks, so many changes need more attempts. All attempts together read up
 * to 21,600 headers.
 */
const MAX_ATTEMPTS = 200;
/**
 * A checkpoint must not be older than this. Former producers may have sold or lost their keys since then, and 19 such keys are enough to
 * forge another chain.
 */
const MAX_AGE_MS = 2 * 365 * 86_400_000;
/** If the chain contradicted the checkpoint, the same nodes aren't asked again for this long, because their answers would be the same. */
const REFUSED_MS = 600_000;

/**
 * Derives the current producers from a checkpoint's producers, using signatures alone. From a known set of producers, the walk jumps as far
 * ahead as enough of its members are still producing blocks. It first tries the newest block, then half the distance, and so on. It stores
 * nothing, so it starts over after a restart.
 */
export function createWalk(deps: WalkDeps, checkpoint: Checkpoint) {
  let known = checkpoint.producers;
  let at = checkpoint.number;
  let stride = Number.MAX_SAFE_INTEGER;
  /** The node that showed the most recent valid run. */
  let preferred: Node | null = null;
  let refusal: { error: AppError; untilMs: number; asked: string } | null = null;
  const name = `the checkpoint from ${toIso(checkpoint.time)}`;
  const refuse = (what: string, nodes: readonly Node[]): AppError => {
    const error = contradiction(what);
    refusal = { error, untilMs: performance.now() + REFUSED_MS, asked: originsOf(nodes) };
    return error;
  };
  /**
   * Asks one node, or all nodes if no shorter stride is possible. If it asked all nodes, those with invalid runs are reported and paused.
   */
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
      const reason = `only ${votes} of the ${known.length} producers known up to block ${at} signed the blocks that this node returned, starting at block ${first}`;
      deps.pool.report(node, 'disagrees', reason);
    }
    if (doubted.length > 0) return { votes: Math.max(...doubted.map(({ votes }) => votes)), members: null };
    const why = failed.length === 0 ? '' : `: ${failed.join('; ')}`;
    const needed = `no node returned the headers starting at block ${first}, which Quittance needs to track the producers since ${name}; use a node with the full history${why}`;
    throw retryableError('NO_NODE', needed);
  };
  return {
    checkpoint,
    /**
     * Returns as many members as the checkpoint has. Their keys are used to count the blocks up to `newest`. After a failure the next call
     * resumes. Errors: `CHAIN_CONTRADICTION` if the blocks don't lead to `newest`, or only in too many steps; `NO_NODE` if no node shows
     * the blocks.
     */
    to: async (nodes: readonly Node[], newest: BlockMark): Promise<readonly Member[]> => {
      if (refusal !== null && refusal.asked === originsOf(nodes) && performance.now() < refusal.untilMs) {
        throw refusal.error;
      }
      if (deps.now() - checkpoint.time > MAX_AGE_MS) throw refuse(`${name} is more than two years old`, nodes);
      const operators = ofDifferentOperators(nodes, nodes.length);
      const target = newest.number - MAX_ROUNDS * known.length + 1;
      for (let attempts = 1; at < target; attempts += 1) {
        if (attempts > MAX_ATTEMPTS)
          throw refuse(`after ${MAX_ATTEMPTS} attempts from ${name}, Quittance reached only block ${at}`, nodes);
        const step = Math.min(stride, target - at);
        const isShortest = step <= MIN_STRIDE;
        const { members, votes } = await look(operators, at + step, isShortest);
        if (members !== null) {
          at += step;
          known = members;
          stride = 2 * step;
        } else if (isShortest) {
          throw refuse(
            `at block ${at + step}, only ${votes} of the ${known.length} producers known from ${name} up to block ${at} signed, but ${solidThreshold(known.length)} must sign, in addition to a full round`,
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
    const seen = others.map(({ node, theirs }) => `${node.origin} returned ${theirs}`).join(', ');
    const advice = `Either no node belongs to ${deps.network}, or the checkpoint is wrong. Check ${nodesVariable(deps.network)}, and look up block ${number} in a block explorer. If the explorer shows the nodes' block, install a different release`;
    const what = `this release's checkpoint is block ${number} (${id}), but ${seen}. ${advice}`;
    throw retryableError('CHAIN_CONTRADICTION', what);
  }
  for (const { node, theirs } of others) {
    deps.pool.report(node, 'wrong-network', `its block ${number} is ${theirs}, but the checkpoint has ${id}`);
  }
  return nodes.filter((node) => !others.some((other) => other.node === node));
}

function contradiction(what: string): AppError {
  const advice =
    "so the current block producers are unknown, and Quittance doesn't trust any node. Configure nodes from other operators, or install the newest release, which has a newer checkpoint";
  return retryableError('CHAIN_CONTRADICTION', `${what}, ${advice}`);
}

/** Returns the id of the node's block at a height, or `null` if the node doesn't show it. */
export async function idShownBy(deps: ReadDeps, node: Node, number: number): Promise<string | null> {
  const header = await readHeaderIfThere(deps, node, number).catch(orNull);
  return header?.id ?? null;
}

/** Counts the named producers that the walk also found, with the same key. `isEnough` means that this many producers can decide. */
export function explainedBy(walked: readonly Member[], named: readonly Member[]): { count: number; isEnough: boolean } {
  const known = new Set(walked.map(({ account, signer }) => `${account} ${signer}`));
  const count = named.filter(({ account, signer }) => known.has(`${account} ${signer}`)).length;
  return { count, isEnough: named.length === walked.length && count >= solidThreshold(walked.length) };
}

/** Each producer has one turn per round, so two rounds are enough unless turns are missed. */
const MAX_ROUNDS = 4;
/** Maximum number of concurrent requests. A public node allows about this many per second. */
const PARALLEL_HEADERS = 4;

/**
 * Reads linked headers from a height onwards, until enough known members have built on a whole round of them. Returns `null` if the node
 * doesn't have them. Costs one request per header, normally for two rounds. `id` is the first block's id, and `members` are the blocks'
 * producers, or `null` if too few of the known members built on them. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`.
 */
export async function readRun(deps: ReadDeps, node: Node, first: number, known: readonly Member[]) {
  const run: ProvenHeader[] = [];
  let votes = 0;
  for (let round = 1; round <= MAX_ROUNDS; round += 1) {
    const numbers = known.map((_, index) => first + run.length + index);
    const headers = await inGroups(numbers, PARALLEL_HEADERS, (number) => readHeaderIfThere(deps, node, number));
    for (const header of headers) {
      if (header === null) return null;
      checked(deps, node, () => assertLinked(run.at(-1), header));
      run.push(header);
    }
    const before = votes;
    votes = new Set(run.filter((header) => isSignedBy(known, header)).map(({ producer }) => producer)).size;
    const members = membersAfter(known, run);
    if (members !== null) return { id: run[0]?.id ?? '', votes, members };
    // A producer that has missed two turns will probably miss the third.
    if (votes === before && votes < solidThreshold(known.length)) break;
  }
  return { id: run[0]?.id ?? '', votes, members: null };
}

function assertLinked(parent: ProvenHeader | undefined, { number, id, parentId }: ProvenHeader): void {
  if (parent === undefined || parent.id === parentId) return;
  const seen = `block ${number} (${id}) has parent ${parentId}, not ${parent.id}`;
  throw retryableError('BLOCK_UNVERIFIABLE', seen);
}

/**
 * Returns the producers of a run's blocks, as many as were known before, or `null` if too few of the known members built on a whole round.
 * Only blocks that they built on count, because anyone can append blocks. This proves who produced a block, but not which key signed it: a
 * block id doesn't cover the signature, so nodes can show different signatures. Therefore a signature proves a new key only if it's the
 * producer's own address. If a new member signs with any other key, it becomes a member whose blocks don't count.
 */
export function membersAfter(known: readonly Member[], run: readonly ProvenHeader[]): Member[] | null {
  const voters = new Set(known.map(({ account }) => account));
  const votes = run.filter((header) => isSignedBy(known, header));
  const solid = solidHeight(votes, voters, solidThreshold(known.length));
  const last = run[known.length - 1];
  if (solid === null || last === undefined || solid < last.number) return null;
  const before = new Map(known.map(({ account, signer }) => [account, signer]));
  const after = new Map<AccountHex, AccountHex>();
  for (const { number, producer, signer } of run.toReversed()) {
    if (number > solid || after.has(producer)) continue;
    after.set(producer, signer === producer ? producer : (before.get(producer) ?? producer));
  }
  // A producer that had no turn, or missed it, stays a member as long as there's room.
  for (const [account, signer] of before) if (!after.has(account)) after.set(account, signer);
  return [...after].slice(0, known.length).map(([account, signer]) => ({ account, signer }));
}

function isSignedBy(known: readonly Member[], { producer, signer }: ProvenHeader): boolean {
  return known.some((member) => member.account === producer && member.signer === signer);
}
