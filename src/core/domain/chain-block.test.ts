import { expect, test } from 'vitest';
import { type ChainTransfer, verifiedBy } from './chain-block.ts';

const transfer = (isProven: boolean) => ({ isProven }) as ChainTransfer;

test('what the header proves is proven, whoever showed it', () => {
  for (const operatorCount of [0, 1, 3]) {
    expect(verifiedBy(transfer(true), { nodes: [], operatorCount })).toBe('proven');
  }
});

test.each([
  [1, 'single-node'],
  [2, 'agreed:2'],
  [99, 'agreed:99'],
  [100, 'agreed:99'],
])('what is not proven is as good as the number of operators that show it: %i', (operatorCount, verified) => {
  expect(verifiedBy(transfer(false), { nodes: [], operatorCount })).toBe(verified);
});
