import { type Hint, say, type Text } from '../../domain/message.ts';
import type { DifferenceView, RescannedView, VerifiedRangeView } from './views.ts';

/** What a rescan did, in a sentence. */
export function sayRescanned({ blockCount, added }: Pick<RescannedView, 'blockCount' | 'added'>): string {
  return `${blockCount} blocks read; new in the ledger: ${listCounts(added)}`;
}

/** What a comparison found, in a sentence. */
export function sayVerified({ blockCount, comparedCount, differences }: VerifiedRangeView): string {
  const found = differences.length === 0 ? 'the ledger is the same' : `${differences.length} differences`;
  return `${blockCount} blocks read, ${comparedCount} transfers of our addresses compared: ${found}`;
}

/** What is done about differences. */
export function adviseOnDifferences(hint: Hint): Text {
  return hint.command === 'chain rescan'
    ? say`record what is missing with "${hint}"`
    : say`ship nothing for these transfers: see what each did, and take back what the chain denies, with "${hint}"`;
}

/** Mentions blocks whose producers are not known now; `null`: there are none. */
export function sayUnattested({ blockCount, attestedCount }: Pick<RescannedView, 'blockCount' | 'attestedCount'>) {
  const count = blockCount - attestedCount;
  if (count === 0) return null;
  return `${count} of the blocks were signed by producers that are not known now; they stand because known ones built on them`;
}

const EXPLAINED: Record<DifferenceView['kind'], string> = {
  missing: 'missing in the ledger',
  'not-on-chain': 'not on the chain',
  wrong: 'wrong',
  'taken-back': 'on the chain, but taken back',
};

export function explainDifference({ kind, onChain }: Pick<DifferenceView, 'kind' | 'onChain'>): string {
  if (kind !== 'wrong' || onChain === null) return EXPLAINED[kind];
  return `${EXPLAINED[kind]}: ${onChain.amount} to or from ${onChain.address} in block ${onChain.blockNumber}`;
}

export function listCounts(added: Readonly<Record<string, number>>): string {
  return Object.entries(added)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ');
}
