import type { WrittenTotal } from './backup-format.ts';
import type { LedgerTotal } from './backup-totals.ts';
import type { TotalDifference } from './views.ts';

type Sum = Pick<LedgerTotal, 'count' | 'micro'>;

const NONE: Sum = { count: 0n, micro: 0n };

export function ofHeader(totals: readonly WrittenTotal[]): LedgerTotal[] {
  return totals.map((total) => ({ ...total, count: BigInt(total.count), micro: BigInt(total.micro) }));
}

/** Where two ledgers do not add up to the same. */
export function findDifferences(backup: readonly LedgerTotal[], other: readonly LedgerTotal[]): TotalDifference[] {
  return compare(backup, other, (one, two) => one.count === two.count && one.micro === two.micro);
}

/**
 * Where a ledger has less than a backup of it that was made before. Nothing in a ledger is ever deleted, and a paid invoice stays
 * paid; the other statuses come and go, so of them only the sum is compared.
 */
export function findLosses(backup: readonly LedgerTotal[], running: readonly LedgerTotal[]): TotalDifference[] {
  const isGrown = (one: Sum, two: Sum) => two.count >= one.count && two.micro >= one.micro;
  return compare(withAllInvoices(backup), withAllInvoices(running), isGrown);
}

function withAllInvoices(totals: readonly LedgerTotal[]): LedgerTotal[] {
  const sums = new Map<string, LedgerTotal>();
  const kept = totals.filter((total) => {
    if (total.what !== 'invoice') return true;
    const key = `${total.network} ${total.projectId}`;
    const { count, micro } = sums.get(key) ?? NONE;
    sums.set(key, { ...total, kind: 'all', count: count + total.count, micro: micro + total.micro });
    return total.kind === 'PAID';
  });
  return [...kept, ...sums.values()];
}

function compare(
  backup: readonly LedgerTotal[],
  other: readonly LedgerTotal[],
  isRight: (backup: Sum, other: Sum) => boolean,
): TotalDifference[] {
  const keyOf = ({ what, network, projectId, kind }: LedgerTotal) => [what, network, projectId, kind].join(' ');
  const [ofBackup, ofOther] = [backup, other].map((totals) => new Map(totals.map((total) => [keyOf(total), total])));
  const keys = new Set([...(ofBackup?.keys() ?? []), ...(ofOther?.keys() ?? [])]);
  return [...keys].flatMap((key) => {
    const [one, two] = [ofBackup?.get(key), ofOther?.get(key)];
    const named = one ?? two;
    if (named === undefined || isRight(one ?? NONE, two ?? NONE)) return [];
    const { what, network, projectId, kind } = named;
    const sum = ({ count, micro }: Sum) => ({ count: `${count}`, micro: `${micro}` });
    return [{ what, network, projectId, kind, backup: sum(one ?? NONE), other: sum(two ?? NONE) }];
  });
}
