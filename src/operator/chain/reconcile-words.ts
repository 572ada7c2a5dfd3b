import { type Hint, say, type Text } from '../../domain/message.ts';
import type { ReconciledAddress } from './views.ts';

/** As many blocks to look at as a person takes in. */
const MAX_HINTS = 20;

/** What is said beside the figures of an address. `isFirst`: nothing was known of it before. */
export function noteReconciled(row: ReconciledAddress, isFirst: boolean): string {
  switch (row.status) {
    case 'good':
      return isFirst ? `first check: it held ${row.opening}` : `at block ${row.block}`;
    case 'differs':
      return `in blocks ${row.from} to ${row.to}`;
    case 'too-early':
      return row.reason;
  }
}

/** What is done where not all of them balance, a line each: the blocks to look at. */
export function adviseOnBooks(hints: readonly Hint[]): Text[] {
  if (hints.length === 0) return ['try again in a minute; the service must be running and catching up'];
  const distinct = new Map(hints.map((hint) => [JSON.stringify(hint), hint]));
  const lines = [...distinct.values()].slice(0, MAX_HINTS).map((hint) => say`${hint}`);
  return ['read the blocks again in which it must have happened:', ...lines];
}
