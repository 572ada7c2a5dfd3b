import { setTimeout as delay } from 'node:timers/promises';
import { needsAgreement } from '../../chain/follow/quorum.ts';
import { addVote, settle, toChainBlock, toWindowBlock } from '../../chain/follow/window.ts';
import type { Node } from '../../chain/nodes/node.ts';
import { orNull } from '../../chain/proof/or-null.ts';
import type { ProvenHeader } from '../../chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers, solidHeightBy } from '../../chain/verify/producers.ts';
import { RANGE_BLOCKS, type ReadBlock, readHeaderAt, readLogsOf, readRange } from '../../chain/verify/read-block.ts';
import { withLogs } from '../../chain/verify/read-with-logs.ts';
import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import { findReplacement } from '../../store/chain/contract-states.ts';
import { findProducerSets, type ProducerSet } from '../../store/chain/producer-sets.ts';
import type { ReadSolidDeps } from '../node-connection.ts';
import { followedCursor } from './followed-cursor.ts';
import type { Range } from './read-range.ts';

/** `attestedCount`: blocks that a known producer signed; the others stand only because what is built on them is known. */
export type ReadSolid = { blockCount: number; attestedCount: number };

/** Blocks that wait for who builds on them, at most: if that is not known after many rounds of all 27 producers, it will not be. */
const MAX_WAITING_BLOCKS = 500;
/** Sets of producers that are remembered: a change each day for three years. */
const MAX_SETS = 1000;

type Link = ProvenHeader & { isAttested: boolean; node: Node };
type UnattestedBlock = { block: SolidBlock; isAttested: boolean };
type Ledger = { number: number; id: string };

/**
 * Reads the irreversible blocks from `from` to `to`, verifies them as the watcher does, and hands them over in order, as soon
 * as enough known producers have built on them or the block at which the ledger stands is one of their descendants.
 * Errors: `NOT_FOUND` before a network is followed, `INVALID_ARGUMENT` above the ledger, `CHAIN_CONTRADICTION` when no node shows blocks that lead to it,
 * `BLOCK_UNVERIFIABLE` when too few known producers built on them, `NODES_DISAGREE`, `NO_NODE`, `NODE_REFUSED`.
 */
export async function readSolid(
  deps: ReadSolidDeps,
  { from, to }: Range,
  onBlocks: (blocks: SolidBlock[]) => Promise<void>,
): Promise<ReadSolid> {
  const { solid } = await followedCursor(deps.db, deps.network);
  refuseAbove(to, solid.number);
  const sets = (await findProducerSets(deps.db, deps.network, MAX_SETS)).reverse();
  const counts = { blockCount: 0, attestedCount: 0 };
  const handOver = async (ready: UnattestedBlock[]) => {
    await onBlocks(ready.map(({ block }) => block));
    counts.blockCount += ready.length;
    counts.attestedCount += ready.filter(({ isAttested }) => isAttested).length;
  };
  const lost = new Map<string, LostBranch>();
  while (counts.blockCount <= to - from) {
    try {
      const start = from + counts.blockCount;
      await readBranch({ ...deps, lost }, { from: start, to }, { sets, ledger: solid }, handOver);
    } catch (error) {
      // Each turn leaves out one node more, so this ends.
      if (!(error instanceof LostBranch) || lost.has(error.node.origin)) throw error;
      lost.set(error.node.origin, error);
      deps.pool.report(error.node, 'unverifiable', error.message);
    }
  }
  return counts;
}

/** What the ledger does not have yet is the watcher's. Errors: `INVALID_ARGUMENT`. */
export function refuseAbove(to: number, solidNumber: number): void {
  if (to <= solidNumber) return;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${{ field: 'to' }} ${to} is above block ${solidNumber}, where the ledger stands: what comes after it is the service's to read`,
  );
}

async function readBranch(
  deps: VerifiedDeps,
  { from, to }: Range,
  { sets, ledger }: { sets: readonly ProducerSet[]; ledger: Ledger },
  onReady: (ready: UnattestedBlock[]) => Promise<void>,
): Promise<void> {
  const links: Link[] = [];
  const waiting: UnattestedBlock[] = [];
  const push = (node: Node, header: ProvenHeader): Link => {
    const link = identifySigner(sets, links.at(-1), node, header, ledger);
    links.push(link);
    return link;
  };
  const settle = async () => {
    const upTo = solidUpTo(sets, links, ledger.number) ?? -1;
    const kept = links.findIndex(({ number }) => number > upTo);
    links.splice(0, kept === -1 ? links.length - 1 : kept);
    const ready = waiting.filter(({ block }) => block.number <= upTo);
    waiting.splice(0, ready.length);
    if (ready.length > 0) await onReady(ready);
    refuseUnproven(links);
  };
  for (let first = from; first <= to; first += RANGE_BLOCKS) {
    const last = Math.min(to, first + RANGE_BLOCKS - 1);
    for (const { node, header, block } of await readVerified(deps, first, last)) {
      waiting.push({ block, isAttested: push(node, header).isAttested });
    }
    await settle();
  }
  for (let number = to + 1; waiting.length > 0; number += 1) {
    const { node, header } = await fromAnyNode(deps, async (each) => {
      return { node: each, header: await readHeaderAt(deps, each, number) };
    });
    push(node, header);
    await settle();
  }
}

/** Links a header to the one before, and says whether a producer that was known at its time signed it. */
function identifySigner(
  sets: readonly ProducerSet[],
  before: Link | undefined,
  node: Node,
  header: ProvenHeader,
  ledger: Ledger,
): Link {
  const { number, id, parentId, time } = header;
  const known = inForce(sets, time);
  const isAttested = known !== null && isSignedBy(known, header);
  if (before !== undefined && before.id !== parentId) {
    // Where two nodes differ, the one whose block nobody known signed is wrong.
    const wrong = isAttested && !before.isAttested ? before.node : node;
    const seen = `block ${number} (${id}) of ${node.origin} names parent ${parentId}`;
    throw new LostBranch(wrong, `${seen}, but block ${before.number} of ${before.node.origin} is ${before.id}`);
  }
  if (number === ledger.number && id !== ledger.id) {
    const stands = `the ledger stands at block ${number} (${ledger.id})`;
    throw new LostBranch(node, `${stands}, and ${node.origin} shows ${id}`);
  }
  return { ...header, isAttested, node };
}

/** The sets that may have been in force at a time: the one taken over before it, and its neighbours, for they are learned late. */
function inForce(sets: readonly ProducerSet[], time: UnixMs): KnownProducers | null {
  const later = sets.findIndex(({ chainTime }) => chainTime > time);
  const at = later === -1 ? sets.length - 1 : Math.max(0, later - 1);
  const [newest, ...earlier] = sets.slice(Math.max(0, at - 1), at + 2).reverse();
  return newest === undefined ? null : { newest, earlier };
}

/** The height up to which the linked blocks are irreversible, by who built on them or because the ledger builds on them. */
function solidUpTo(sets: readonly ProducerSet[], links: readonly Link[], ledgerNumber: number): number | null {
  const newest = links.at(-1);
  if (newest === undefined) return null;
  if (newest.number === ledgerNumber) return newest.number;
  const known = inForce(sets, newest.time);
  return known && solidHeightBy(known, links);
}

function refuseUnproven(waiting: readonly { number: number }[]): void {
  const [first] = waiting;
  if (first === undefined || waiting.length <= MAX_WAITING_BLOCKS) return;
  throw new AppError(
    'BLOCK_UNVERIFIABLE',
    `too few of the producers that are known built on block ${first.number} in ${waiting.length} blocks; nothing from it on was taken`,
  );
}

/** `lost`: nodes, by origin, that are asked no more, and why. */
type VerifiedDeps = ReadSolidDeps & { lost: ReadonlyMap<string, LostBranch> };

const PARALLEL_LOGS = 4;
const RETRY_MS = 500;

/** The blocks of a node do not lead to the block where the ledger stands. The blocks of another node may. */
class LostBranch extends AppError {
  readonly node: Node;

  constructor(node: Node, message: string) {
    super('CHAIN_CONTRADICTION', message);
    this.node = node;
  }
}

/** A verified block with the header that links it, and the node that showed it. */
type Verified = { node: Node; header: ProvenHeader; block: SolidBlock };

/** Reads blocks of one node, proven from their own bytes, with the logs that enough operators show. */
async function readVerified(deps: VerifiedDeps, first: number, last: number): Promise<Verified[]> {
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
async function fromAnyNode<Result>(
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
