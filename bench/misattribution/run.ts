import { COMMON_FEES } from '../../src/core/domain/mismatch/fee-errors.ts';
import { shortly } from '../../src/core/domain/mismatch/finding.ts';
import { formatAmount, type MicroUsdt } from '../../src/core/domain/money.ts';
import type { BenchResult } from '../bench-context.ts';
import { createRandomStream } from '../ingest/random-stream.ts';
import { table } from '../targets.ts';
import { measure, type Tally } from './measure.ts';
import { countSameTails } from './same-tails.ts';
import { reserve, SCHEMES, type Scheme } from './schemes.ts';
import { PRICES } from './shop.ts';

/** Open invoices for each price: every possible code word, and a quiet shop. */
const PER_PRICE = { full: 900, quiet: 20 };
const SEED = 4;

type Figures = { scheme: Scheme; mostAdded: string; tallies: Tally[] };

/** Measures how many of a payer's mistakes would pay someone else's invoice, for each way of making amounts unique. Takes a minute. */
export function runMisattribution(onProgress: (text: string) => void): BenchResult {
  const shops = Object.entries(PER_PRICE).map(([occupancy, perPrice]) => {
    onProgress(`${PRICES.length} prices with ${perPrice} open invoices each`);
    return { occupancy, perPrice, figures: SCHEMES.map((scheme) => measureScheme(scheme, perPrice)) };
  });
  const sameTails = countSameTails(['0.01', ...COMMON_FEES.map(shortly)]);
  for (const { figures } of shops) assertExcluded(figures);
  const shares = shops.map(({ perPrice, figures }) => {
    return `${PRICES.length} prices, ${perPrice} open invoices each\n\n${showShares(figures)}`;
  });
  const pairs = sameTails.map(({ difference, pairs, same }) => [difference, showShare(same, pairs)]);
  return {
    markdown: [...shares, table(['prices that differ by', 'same tails'], pairs)].join('\n\n'),
    record: { seed: SEED, prices: PRICES.map(String), shops, sameTails },
  };
}

function measureScheme(scheme: Scheme, perPrice: number): Figures {
  const random = createRandomStream(SEED);
  const reserved = reserve(scheme, PRICES, perPrice, random);
  const mostAdded = formatAmount(reserved.mostAdded as MicroUsdt);
  return { scheme, mostAdded, tallies: measure(reserved, random) };
}

function assertExcluded(figures: Figures[]): void {
  const words = figures.filter(({ scheme }) => scheme.startsWith('tail')).flatMap(({ tallies }) => tallies);
  const broken = words.filter(({ isExcluded, hits }) => isExcluded && hits > 0).map(({ name }) => name);
  if (broken.length > 0) throw new Error(`these are excluded, and yet they hit another invoice: ${broken.join(', ')}`);
}

function showShares(figures: Figures[]): string {
  const names = figures[0]?.tallies ?? [];
  const rows = names.map(({ name, isExcluded }, at) => [
    `${name}${isExcluded ? ' *' : ''}`,
    ...figures.map(({ tallies }) => showShare(tallies[at]?.hits ?? NaN, tallies[at]?.cases ?? NaN)),
  ]);
  rows.push(['most that was added to a price, USDT', ...figures.map(({ mostAdded }) => mostAdded)]);
  return table(['mistake', ...figures.map(({ scheme }) => scheme)], rows);
}

/** Formats a percentage with two significant digits, or a dash if the mistake can't occur. */
function showShare(hits: number, cases: number): string {
  if (cases === 0) return '–';
  if (hits === 0) return '0';
  const percent = (hits / cases) * 100;
  if (percent > 99 && percent < 100) return '> 99 %';
  return `${percent >= 10 ? percent.toFixed(0) : percent.toPrecision(2)} %`;
}
