import { MAX_PRODUCERS, type Producer, producerAccount, producerSigner, producersOf } from '../evm/keys.ts';

/**
 * The block producers. A producer is identified by its index, and its keys are derived from the index, so any index can become a producer.
 */
export interface Schedule {
  readonly genesisCount: number;
  /** The producers, in the order of their turns. */
  readonly active: readonly number[];
  /** All current and previous producers, in ascending order. */
  readonly known: readonly number[];
  readonly stalled: readonly number[];
  /** How often each witness permission's key was changed, by index. If absent, it was never changed. */
  readonly rotations: Readonly<Record<string, number>>;
}

/** A current or previous producer, with its current state in the schedule. */
export interface Witness extends Producer {
  readonly index: number;
  readonly isActive: boolean;
  readonly isStalled: boolean;
}

/** The main network has a few hundred candidates. */
const MAX_CANDIDATES = 1_000;

/** Returns a new network's producers: 0 to `count` - 1. */
export function firstSchedule(count: number): Schedule {
  const active = [...producersOf(count).keys()];
  return { genesisCount: count, active, known: active, stalled: [], rotations: {} };
}

export function withActive(schedule: Schedule, active: readonly number[]): Schedule {
  const sound = active.every((index) => Number.isInteger(index) && index >= 0 && index < MAX_CANDIDATES);
  const { size } = new Set(active);
  if (!sound || size !== active.length || size < 1 || size > MAX_PRODUCERS) {
    throw new RangeError(
      `give 1 to ${MAX_PRODUCERS} different producer indexes below ${MAX_CANDIDATES}, not ${active}`,
    );
  }
  const known = [...new Set([...schedule.known, ...active])].sort((left, right) => left - right);
  return { ...schedule, active: [...active], known };
}

/** Replaces the first `count` active producers with new ones. */
export function withReplaced(schedule: Schedule, count: number): Schedule {
  const { active, known } = schedule;
  if (!Number.isInteger(count) || count < 1 || count > active.length) {
    throw new RangeError(`devnet can replace 1 to ${active.length} producers, not ${count}`);
  }
  const next = (known.at(-1) ?? 0) + 1;
  return withActive(
    schedule,
    [...active.keys()].map((turn) => (turn < count ? next + turn : (active[turn] ?? 0))),
  );
}

export function withStalled(schedule: Schedule, indexes: readonly number[]): Schedule {
  for (const index of indexes) expectKnown(schedule, index);
  return { ...schedule, stalled: [...new Set([...schedule.stalled, ...indexes])] };
}

export function withoutStalled(schedule: Schedule): Schedule {
  return { ...schedule, stalled: [] };
}

export function withRotated(schedule: Schedule, index: number): Schedule {
  expectKnown(schedule, index);
  return { ...schedule, rotations: { ...schedule.rotations, [index]: (schedule.rotations[index] ?? 0) + 1 } };
}

export function witnessesOf({ active, known, stalled, rotations }: Schedule): Witness[] {
  return known.map((index) => ({
    index,
    account: producerAccount(index),
    signer: producerSigner(index, rotations[index] ?? 0),
    isActive: active.includes(index),
    isStalled: stalled.includes(index),
  }));
}

/**
 * Returns the producer of the block that follows a block by `parentIndex`, and how many turns of stalled producers pass before it. Returns
 * null if all producers are stalled. `skippedTurns` further turns are skipped. If the previous producer is no longer active, the round
 * starts again.
 */
export function nextTurn(
  { active, stalled }: Schedule,
  parentIndex: number,
  skippedTurns: number,
): { readonly index: number; readonly missed: number } | null {
  const first = active.indexOf(parentIndex) + 1 + skippedTurns;
  for (let missed = 0; missed < active.length; missed += 1) {
    const index = active[(first + missed) % active.length];
    if (index !== undefined && !stalled.includes(index)) return { index, missed };
  }
  return null;
}

function expectKnown({ known }: Schedule, index: number): void {
  if (!known.includes(index))
    throw new RangeError(`there is no producer ${index}; the known producers are ${known.join(', ')}`);
}
