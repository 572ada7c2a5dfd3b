import { accountWord } from '../evm/abi.ts';
import type { SettledFault } from './faults.ts';

/** The answer of a node with these faults in place of the true one. */
export function distort(faults: readonly SettledFault[], path: string, answer: unknown): unknown {
  return faults.reduce((given: unknown, fault) => distortOnce(fault, path, given), answer);
}

function distortOnce(fault: SettledFault, path: string, answer: unknown): unknown {
  const { kind } = fault;
  if (path.endsWith('/gettransactioninfobyblocknum') && Array.isArray(answer)) {
    if (kind === 'empty-infos') return [];
    if (kind === 'missing-info') return answer.slice(0, -1);
    if (kind === 'swapped-infos') return [...answer.slice(0, 2).reverse(), ...answer.slice(2)];
  }
  if (kind === 'missing-logs' || kind === 'limited-logs') return withoutLogs(fault, answer);
  return kind === 'empty-block' ? withoutTransactions(answer) : answer;
}

function withoutTransactions(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer;
  if ('block' in answer && Array.isArray(answer.block)) return { block: answer.block.map(withoutTransactions) };
  if (!('blockID' in answer && 'transactions' in answer)) return answer;
  const { transactions: _taken, ...rest } = answer;
  return rest;
}

/** The answer to `eth_getLogs` of a node that lacks some of the index, or of a provider that has had enough; any other as it is. */
function withoutLogs({ kind, to, recipient, fromBlock, toBlock }: SettledFault, answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('jsonrpc' in answer && 'result' in answer)) return answer;
  const { result, ...rest } = answer;
  // EIP-1474 names this code and text.
  if (kind === 'limited-logs') return { ...rest, error: { code: -32005, message: 'Limit exceeded' } };
  const word = `0x${accountWord(recipient)}`;
  const logs = result as readonly { readonly blockNumber: string; readonly topics: readonly string[] }[];
  const isMissing = ({ blockNumber, topics }: (typeof logs)[number]) =>
    Number(blockNumber) >= fromBlock && Number(blockNumber) <= toBlock && (to === undefined || topics[2] === word);
  return { ...rest, result: logs.filter((log) => !isMissing(log)) };
}
