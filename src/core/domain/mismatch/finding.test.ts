import { expect, test } from 'vitest';
import { suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { absolute } from '../money.ts';
import { asked, exactly, hasTail, shortly } from './finding.ts';

test('figures are told with all six decimals, or as people write them', () => {
  expect([25_000_137n, 500_000n, 0n].map(exactly)).toEqual(['25.000137', '0.500000', '0.000000']);
  expect([25_500_000n, 1_000_000n, 100_000_000n, 10_000_010n, 1n].map(shortly)).toEqual([
    '25.5',
    '1',
    '100',
    '10.00001',
    '0.000001',
  ]);
  expect(asked(suspectOf(25_000_000n, 25_000_137n))).toBe("invoice order-1's 25.000137");
});

test('a payable amount has a tail where it is not the requested one', () => {
  expect(hasTail(suspectOf(25_000_000n, 25_000_137n))).toBe(true);
  expect(hasTail(suspectOf(25_000_000n, 25_000_000n))).toBe(false);
  expect([-3n, 0n, 3n].map(absolute)).toEqual([3n, 0n, 3n]);
});
