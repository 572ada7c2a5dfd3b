import type { Block } from './block.ts';
import type { Schedule } from './schedule.ts';
import { solidNumberOf } from './solid.ts';
import { createState, type State, type StateChange, type StateReader } from './state.ts';

/** Where a chain starts: the genesis block, or a solid block restored from a snapshot. */
export interface ChainStart {
  readonly block: Block;
  /** The position of each block's line, by height, up to and including `block`. */
  readonly positions: number[];
  readonly transactionHeights: Map<string, number>;
  /** The height of each producer's last block, by the producer's index. */
  readonly latestByTurn: readonly number[];
  /** How many blocks each producer made, by its index; absent in snapshots that are older than this count, which then begins there. */
  readonly producedByTurn?: readonly number[];
  readonly state: StateChange;
  readonly schedule: Schedule;
}

export interface Chain {
  readonly state: State;
  schedule(): Schedule;
  /** Holds for the blocks that are added from now on; a fork does not take it back. */
  setSchedule(schedule: Schedule): void;
  head(): Block;
  solidNumber(): number;
  /** A block of the present branch, or null. */
  block(number: number): Block | null;
  /** The height of a transaction in the present branch, or null. */
  heightOf(transactionId: string): number | null;
  stateAt(number: number): StateReader;
  /** How many blocks each producer has made up to a height, by its index. */
  producedAt(number: number): readonly number[];
  add(block: Block, change: StateChange, position: number): void;
  /** Takes the blocks above `number` away and returns them, lowest first. Solid blocks cannot be taken. */
  orphanAbove(number: number): Block[];
  /** What a snapshot of the solid block needs. */
  solidStart(): {
    readonly positions: readonly number[];
    readonly latestByTurn: readonly number[];
    readonly producedByTurn: readonly number[];
    readonly state: StateChange;
  };
}

/** Blocks held in memory; clients read near the head, older ones come from the log. More are held only while they are not solid. */
const RECENT_BLOCKS = 64;

interface Recent {
  readonly block: Block;
  readonly undo: StateChange;
  readonly latestBefore: number;
}

/** The present branch: recent blocks with what undoes them, and an index to the rest. `readBlock` reads a block from its line's position. */
export function createChain(start: ChainStart, readBlock: (position: number) => Block): Chain {
  const { positions, transactionHeights } = start;
  const state = createState(start.state);
  const latest = [...start.latestByTurn];
  const produced = [...(start.producedByTurn ?? [])];
  const recent = new Map<number, Recent>();
  let { block: head, schedule } = start;
  let solid = head.header.number;
  const recentOf = (number: number): Recent => {
    const found = recent.get(number);
    if (found === undefined) throw new Error(`devnet block ${number} is above the solid block but not in memory`);
    return found;
  };
  const undoneDownTo = (number: number): { state: Map<string, bigint>; latest: number[] } => {
    const undone = { state: new Map<string, bigint>(), latest: [...latest] };
    for (let height = head.header.number; height > number; height -= 1) {
      const { block, undo, latestBefore } = recentOf(height);
      for (const [key, value] of undo) undone.state.set(key, value);
      undone.latest[block.turn] = latestBefore;
    }
    return undone;
  };
  const blockAt = (number: number): Block | null => {
    if (number === head.header.number) return head;
    const position = positions[number];
    return recent.get(number)?.block ?? (position === undefined ? null : readBlock(position));
  };
  const producedAt = (number: number): number[] => {
    const counts = Array.from(produced, (count) => count ?? 0);
    for (let height = head.header.number; height > number; height -= 1) {
      const turn = blockAt(height)?.turn ?? 0;
      counts[turn] = (counts[turn] ?? 0) - 1;
    }
    return counts;
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
      const undone = undoneDownTo(Math.max(number, solid)).state;
      return { get: (key) => undone.get(key) ?? state.get(key) };
    },
    add(block, change, position) {
      const { number } = block.header;
      recent.set(number, { block, undo: state.apply(change), latestBefore: latest[block.turn] ?? 0 });
      positions[number] = position;
      for (const { id } of block.transactions) transactionHeights.set(id, number);
      latest[block.turn] = number;
      produced[block.turn] = (produced[block.turn] ?? 0) + 1;
      head = block;
      solid = Math.max(solid, solidNumberOf(schedule.active.map((index) => latest[index] ?? 0)));
      for (const height of recent.keys()) {
        if (height > number - RECENT_BLOCKS || height > solid) break;
        recent.delete(height);
      }
    },
    orphanAbove(number) {
      if (number < solid) throw new RangeError(`block ${solid} is solid: the chain cannot go back to ${number}`);
      const orphaned: Block[] = [];
      while (head.header.number > number) {
        const { block, undo, latestBefore } = recentOf(head.header.number);
        state.apply(undo);
        latest[block.turn] = latestBefore;
        produced[block.turn] = (produced[block.turn] ?? 0) - 1;
        for (const { id } of block.transactions) transactionHeights.delete(id);
        recent.delete(block.header.number);
        positions.length = block.header.number;
        orphaned.unshift(block);
        head = recent.get(block.header.number - 1)?.block ?? readBlock(positions.at(-1) ?? 0);
      }
      return orphaned;
    },
    solidStart() {
      const undone = undoneDownTo(solid);
      const solidState = new Map([...state.entries(), ...undone.state]);
      return {
        positions: positions.slice(0, solid + 1),
        latestByTurn: Array.from(undone.latest, (height) => height ?? 0),
        producedByTurn: producedAt(solid),
        state: [...solidState].filter(([, value]) => value !== 0n),
      };
    },
  };
}
