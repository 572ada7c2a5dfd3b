import type { RandomStream } from '../ingest/random-stream.ts';
import { MISTAKES, type Mistake } from './mistakes.ts';
import type { Reserved } from './schemes.ts';

/** Of `cases` payments with this mistake, `hits` have exactly the amount that another invoice reserves. */
export type Tally = { name: string; isExcluded: boolean; cases: number; hits: number };

/** Applies every mistake to every invoice. A result that equals the amount, or is 0, isn't a case. */
export function measure(reserved: Reserved, random: RandomStream): Tally[] {
  return MISTAKES.map((mistake) => ({ ...count(mistake, reserved, random), ...mistake }));
}

function count(mistake: Mistake, { amounts, taken, decimals }: Reserved, random: RandomStream) {
  let [cases, hits] = [0, 0];
  for (const amount of amounts) {
    for (const arrived of mistake.of({ amount, decimals }, random)) {
      if (arrived === amount || arrived <= 0n) continue;
      cases += 1;
      if (taken.has(arrived)) hits += 1;
    }
  }
  return { cases, hits };
}
