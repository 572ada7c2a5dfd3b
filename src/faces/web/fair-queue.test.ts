import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFairQueue } from './fair-queue.ts';

test('holders take turns, each with its oldest, and who comes anew waits for one turn of each', () => {
  const holdings = createFairQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1']) holdings.add(item[0] ?? '', item);
  const taken = [holdings.takeNext()];
  holdings.add('c', 'c1');
  for (let left = holdings.count(); left > 0; left -= 1) taken.push(holdings.takeNext());
  expect(taken).toEqual(['a1', 'b1', 'a2', 'c1', 'a3']);
  expect([holdings.takeNext(), holdings.largest(), holdings.count()]).toEqual([undefined, undefined, 0]);
});

test('whatever comes and goes, the largest holder has the most, and all counts are right', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'remove', 'next', 'largest'), fc.nat(4), fc.nat(9)));
  fc.assert(
    fc.property(steps, (all) => {
      const holdings = createFairQueue<number>();
      const model = new Map<string, number[]>();
      const forget = (holder: string, item: number | undefined) =>
        model.set(
          holder,
          (model.get(holder) ?? []).filter((each) => each !== item),
        );
      for (const [step, who, value] of all) {
        const holder = `holder ${who}`;
        const item = 10 * who + value;
        const largest = holdings.largest() ?? '';
        if (step === 'add') {
          holdings.add(holder, item);
          if (model.get(holder)?.includes(item) !== true) model.set(holder, [...(model.get(holder) ?? []), item]);
        } else if (step === 'remove') {
          holdings.remove(holder, item);
          forget(holder, item);
        } else if (step === 'next') {
          const taken = holdings.takeNext();
          forget(`holder ${Math.floor((taken ?? 0) / 10)}`, taken);
        } else {
          expect(holdings.takeOldest(largest)).toBe(model.get(largest)?.[0]);
          forget(largest, model.get(largest)?.[0]);
        }
        const sizes = [...model.values()].map(({ length }) => length);
        expect(holdings.countOf(holdings.largest() ?? '')).toBe(Math.max(0, ...sizes));
        expect(holdings.count()).toBe(sizes.reduce((sum, size) => sum + size, 0));
        expect([...holdings.entries()].map(([, each]) => each).sort()).toEqual([...model.values()].flat().sort());
      }
    }),
  );
});
