import type { Ledger } from './ledger.ts';

export interface MineOptions {
  /**
   * The time of the first block, which must be later than the head's. Default: one step after the head, or more if producers are stalled.
   */
  readonly timestampMs?: number;
  /** The time between blocks. Default: the block time, or 3,000 if that is 0. */
  readonly stepMs?: number;
}

export interface BlockMark {
  readonly number: number;
  readonly id: string;
  readonly timestampMs: number;
}

/** A larger number in one call is a mistake. This many blocks take about a minute. */
const MAX_MINED = 1_000_000;

/** Makes blocks. There's no block in a stalled producer's slot: time advances, but the height doesn't. */
export function mineBlocks(
  ledger: Ledger,
  count: number,
  slotMs: number,
  { timestampMs, stepMs = slotMs }: MineOptions,
): BlockMark[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_MINED) {
    throw new RangeError(`devnet can mine 1 to ${MAX_MINED} blocks at a time, not ${count}`);
  }
  return Array.from({ length: count }, (_, index) => {
    const next = ledger.head().header.timestamp + stepMs * (1 + (ledger.missedSlots() ?? 0));
    const { header } = ledger.produceBlock({ timestampMs: index === 0 ? (timestampMs ?? next) : next });
    return markOf(ledger, header.number);
  });
}

/**
 * Makes blocks until all transactions that are currently pending or in a block are solid. Throws if they can't become solid, for example
 * because 30 % of the producers are stalled.
 */
export function mineUntilSolid(ledger: Ledger, slotMs: number, options: MineOptions): BlockMark[] {
  const { timestampMs: _first, ...following } = options;
  const mined: BlockMark[] = [];
  // The number of transactions per block is limited. Each round includes at least one, so the loop terminates.
  while (ledger.pendingCount() > 0) {
    mined.push(...mineBlocks(ledger, 1, slotMs, mined.length === 0 ? options : following));
  }
  const target = ledger.head().header.number;
  // Because of forks, producers may have missed their turns. After two rounds, all of them have built on the target.
  const most = 2 * ledger.schedule().active.length;
  for (let round = 0; ledger.solidNumber() < target; round += 1) {
    if (round > most) throw new Error(`devnet block ${target} did not become solid`);
    mined.push(...mineBlocks(ledger, 1, slotMs, mined.length === 0 ? options : following));
  }
  return mined;
}

export function markOf(ledger: Ledger, number: number): BlockMark {
  const block = ledger.view('full').block(number);
  if (block === null) throw new Error(`devnet has no block ${number}`);
  return { number, id: block.id, timestampMs: block.header.timestamp };
}
