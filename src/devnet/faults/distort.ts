import type { Fault } from './faults.ts';

/** The answer of a node with these faults in place of the true one. */
export function distort(faults: readonly Fault[], path: string, answer: unknown): unknown {
  return faults.reduce((given: unknown, { kind }) => distortOnce(kind, path, given), answer);
}

function distortOnce(kind: Fault['kind'], path: string, answer: unknown): unknown {
  if (path.endsWith('/gettransactioninfobyblocknum') && Array.isArray(answer)) {
    if (kind === 'empty-infos') return [];
    if (kind === 'missing-info') return answer.slice(0, -1);
    if (kind === 'swapped-infos') return [...answer.slice(0, 2).reverse(), ...answer.slice(2)];
  }
  return kind === 'empty-block' ? withoutTransactions(answer) : answer;
}

function withoutTransactions(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer;
  if ('block' in answer && Array.isArray(answer.block)) return { block: answer.block.map(withoutTransactions) };
  if (!('blockID' in answer && 'transactions' in answer)) return answer;
  const { transactions: _taken, ...rest } = answer;
  return rest;
}
