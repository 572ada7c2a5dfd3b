import type { Node } from '../../chain/nodes/node.ts';
import type { ProvenHeader } from '../../chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers, solidHeightBy } from '../../chain/verify/producers.ts';
import { RANGE_BLOCKS, readHeaderAt } from '../../chain/verify/read-block.ts';
import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findProducerSets, type ProducerSet } from '../../store/chain/producer-sets.ts';
import type { ReadSolidDeps } from '../node-connection.ts';
import { followedCursor } from './followed-cursor.ts';
import type { Range } from './read-range.ts';
import { fromAnyNode, LostBranch, readVerified, type VerifiedDeps } from './read-verified.ts';

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
