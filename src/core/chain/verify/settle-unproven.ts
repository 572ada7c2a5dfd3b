import { createHash } from 'node:crypto';
import type { Evidence } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { findPassedBlock } from '../../store/chain/passed-blocks.ts';
import type { Node } from '../nodes/node.ts';
import { orNull } from '../proof/or-null.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { type ReadBlock, type ReadDeps, readExamined, readLogsIfThere } from './read-block.ts';
import type { BlockLogs } from './read-logs.ts';

/** Without proof a single operator is never trusted, because it could invent any payment. */
const LEAST_OPERATORS = 2;

/** A block and its logs, as shown by the nodes of one operator. */
type Word = { node: Node; block: ExaminedBlock; logs: BlockLogs; digest: string };

/**
 * Settles a block if a node's JSON doesn't contain all of its bytes. Either one of its transactions has fields that JSON omits, which
 * anyone can cause, or the node is dishonest. All other nodes are asked. If one shows the raw bytes, or JSON that reproduces them, these
 * decide. If none does, the operators decide: as many as must agree, and at least two, must show the same id, transactions, results and
 * logs. Like any other block, it counts once the headers built on it make it irreversible. Errors: `NODES_DISAGREE` if another node may
 * show more in a moment, otherwise `BLOCK_UNVERIFIABLE`.
 */
export async function settleUnproven(deps: ReadDeps, node: Node, block: ExaminedBlock): Promise<ReadBlock> {
  const { number } = block;
  const others = (await deps.pool.available()).filter(({ origin }) => origin !== node.origin);
  const asked = [...(node.hasBytes ? [node] : []), ...others];
  const shown = await Promise.all(
    asked.map(async (other) => ({ node: other, block: await show(deps, other, number) })),
  );
  const proofs = shown.flatMap((each) => (each.block?.isProven === true ? { ...each, block: each.block } : []));
  // Anyone can create a block that proves itself, so a proven block with another id doesn't outweigh the operators' agreement.
  const proof = proofs.find((each) => each.block.id === block.id);
  if (proof !== undefined) {
    if (claimOf(proof.block) !== claimOf(block)) {
      deps.pool.report(node, 'unverifiable', `its block ${number} does not match what its header proves`);
    }
    return withItsLogs(deps, proof);
  }
  const claims = shown.flatMap((each) => (each.block?.isProven === false ? { ...each, block: each.block } : []));
  const asserted = firstOfOperators([{ node, block }, ...claims.filter((each) => each.node !== node)]);
  const heard = await hear(deps, asserted);
  const agreed = await findAgreed(deps, heard, number);
  if (agreed !== null) return agreed;
  const [different] = proofs;
  if (different !== undefined) {
    return withItsLogs(deps, different);
  }
  const isMissing = shown.some((each) => each.block === null && each.node !== node) || heard.length < asserted.length;
  // No node is paused, because each may be honest and can still provide irreversible blocks below this one.
  throw new AppError(isMissing ? 'NODES_DISAGREE' : 'BLOCK_UNVERIFIABLE', explain(deps, block, heard), {
    retryable: true,
  });
}

/** Reads the block as bytes if the node has them, and otherwise as JSON. Returns `null` if the node doesn't answer or has no such block. */
async function show(deps: ReadDeps, node: Node, number: number): Promise<ExaminedBlock | null> {
  const bytes = await readExamined(deps, node, number, { wantsBytes: true }).catch(orNull);
  if (bytes !== null || !node.hasBytes) return bytes;
  return readExamined(deps, node, number).catch(orNull);
}

type Claim = { node: Node; block: ExaminedBlock };

function firstOfOperators(claims: readonly Claim[]): Claim[] {
  return claims.filter(({ node }, index) => claims.findIndex((each) => each.node.operator === node.operator) === index);
}

/** Returns the operators that also show the logs. At the head, logs may appear a moment after the block. */
async function hear(deps: ReadDeps, claims: readonly Claim[]): Promise<Word[]> {
  const words = await Promise.all(
    claims.map(async ({ node, block }): Promise<Word[]> => {
      const logs = await readLogsIfThere(deps, node, block).catch(orNull);
      return logs === null ? [] : [{ node, block, logs, digest: digestWord(block, logs) }];
    }),
  );
  return words.flat();
}

async function findAgreed(deps: ReadDeps, heard: readonly Word[], number: number): Promise<ReadBlock | null> {
  const passed = await findPassedBlock(deps.db, deps.network, number);
  for (const word of heard) {
    const same = heard.filter(({ digest }) => digest === word.digest);
    if (same.length < neededBy(deps) && passed?.digest !== word.digest) continue;
    const evidence: Evidence = { nodes: same.map(({ node }) => node.origin), operatorCount: same.length };
    return { node: word.node, block: word.block, logs: word.logs, word: evidence, digest: word.digest };
  }
  return null;
}

async function withItsLogs(deps: ReadDeps, { node, block }: Claim): Promise<ReadBlock> {
  const logs = await readLogsIfThere(deps, node, block);
  if (logs !== null) return { node, block, logs, word: null };
  throw new AppError('NODES_DISAGREE', `${node.origin} does not show the logs of block ${block.number} yet`, {
    retryable: true,
  });
}

function neededBy({ agreement }: ReadDeps): number {
  return Math.max(LEAST_OPERATORS, agreement);
}

function explain(deps: ReadDeps, { number, id }: ExaminedBlock, heard: readonly Word[]): string {
  const shown = heard.map((word) => `${word.node.origin} (${word.digest.slice(0, 8)})`).join(', ');
  return (
    `block ${number} (${id}) is not proven: JSON hides bytes that anyone can put into a transaction, and fewer than ${neededBy(deps)} ` +
    `operators show the same of it (${shown}). Name a node's gRPC port (#grpc=grpc://host:50051), add a node of another operator, or look at ` +
    `it and let it pass: quittance chain pass --network ${deps.network} --block ${number}`
  );
}

/** Returns a digest of everything that a node claims about a block (64 hex characters). Nodes with the same claims have the same digest. */
export function digestWord(block: ExaminedBlock, logs: BlockLogs): string {
  return createHash('sha256')
    .update(`${claimOf(block)} ${logs.digest}`)
    .digest('hex');
}

/** Returns a digest of everything that a node claims about a block, except the logs. */
function claimOf({ id, parentId, time, producer, transactions }: ExaminedBlock): string {
  const claim = createHash('sha256').update(`${id} ${parentId} ${time} ${producer}\n`);
  for (const { txId, isSuccess } of transactions) claim.update(`${txId} ${isSuccess}\n`);
  return claim.digest('hex');
}
