import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { TransferCounts } from '../../payments/record-transfers.ts';
import type { Recording } from '../../payments/watching.ts';
import type { Actor } from '../actor.ts';
import type { ReadSolidDeps } from '../node-connection.ts';
import { findRecorded, type Recorded } from './annulments.ts';
import { keyOf } from './chain-ledger.ts';
import { compareBlocks, type Difference } from './compare-blocks.ts';
import type { Range } from './read-range.ts';
import { type ReadSolid, readSolid } from './read-solid.ts';
import { type DeniedTransfer, recordRepaired, type Writing } from './record-repaired.ts';

/** A difference, with what only the ledger says of a transfer that the chain denies. */
export type PlannedDifference = Difference & { recorded: Recorded | null };

/** The differences in a range, and the blocks of the chain that show them. */
export type RepairPlan = ReadSolid & { range: Range; differences: PlannedDifference[]; blocks: SolidBlock[] };

/** A command changes no more than a person can look at. */
const MAX_DIFFERENCES = 1000;

/**
 * Reads the blocks from `from` to `to` again, compares them with the ledger, and changes nothing. Errors as of `readSolid`, and
 * `INVALID_ARGUMENT` where more is different than one repair takes.
 */
export async function planRepair(
  deps: ReadSolidDeps,
  range: Range,
  onProgress: (blockCount: number) => void,
): Promise<RepairPlan> {
  const differences: PlannedDifference[] = [];
  const kept: SolidBlock[] = [];
  let done = 0;
  const read = await readSolid(deps, range, async (blocks) => {
    const { differences: found } = await compareBlocks(deps.db, deps.network, blocks);
    if (differences.length + found.length > MAX_DIFFERENCES) {
      throw new AppError(
        'INVALID_ARGUMENT',
        say`more than ${MAX_DIFFERENCES} differences up to block ${blocks.at(-1)?.number ?? ''}: repair ${{ field: 'from' }} ${range.from} ${{ field: 'to' }} ${range.from + Math.max(0, done - 1)} first, then go on`,
      );
    }
    differences.push(...(await withRecorded(deps, found)));
    const numbers = new Set(found.flatMap((each) => [each.blockNumber, each.onChain?.blockNumber]));
    kept.push(...blocks.filter(({ number }) => numbers.has(number)));
    done += blocks.length;
    onProgress(done);
  });
  return { ...read, range, differences, blocks: kept };
}

async function withRecorded(
  { db, network }: Pick<ReadSolidDeps, 'db' | 'network'>,
  differences: readonly Difference[],
): Promise<PlannedDifference[]> {
  const found = await findRecorded(db, network, differences.filter(isDenied));
  const byKey = new Map(found.map((recorded) => [keyOf(recorded), recorded]));
  return differences.map((each) => ({ ...each, recorded: isDenied(each) ? (byKey.get(keyOf(each)) ?? null) : null }));
}

/** Whether the ledger has it and the chain denies it. */
function isDenied({ kind }: Pick<Difference, 'kind'>): boolean {
  return kind === 'not-on-chain' || kind === 'wrong';
}

/** The differences that are a payment: invoices which what never was made `PAID`. */
export function deniedPayments({ differences }: RepairPlan): PlannedDifference[] {
  return differences.filter(({ recorded }) => recorded?.incoming?.kind === 'matched');
}

/** `left`: what is different in those blocks after the repair; normally nothing. */
export type Repaired = { takenBack: number; added: TransferCounts; left: Difference[] };

/**
 * Does what a plan says: takes back what the chain denies, and records what the ledger misses. To repeat it is harmless. The caller
 * has shown the plan, and has been told to go on for each of its denied payments.
 */
export async function repair(
  deps: ReadSolidDeps & Recording & Writing,
  { differences, blocks, range }: RepairPlan,
  order: { actor: Actor; reason: string },
): Promise<Repaired> {
  const denied = differences.flatMap((each): DeniedTransfer[] =>
    each.recorded === null ? [] : [{ transfer: each, recorded: each.recorded, deniedBy: each.chainBlockId }],
  );
  const done = await recordRepaired(deps, { denied, blocks, range, ...order });
  const left: Difference[] = [];
  for (const block of blocks) left.push(...(await compareBlocks(deps.db, deps.network, [block])).differences);
  return { ...done, left };
}
