import type { MicroUsdt } from '../src/core/domain/money.ts';
import { drawCodeWords, wordRange } from '../src/core/domain/policy.ts';

/** The surcharge limit of the benchmark's project, which is the default: 900 code words for each price. */
export const MAX_SURCHARGE_MICRO = 10_000n;

const MICRO_PER_CENT = 10_000n;
/** One order in five has a fixed price; the others have the total of a basket. */
const FIXED_SHARE = 0.2;
const FIXED_PRICE_COUNT = 200;
/** Baskets cost 5.00 to 2,000.00 USDT, small ones more often: log-uniform. */
const BASKET = { fromCents: 500, toCents: 200_000 };

/**
 * Draws a requested amount. Of a million invoices, each fixed price gets 10 to 1,990. So half of the fixed prices have filled the 900 code
 * words of the first address and need a later one, as in a busy shop.
 */
export function drawPrice(random: () => number): MicroUsdt {
  const cents = random() < FIXED_SHARE ? fixedPriceCents(random) : basketCents(random);
  return (BigInt(cents) * MICRO_PER_CENT) as MicroUsdt;
}

/** 4.99, 9.99 … 999.99. The square root makes the n-th price n times as frequent as the first one. */
function fixedPriceCents(random: () => number): number {
  return Math.ceil(Math.sqrt(random()) * FIXED_PRICE_COUNT) * 500 - 1;
}

function basketCents(random: () => number): number {
  const { fromCents, toCents } = BASKET;
  return Math.round(fromCents * (toCents / fromCents) ** random());
}

/** The place where an invoice of the seed is paid. `address` counts from 0. */
export type Place = { requestedMicro: MicroUsdt; payableMicro: MicroUsdt; address: number };

/** Places invoices as the service does: on the first address where one of eight random code words is free. */
export function createPlacer(addressCount: number, random: () => number): () => Place {
  const taken = Array.from({ length: addressCount }, () => new Set<MicroUsdt>());
  const randomBelow = (n: number) => Math.floor(random() * n);
  return () => {
    const requestedMicro = drawPrice(random);
    const range = wordRange(requestedMicro, MAX_SURCHARGE_MICRO);
    for (const [address, words] of taken.entries()) {
      const isFree = (word: MicroUsdt) => !words.has(word);
      const payableMicro = drawCodeWords(range, 8, randomBelow).find(isFree);
      if (payableMicro === undefined) continue;
      words.add(payableMicro);
      return { requestedMicro, payableMicro, address };
    }
    throw new Error(`no code word is left for ${requestedMicro} on ${addressCount} addresses`);
  };
}
