import { dammDigit } from '../../src/core/domain/policy.ts';

/** Pairs of prices that differ by `difference` USDT, and how many of them have the same tails. */
export type SameTails = { difference: string; pairs: number; same: number };

const MOST_CENTS = 100_000n;

/**
 * Two prices in whole cents have either all their tails in common or none, because each digit of Damm's table permutes the ten interim
 * digits: a tail leads to 0 from only one of them, and a price has the tails of the interim digit at its end. So if a fee is deducted from
 * the payment for a price, the result is an amount of the price that is lower by the fee either for every code word or for none. Counts all
 * prices up to 1,000.00.
 */
export function countSameTails(differences: readonly string[]): SameTails[] {
  return differences.map((difference) => {
    const apart = cents(difference);
    let [pairs, same] = [0, 0];
    for (let higher = apart + 1n; higher <= MOST_CENTS; higher++) {
      pairs += 1;
      if (dammDigit(higher) === dammDigit(higher - apart)) same += 1;
    }
    return { difference, pairs, same };
  });
}

function cents(usdt: string): bigint {
  const [whole = '0', fraction = ''] = usdt.split('.');
  return BigInt(whole + fraction.padEnd(2, '0'));
}
