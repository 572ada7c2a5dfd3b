import { expect, test } from 'vitest';
import { type Case, factsAbout, LABELS, makeCorpus } from '../../../test/support/mismatch-corpus.ts';
import { addInvoice, makeShop, NOW, type Shop } from '../../../test/support/mismatch-shops.ts';
import { createRandom } from '../../../test/support/random.ts';
import { rankCauses } from './mismatch/rank-causes.ts';
import type { Cause } from './mismatch.ts';

const SEEDS = [1, 2, 3, 2026];
/** Of each cause in each kind of shop: about 500 cases a seed. */
const PER_KIND = 6;

type Judged = { made: Case; top: Cause; isRight: boolean; namesInvoice: boolean };

function judge(made: Case): Judged {
  const [top] = rankCauses(made.facts) as [Cause, ...Cause[]];
  const isRight = made.accepted.includes(top.code);
  const [nearest] = top.invoices;
  return { made, top, isRight, namesInvoice: nearest === undefined || made.meant.includes(nearest.id) };
}

function share<Item>(items: readonly Item[], isGood: (item: Item) => boolean): number {
  return items.filter(isGood).length / Math.max(1, items.length);
}

const judged = SEEDS.flatMap((seed) => makeCorpus(seed, PER_KIND).map(judge));

// Over all seeds together: a single one has six cases of a cause in a shop, which is chance.
test('nine of ten mistakes are named right, and three of four of each cause', () => {
  expect(judged.length).toBeGreaterThan(450 * SEEDS.length);
  const figures = LABELS.map((label) => {
    const ofLabel = judged.filter(({ made }) => made.label === label);
    return [label, share(ofLabel, ({ isRight }) => isRight)] as const;
  });
  expect(figures.filter(([, right]) => right < 0.75)).toEqual([]);
  expect(share(judged, ({ isRight }) => isRight)).toBeGreaterThanOrEqual(0.9);
});

test('what is said with high confidence is right in 97 % at least, with its invoice, and medium more often than low', () => {
  const at = (confidence: Cause['confidence']) => judged.filter(({ top }) => top.confidence === confidence);
  const isWhollyRight = ({ isRight, namesInvoice }: Judged) => isRight && namesInvoice;
  expect(at('high').length).toBeGreaterThan(judged.length / 2);
  expect(share(at('high'), isWhollyRight)).toBeGreaterThanOrEqual(0.97);
  expect(share(at('medium'), isWhollyRight)).toBeGreaterThan(share(at('low'), isWhollyRight));
});

test('every answer has a reason, a sentence with figures, and at most 5 causes of 5 invoices, none twice', () => {
  for (const made of makeCorpus(7, 1)) {
    const causes = rankCauses(made.facts);
    expect(causes.length).toBeGreaterThanOrEqual(1);
    expect(causes.length).toBeLessThanOrEqual(5);
    expect(new Set(causes.map(({ code }) => code)).size).toBe(causes.length);
    for (const { explanation, invoices, evidence } of causes) {
      expect(explanation).toMatch(/^[0-9]+\.[0-9]{6} arrived.+[^.]\.$/);
      expect(invoices.length).toBeLessThanOrEqual(5);
      expect(new Set(invoices.map(({ id }) => id)).size).toBe(invoices.length);
      expect(JSON.stringify(evidence)).not.toMatch(/undefined|NaN/);
    }
  }
});

/** A shop with nothing but these open invoices, given as [requested, payable] in micro-USDT. */
function shopOf(...amounts: [bigint, bigint][]): Shop {
  const random = createRandom(1);
  const shop: Shop = { ...makeShop(random, 'one invoice'), invoices: [] };
  for (const [requested, payable] of amounts) addInvoice(random, shop, requested, 60_000, null, payable);
  return shop;
}

const AMBIGUOUS: [string, Shop, bigint][] = [
  ['the requested amount of two invoices', shopOf([25_000_000n, 25_000_137n], [25_000_000n, 25_000_245n]), 25_000_000n],
  [
    'one digit from either of two invoices',
    shopOf([25_000_000n, 25_000_137n], [25_000_000n, 25_000_187n]),
    25_000_157n,
  ],
  [
    'a digit from one and a swap from the other',
    shopOf([25_000_000n, 25_003_127n], [25_000_000n, 25_003_712n]),
    25_003_172n,
  ],
  [
    'a fee of 1 from one and of 2 from the other',
    shopOf([25_000_000n, 25_000_137n], [26_000_000n, 26_000_137n]),
    24_000_137n,
  ],
  [
    'a fee from one and a surplus on the other',
    shopOf([25_000_000n, 25_000_137n], [23_000_000n, 23_000_137n]),
    24_000_137n,
  ],
  [
    'either of two invoices cut to 4 decimals',
    shopOf([25_000_000n, 25_000_317n], [25_000_000n, 25_000_328n]),
    25_000_300n,
  ],
  [
    'two pairs of the same sum',
    shopOf(
      [10_000_000n, 10_000_100n],
      [20_000_000n, 20_000_400n],
      [13_000_000n, 13_000_200n],
      [17_000_000n, 17_000_300n],
    ),
    30_000_500n,
  ],
];

test.each(AMBIGUOUS)('%s: nothing is said with high confidence', (_name, shop, amountMicro) => {
  const causes = rankCauses(factsAbout(shop, { amountMicro, to: shop.addresses[0] ?? '', from: 'TSender' }));
  expect(causes.map(({ confidence }) => confidence)).not.toContain('high');
  expect(causes.flatMap(({ invoices }) => invoices).length).toBeGreaterThan(1);
});

test('a round amount from nowhere is unknown, and so is one near an invoice that did not exist yet', () => {
  const shop = shopOf([25_000_000n, 25_000_137n]);
  const to = shop.addresses[0] ?? '';
  expect(rankCauses(factsAbout(shop, { amountMicro: 777_000_000n, to, from: 'TSender' }))).toMatchObject([
    { code: 'UNKNOWN', confidence: 'low', invoices: [] },
  ]);
  const before: Shop = { ...shop, now: (NOW - 3_600_000) as Shop['now'] };
  expect(rankCauses(factsAbout(before, { amountMicro: 24_000_137n, to, from: 'TSender' }))).toMatchObject([
    { code: 'UNKNOWN', confidence: 'low', invoices: [] },
  ]);
});
