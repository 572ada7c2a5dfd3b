import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { coalesce } from './coalesce.ts';

/** Answers each number with its double, once the test releases it. */
function createOracle() {
  const asked: number[][] = [];
  const releases: (() => void)[] = [];
  const answer = async (questions: number[]) => {
    asked.push(questions);
    await new Promise<void>((resolve) => releases.push(resolve));
    if (questions.includes(13)) throw new Error('unlucky');
    return questions.map((number) => number * 2);
  };
  return { asked, answer, release: () => releases.shift()?.() };
}

test('what is asked while enough calls are under way is asked together, and each gets its own answer', async () => {
  const { asked, answer, release } = createOracle();
  const ask = coalesce({ answer, maxUnderWay: 2, maxTogether: 3 });
  const answers = Promise.all([1, 2, 3, 4, 5, 6].map(ask));
  expect(asked).toEqual([[1], [2]]);
  for (let i = 0; i < 4; i++) {
    release();
    await nextTurn();
  }
  expect(await answers).toEqual([2, 4, 6, 8, 10, 12]);
  expect(asked).toEqual([[1], [2], [3, 4, 5], [6]]);
});

test('a failure reaches exactly those who were asked together, and the next questions are answered', async () => {
  const { answer, release } = createOracle();
  const ask = coalesce({ answer, maxUnderWay: 1, maxTogether: 2 });
  const answers = Promise.allSettled([1, 13, 2, 3].map(ask));
  for (let i = 0; i < 3; i++) {
    release();
    await nextTurn();
  }
  expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  const later = ask(4);
  release();
  expect(await later).toBe(8);
});
