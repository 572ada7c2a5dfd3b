import type { AccountHex } from '@quittance/tron/address';
import { AppError } from '../../domain/errors.ts';
import { solidHeight, solidThreshold } from '../../domain/solidity.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import type { Node } from '../nodes/node.ts';
import type { Member } from '../proof/checkpoints.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { checked, type ReadDeps, readHeaderIfThere } from './read-block.ts';

/** Each producer has one turn per round, so two rounds are enough unless turns are missed. */
const MAX_ROUNDS = 4;
/** Maximum number of concurrent requests. A public node allows about this many per second. */
const PARALLEL_HEADERS = 4;

export function maxRunBlocks(memberCount: number): number {
  return MAX_ROUNDS * memberCount;
}

/** `id`: the id of the first block. `members`: the producers of the blocks, or `null` if too few of the known members built on them. */
export type Run = { id: string; votes: number; members: Member[] | null };

/**
 * Reads linked headers from a height onwards, until enough known members have built on a whole round of them. Returns `null` if the node
 * doesn't have them. Costs one request per header, normally for two rounds. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`.
 */
export async function readRun(
  deps: ReadDeps,
  node: Node,
  first: number,
  known: readonly Member[],
): Promise<Run | null> {
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
  const seen = `block ${number} (${id}) names parent ${parentId}, not ${parent.id}`;
  throw new AppError('BLOCK_UNVERIFIABLE', seen, { retryable: true });
}

/**
 * Returns the producers of a run's blocks, as many as were known before, or `null` if too few of the known members built on a whole round.
 * Only blocks that they built on count, because anyone can append blocks.
 * This proves who produced a block, but not with which key: a block id doesn't cover the signature, so nodes can show different ones.
 * Therefore a signature proves a new key only if it's the producer's own address. A new member that signs with another key becomes a member
 * without a vote.
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
