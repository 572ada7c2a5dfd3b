import fc from 'fast-check';
import type { Model } from './model.ts';
import type { World } from './world.ts';

/** The state of the model; a batch of operations replaces it. */
type Box = { model: Model };
export type Command = fc.AsyncCommand<Box, World>;
/** Counts what was run, by kind and answer. */
export type Tally = Map<string, number>;

const KEY_COUNT = 7;
export const key = fc.nat(KEY_COUNT - 1);
/** Picks one of the existing items. */
export const pick = fc.nat(1000);

export function at<Item>(items: readonly Item[], index: number): Item | undefined {
  return items[index % Math.max(1, items.length)];
}

export function note(tally: Tally, what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}
