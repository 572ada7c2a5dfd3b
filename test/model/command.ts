import fc from 'fast-check';
import type { Model } from './model.ts';
import type { World } from './world.ts';

/** The state of the model; a batch of operations puts another one in its place. */
type Box = { model: Model };
export type Command = fc.AsyncCommand<Box, World>;
/** What was run, by kind, and how it was answered. */
export type Tally = Map<string, number>;

const KEY_COUNT = 7;
export const key = fc.nat(KEY_COUNT - 1);
/** Picks among what there is. */
export const pick = fc.nat(1000);

export function at<Item>(items: readonly Item[], index: number): Item | undefined {
  return items[index % Math.max(1, items.length)];
}

export function note(tally: Tally, what: string): void {
  tally.set(what, (tally.get(what) ?? 0) + 1);
}
