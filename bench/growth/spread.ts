/** The median of the rounds, with the lowest and the highest value. */
export type Spread = { median: number; lowest: number; highest: number };

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = NaN, high = NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return { median: (low + high) / 2, lowest: sorted[0] ?? NaN, highest: sorted.at(-1) ?? NaN };
}

/** A measurement of two sides in the same rounds, in milliseconds. `ratio` is the second side divided by the first, for each round. */
export type Comparison = { name: string; first: Spread; second: Spread; ratio: Spread };

export function compare(name: string, rounds: readonly (readonly [number, number])[]): Comparison {
  return {
    name,
    first: spreadOf(rounds.map(([first]) => first)),
    second: spreadOf(rounds.map(([, second]) => second)),
    ratio: spreadOf(rounds.map(([first, second]) => second / first)),
  };
}

/**
 * Runs both sides alternately, and swaps their order in every other round, so that both meet the same conditions. Returns the mean
 * milliseconds of each.
 */
export async function inTurn(
  turns: number,
  run: (side: 0 | 1, turn: number) => Promise<number>,
): Promise<[number, number]> {
  const sums: [number, number] = [0, 0];
  for (let turn = 0; turn < turns; turn++) {
    for (const side of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) sums[side] += await run(side, turn);
  }
  return [sums[0] / turns, sums[1] / turns];
}
