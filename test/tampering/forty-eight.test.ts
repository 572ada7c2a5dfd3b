import { expect, test } from 'vitest';
import { FORTY_EIGHT } from './forty-eight.ts';

test('each of the 48 is tried with both rights, and none of them works silently', () => {
  expect(FORTY_EIGHT.map(([number]) => number)).toEqual(Array.from({ length: 48 }, (_, index) => index + 1));
  const outcomes = FORTY_EIGHT.flatMap(([, , , plain, owner]) => [plain, owner]);
  expect(outcomes).toHaveLength(96);
  expect(outcomes.filter((outcome) => outcome === 'silent')).toHaveLength(0);
});
