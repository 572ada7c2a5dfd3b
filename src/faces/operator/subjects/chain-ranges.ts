import type { SolidBlock } from '../../../core/domain/chain-block.ts';
import { AppError } from '../../../core/domain/errors.ts';
import { type Hint, say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import { recordTransfers, type TransferCounts } from '../../../core/payments/record-transfers.ts';
import type { Recording } from '../../../core/payments/watching.ts';
import { Type } from '../../../core/runtime/type.ts';
import { lockCursor } from '../../../core/store/chain/cursor.ts';
import type { Actor } from '../actor.ts';
import { type Column, columnsText } from '../command-words.ts';
import { localOperation, type NodeDeps, type ReadSolidDeps } from '../operation.ts';
import { needed, networkName } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { withNodesOf } from '../select.ts';
import {
  compareBlocks,
  concerns,
  type Difference,
  type DifferenceView,
  describeDifference,
  heights,
  type Range,
  type ReadSolid,
  rangeInput,
  readRange,
  readSolid,
} from './chain-blocks.ts';

export const ofRange = {
  from: needed('<block>', 'first block'),
  to: needed('<block>', 'last block, not after the last recorded block; at most 100,000 blocks at a time'),
};

const NOTE_MS = 2000;

/** Reports the progress, speed and remaining time from time to time. */
export function progressOf(note: (text: string) => void, { from, to }: Range): (done: number) => void {
  const total = to - from + 1;
  const startMs = performance.now();
  let notedMs = startMs;
  return (done) => {
    const nowMs = performance.now();
    if (nowMs - notedMs < NOTE_MS || done >= total) return;
    notedMs = nowMs;
    const perSecond = done / ((nowMs - startMs) / 1000);
    const leftSeconds = Math.ceil((total - done) / perSecond);
    note(`${done} of ${total} blocks, ${perSecond.toFixed(1)} per second, about ${leftSeconds} s left`);
  };
}

/** Describes a rescan in one sentence. */
export function sayRescanned({ blockCount, added }: Pick<RescannedView, 'blockCount' | 'added'>): string {
  return `${blockCount} blocks read; added to the ledger: ${listCounts(added)}`;
}

/** Describes a comparison in one sentence. */
export function sayVerified({ blockCount, comparedCount, differences }: VerifiedRangeView): string {
  const found = differences.length === 0 ? 'no differences' : `${differences.length} differences`;
  return `${blockCount} blocks read, ${comparedCount} transfers of your addresses compared: ${found}`;
}

/** Says what to do about differences. */
export function adviseOnDifferences(hint: Hint): Text {
  return hint.command === 'chain rescan'
    ? say`record the missing transfers with "${hint}"`
    : say`don't ship orders for these transfers. To see the effect of each transfer, and to remove transfers that are not on the chain, run "${hint}"`;
}

/** Mentions blocks whose producers aren't known now. Returns `null` if there are none. */
export function sayUnattested({ blockCount, attestedCount }: Pick<RescannedView, 'blockCount' | 'attestedCount'>) {
  const count = blockCount - attestedCount;
  if (count === 0) return null;
  return `${count} of the blocks were signed by unknown producers; Quittance accepts these blocks because known producers built on them`;
}

const EXPLAINED: Record<DifferenceView['kind'], string> = {
  missing: 'missing from the ledger',
  'not-on-chain': 'not on the chain',
  wrong: 'wrong',
  'taken-back': 'on the chain, but taken back',
};

export function explainDifference({ kind, onChain }: Pick<DifferenceView, 'kind' | 'onChain'>): string {
  if (kind !== 'wrong' || onChain === null) return EXPLAINED[kind];
  return `${EXPLAINED[kind]}: ${onChain.amount} to or from ${onChain.address} in block ${onChain.blockNumber}`;
}

export function listCounts(added: Readonly<Record<string, number>>): string {
  return Object.entries(added)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}

export const DIFFERENCES: readonly Column<DifferenceView>[] = [
  ['DIFFERENCE', explainDifference],
  ['SIDE', 'side'],
  ['ADDRESS', 'address'],
  ['USDT', 'amount'],
  ['BLOCK', 'blockNumber'],
  ['TRANSFER', ({ txId, logIndex }) => `${txId}:${logIndex}`],
];

/**
 * Records the transfers that the ledger missed in contiguous blocks at or below the cursor, with the decisions of `applySolidBlocks`. Runs
 * in one transaction, which doesn't move the cursor or need the lease. It holds the cursor's lock, so a watcher waits for it. Existing
 * transfers are left alone, so a repeated call is harmless. Returns the numbers of new transfers. Throws `CHAIN_CONTRADICTION` for a block
 * above the cursor, which only the watcher may record.
 */
export function recordRescanned(recording: Recording, actor: Actor, blocks: readonly SolidBlock[]) {
  return recording.db.transaction(async (tx) => {
    const cursor = await lockCursor(tx, recording.network);
    const above = blocks.find(({ number }) => cursor === null || number > cursor.solid.number);
    if (cursor === null || above !== undefined) {
      const recorded = cursor === null ? 'nothing' : `the chain up to block ${cursor.solid.number}`;
      throw new AppError(
        'CHAIN_CONTRADICTION',
        `block ${above?.number} cannot be rescanned, because only ${recorded} was recorded`,
      );
    }
    // A CONFIRMING invoice keeps its sighting until the sighting's block is solid. The transfer that was seen is then a duplicate.
    const { counts } = await recordTransfers(recording, tx, blocks, cursor.head.number, { concerns });
    if (Object.values(counts).some((count) => count > 0)) {
      const { network, now } = recording;
      const detail = { from: blocks[0]?.number, to: blocks.at(-1)?.number, added: counts };
      await recordAction(tx, actor, now(), 'chain.rescanned', { subject: network, detail });
    }
    return counts;
  });
}

type RescannedView = Awaited<ReturnType<typeof rescanRange>>;

/**
 * Reads the blocks from `from` to `to` again and records, in chain order, what the ledger missed. Repeating or aborting it is harmless.
 * Throws the errors of `readSolid`, or `CHAIN_CONTRADICTION` if the ledger has a transfer that the chain lacks, or if the chain has one
 * that an operator took back. Only `quittance chain repair` corrects such a difference.
 */
export async function rescanRange(
  deps: NodeDeps & { onProgress(blockCount: number, addedCount: number): void },
  actor: Actor,
  range: Range,
) {
  const added: TransferCounts = { matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 };
  const read = await readSolid(deps, range, async (blocks, done) => {
    const { differences } = await compareBlocks(deps.db, deps.network, blocks);
    const contradiction = differences.find(({ kind }) => kind !== 'missing');
    if (contradiction !== undefined) {
      const { txId, logIndex, blockNumber } = contradiction;
      throw new AppError(
        'CHAIN_CONTRADICTION',
        say`${SEEN[contradiction.kind](`transfer ${txId} (${logIndex}) in block ${blockNumber}`)}. To see all differences and how to repair them, run ${{ command: 'chain repair', input: rangeInput(deps.network, range) }}`,
      );
    }
    const counts = await recordRescanned(deps, actor, blocks);
    for (const kind of Object.keys(added) as (keyof TransferCounts)[]) added[kind] += counts[kind];
    const addedCount = Object.values(added).reduce((sum, count) => sum + count, 0);
    deps.onProgress(done, addedCount);
  });
  return { network: deps.network, ...range, ...read, added };
}

const SEEN = {
  missing: (transfer: string) => `${transfer} is missing from the ledger`,
  'not-on-chain': (transfer: string) => `${transfer} is in the ledger, but not on the chain`,
  wrong: (transfer: string) => `${transfer} in the ledger differs from the transfer on the chain`,
  'taken-back': (transfer: string) => `${transfer} is on the chain, but an operator took it back`,
} as const;

const rescan = localOperation({
  action: 'rescanRange',
  command: 'chain rescan',
  does: 'read blocks again and record missing transfers; safe to repeat',
  input: Type.Object({ ...ofRange, network: networkName() }),
  read: ({ network, ...range }) => ({ network, range: readRange(range) }),
  run: (deps, actor, { network, range }) =>
    withNodesOf(deps, network, (nodes) =>
      rescanRange({ ...nodes, onProgress: progressOf(deps.note, range) }, actor, range),
    ),
  print: (view) => ({ text: sayRescanned(view), next: sayUnattested(view) }),
});

/** The maximum number of differences to keep. More differences add no information. */
const MAX_DIFFERENCES = 1000;

/** `attestedCount` is explained at `readSolid`. */
type VerifiedRangeView = Range & ReadSolid & { network: Network; comparedCount: number; differences: DifferenceView[] };

/**
 * Compares our addresses' transfers in the blocks from `from` to `to` with the ledger, without changing anything. `hint` is the command
 * that fixes the differences. Throws the errors of `readSolid`.
 */
export async function verifyRange(
  deps: ReadSolidDeps & { onProgress(blockCount: number, differenceCount: number): void },
  range: Range,
): Promise<{ view: VerifiedRangeView; hint: Hint | null }> {
  const { db, network, onProgress } = deps;
  const differences: Difference[] = [];
  let comparedCount = 0;
  const read = await readSolid(deps, range, async (blocks, done) => {
    const compared = await compareBlocks(db, network, blocks);
    comparedCount += compared.chainCount;
    differences.push(...compared.differences.slice(0, MAX_DIFFERENCES - differences.length));
    onProgress(done, differences.length);
  });
  const view = { network, ...range, ...read, comparedCount, differences: differences.map(describeDifference) };
  return { view, hint: differences.length === 0 ? null : mending(view) };
}

/** A rescan records missing transfers. All other differences need an operator's judgement. */
function mending({ network, differences, ...range }: VerifiedRangeView): Hint {
  return differences.every(({ kind }) => kind === 'missing')
    ? { command: 'chain rescan', input: heights(range) }
    : { command: 'chain repair', input: rangeInput(network, range) };
}

const verify = localOperation({
  action: 'verifyRange',
  command: 'chain verify',
  does: 'read blocks again and compare them with the ledger; changes nothing; exits 1 if they differ',
  input: Type.Object({ ...ofRange, network: networkName() }),
  read: ({ network, ...range }) => ({ network, range: readRange(range) }),
  run: (deps, _actor, { network, range }) =>
    withNodesOf(deps, network, (nodes) => verifyRange({ ...nodes, onProgress: progressOf(deps.note, range) }, range)),
  print: ({ view, hint }) => {
    const summary = sayVerified(view);
    if (hint === null) return { text: summary, next: sayUnattested(view) };
    const table = columnsText(view.differences, DIFFERENCES);
    return { text: [table, summary], next: adviseOnDifferences(hint), hasFailed: true };
  },
});

export const operations = [rescan, verify];
