import { createState, type State, type StateChange, type StateReader } from '../evm/state.ts';
import type { Block } from './block.ts';
import type { Schedule } from './schedule.ts';

/** Where a chain starts: at the genesis block, or at a solid block restored from a snapshot. */
export interface ChainStart {
  readonly block: Block;
  /** The position of each block's line in the log, by height, up to and including `block`. */
  readonly positions: number[];
  readonly transactionHeights: Map<string, number>;
  /** The height of each producer's last block, by the producer's index. */
  readonly latestByTurn: readonly number[];
  /**
   * How many blocks each producer has made, by its index. Older snapshots don't contain the counts, so the counts start at zero after such
   * a snapshot.
   */
  readonly producedByTurn?: readonly number[];
  readonly state: StateChange;
  readonly schedule: Schedule;
}

export interface Chain {
  readonly state: State;
  schedule(): Schedule;
  /** Sets the schedule for later blocks. A fork doesn't undo this. */
  setSchedule(schedule: Schedule): void;
  head(): Block;
  solidNumber(): number;
  /** Returns a block on the current branch, or null. */
  block(number: number): Block | null;
  /** Returns a transaction's height on the current branch, or null. */
  heightOf(transactionId: string): number | null;
  stateAt(number: number): StateReader;
  /** Returns how many blocks each producer has made up to a height, by its index. */
  producedAt(number: number): readonly number[];
  add(block: Block, change: StateChange, position: number): void;
  /** Removes the blocks above `number` and returns them, lowest first. Solid blocks can't be removed. */
  orphanAbove(number: number): Block[];
  /** Returns the values that a snapshot of the solid block needs. */
  solidStart(): {
    readonly positions: readonly number[];
    readonly latestByTurn: readonly number[];
    readonly producedByTurn: readonly number[];
    readonly state: StateChange;
  };
}

/**
 * The number of blocks kept in memory, because clients read near the head. Older blocks are read from the log. Memory contains more blocks
 * than this only while they aren't solid yet.
 */
const RECENT_BLOCKS = 64;

interface Recent {
  readonly block: Block;
  readonly undo: StateChange;
  readonly latestBefore: number;
}

/**
 * Manages the current branch: recent blocks with their undo data, and an index of all others. `readBlock` reads a block, given its line's
 * position.
 */
export function createChain(start: ChainStart, readBlock: (position: number) => Block): Chain {
  const { positions, transactionHeights } = start;
  const state = createState(start.state);
  const turns = createTurns(start);
  const recent = createRecentBlocks();
  let { block: head, schedule } = start;
  let solid = head.header.number;
  const blockAt = (number: number): Block | null => {
    if (number === head.header.number) return head;
    const position = positions[number];
    return recent.find(number)?.block ?? (position === undefined ? null : readBlock(position));
  };
  const producedAt = (number: number): number[] => {
    const above = Array.from({ length: Math.max(0, head.header.number - number) }, (_, index) => number + 1 + index);
    return turns.producedWithout(above.map((height) => blockAt(height)?.turn ?? 0));
  };
  return {
    state,
    producedAt,
    schedule: () => schedule,
    setSchedule(next) {
      schedule = next;
    },
    head: () => head,
    solidNumber: () => solid,
    block: blockAt,
    heightOf: (transactionId) => transactionHeights.get(transactionId) ?? null,
    stateAt(number) {
      if (number >= head.header.number) return state;
      const undone = recent.undone(head, Math.max(number, solid), turns).state;
      return { get: (key) => undone.get(key) ?? state.get(key) };
    },
    add(block, change, position) {
      const { number } = block.header;
      recent.add({ block, undo: state.apply(change), latestBefore: turns.latest(block.turn) });
      positions[number] = position;
      for (const { id } of block.transactions) transactionHeights.set(id, number);
      turns.add(block);
      head = block;
      solid = Math.max(solid, solidNumberOf(schedule.active.map(turns.latest)));
      recent.forget(Math.min(number - RECENT_BLOCKS, solid));
    },
    orphanAbove(number) {
      if (number < solid) throw new RangeError(`block ${solid} is solid: the chain cannot go back to ${number}`);
      const orphaned: Block[] = [];
      while (head.header.number > number) {
        const { block, undo, latestBefore } = recent.take(head.header.number);
        state.apply(undo);
        turns.undo(block, latestBefore);
        for (const { id } of block.transactions) transactionHeights.delete(id);
        positions.length = block.header.number;
        orphaned.unshift(block);
        head = recent.find(block.header.number - 1)?.block ?? readBlock(positions.at(-1) ?? 0);
      }
      return orphaned;
    },
    solidStart() {
      const undone = recent.undone(head, solid, turns);
      return {
        positions: positions.slice(0, solid + 1),
        latestByTurn: undone.latest,
        producedByTurn: producedAt(solid),
        state: [...new Map([...state.entries(), ...undone.state])].filter(([, value]) => value !== 0n),
      };
    },
  };
}

type Turns = ReturnType<typeof createTurns>;

/** Counts each producer's blocks, by its index. */
function createTurns(start: ChainStart) {
  const latest = [...start.latestByTurn];
  const produced = [...(start.producedByTurn ?? [])];
  const count = (turn: number, by: 1 | -1) => {
    produced[turn] = (produced[turn] ?? 0) + by;
  };
  return {
    latest: (turn: number) => latest[turn] ?? 0,
    allLatest: () => Array.from(latest, (height) => height ?? 0),
    /** Returns how many blocks each producer has made, without one block for each of these turns. */
    producedWithout(turns: readonly number[]): number[] {
      const counts = Array.from(produced, (blocks) => blocks ?? 0);
      for (const turn of turns) counts[turn] = (counts[turn] ?? 0) - 1;
      return counts;
    },
    add({ turn, header }: Block) {
      latest[turn] = header.number;
      count(turn, 1);
    },
    undo({ turn }: Block, latestBefore: number) {
      latest[turn] = latestBefore;
      count(turn, -1);
    },
  };
}

/** The blocks in memory, by height, with their undo data. */
function createRecentBlocks() {
  const recent = new Map<number, Recent>();
  const get = (number: number): Recent => {
    const found = recent.get(number);
    if (found === undefined) throw new Error(`devnet block ${number} is above the solid block but not in memory`);
    return found;
  };
  return {
    find: (number: number) => recent.get(number),
    add: (added: Recent) => void recent.set(added.block.header.number, added),
    take(number: number): Recent {
      const taken = get(number);
      recent.delete(number);
      return taken;
    },
    forget(number: number) {
      for (const height of recent.keys()) {
        if (height > number) break;
        recent.delete(height);
      }
    },
    /** Returns the previous values of everything that the blocks above `number`, up to the head, have changed. */
    undone(head: Block, number: number, turns: Turns): { state: Map<string, bigint>; latest: number[] } {
      const undone = { state: new Map<string, bigint>(), latest: turns.allLatest() };
      for (let height = head.header.number; height > number; height -= 1) {
        const { block, undo, latestBefore } = get(height);
        for (const [key, value] of undo) undone.state.set(key, value);
        undone.latest[block.turn] = latestBefore;
      }
      return undone;
    },
  };
}

/**
 * Returns the solid height: the highest one that more than 70 % of the producers have built on (java-tron `DposService.updateSolidBlock`).
 * `latest` contains the height of each active producer's last block, or 0 if it has made none.
 */
function solidNumberOf(latest: readonly number[]): number {
  const ascending = latest.toSorted((left, right) => left - right);
  return ascending[Math.floor((latest.length * 30) / 100)] ?? 0;
}
