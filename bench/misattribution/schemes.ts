import type { MicroUsdt } from '../../src/core/domain/money.ts';
import {
  codeWords,
  drawCodeWords,
  type Policy,
  payableRange,
  surchargeOf,
  TAIL_DECIMALS,
} from '../../src/core/domain/policy.ts';
import type { RandomStream } from '../ingest/random-stream.ts';

export const SCHEMES = ['tail', 'tail-4', 'tail-3', 'steps of 0.01', 'steps of 0.000001', 'exact'] as const;
export type Scheme = (typeof SCHEMES)[number];

/**
 * The amounts that the open invoices of one address reserve, the number of decimals shown to the payer, and the most that was added to a
 * price.
 */
export type Reserved = { amounts: bigint[]; taken: Set<bigint>; decimals: number; mostAdded: bigint };

const CENT_MICRO = 10_000n;

/** Adds `perPrice` invoices of each price to one address, or as many as fit, with the amounts of a scheme. Prices are in whole cents. */
export function reserve(scheme: Scheme, prices: readonly bigint[], perPrice: number, random: RandomStream): Reserved {
  switch (scheme) {
    case 'tail':
    case 'tail-4':
    case 'tail-3':
      return { ...drawnWords(scheme, prices, perPrice, random), decimals: TAIL_DECIMALS[scheme] ?? 6 };
    case 'steps of 0.01':
      return { ...nextFree(prices, perPrice, CENT_MICRO), decimals: 2 };
    case 'steps of 0.000001':
      return { ...nextFree(prices, perPrice, 1n), decimals: 6 };
    case 'exact':
      // Each of `perPrice` addresses has one invoice of every price, so one address is representative.
      return { amounts: [...prices], taken: new Set(prices), mostAdded: 0n, decimals: 2 };
  }
}

/** Allocates as the service does with the default limits: random code words. Prices close to each other share some of them. */
function drawnWords(policy: Policy, prices: readonly bigint[], perPrice: number, random: RandomStream) {
  const rule = { policy, maxSurchargeMicro: surchargeOf(policy).usualMicro };
  const taken = new Set<bigint>();
  let mostAdded = 0n;
  for (const price of prices) {
    const range = payableRange(rule, price as MicroUsdt);
    const all = codeWords(range);
    const words = perPrice >= all.length ? all : drawCodeWords(range, perPrice, random.below);
    if (words.length < Math.min(perPrice, all.length)) throw new Error(`too few code words were drawn for ${price}`);
    for (const word of words) {
      taken.add(word);
      mostAdded = max(mostAdded, word - price);
    }
  }
  return { amounts: [...taken], taken, mostAdded };
}

/** Uses the price itself, then one step more each time, whichever price used the steps in between. The orders of all prices alternate. */
function nextFree(prices: readonly bigint[], perPrice: number, step: bigint) {
  const taken = new Set<bigint>();
  const next = new Map(prices.map((price) => [price, price]));
  let mostAdded = 0n;
  for (let round = 0; round < perPrice; round++) {
    for (const [price, from] of next) {
      let amount = from;
      while (taken.has(amount)) amount += step;
      taken.add(amount);
      next.set(price, amount + step);
      mostAdded = max(mostAdded, amount - price);
    }
  }
  return { amounts: [...taken], taken, mostAdded };
}

function max(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
