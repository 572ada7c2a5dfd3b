import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import { keyMode } from '../../domain/network.ts';
import { toIso } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Project } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import type { Vouching } from '../operation.ts';
import { selectProject } from '../select-project.ts';
import { type BalanceRow, listWithChecks, sumSinceCheck } from './balance-queries.ts';
import { type BalanceListView, type BalanceView, lifeStatusOf } from './views.ts';

/** Addresses of a page. Comparing as many with the chain takes seconds. */
const BALANCES_OF_A_PAGE = 25;
/** Sums of a busy address are of many transfers. */
const TIMEOUT_MS = 3000;

/**
 * The project's addresses by position, a page at a time, with what each holds by the ledger and by the chain when it was last compared. Where
 * the sums take too long they are left out. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`.
 */
export async function listBalances(
  { db, addressGuard }: { db: Database; addressGuard: Vouching },
  actor: Actor,
  input: { projectId: string | undefined; after: number },
): Promise<BalanceListView> {
  const project = await selectProject(db, actor, input.projectId);
  const rows = await listWithChecks(db, project.id, input.after, BALANCES_OF_A_PAGE + 1);
  const page = rows.slice(0, BALANCES_OF_A_PAGE);
  const sums = await sumOf(db, page);
  const mustBeSigned = addressGuard.isGuarded(project.network) || keyMode(project.network) === 'live';
  return {
    ...aboutOf(project),
    data: page.map((row) => ({
      ...viewBalance(row, sums?.get(row.id) ?? null),
      isSigned: mustBeSigned
        ? addressGuard.vouchesFor({ ...row, projectId: project.id, network: project.network })
        : null,
    })),
    next: rows.length > page.length ? (page.at(-1)?.position ?? null) : null,
  };
}

function aboutOf({ id, network, policy }: Project) {
  return { projectId: encodeId('prj', id), network, policy };
}

function sumOf(db: Database, rows: readonly BalanceRow[]): Promise<Map<string, bigint> | null> {
  const ids = rows.map(({ id }) => id);
  return db
    .snapshot(async (tx) => {
      await limitTime(tx, TIMEOUT_MS);
      return sumSinceCheck(tx, ids);
    })
    .catch(ifTooSlow);
}

function viewBalance({ check, ...row }: BalanceRow, sumMicro: bigint | null): Omit<BalanceView, 'isSigned'> {
  return {
    ...{ address: row.address, policy: row.policy, position: row.position },
    status: lifeStatusOf(row),
    ...{ derivationIndex: row.derivationIndex, createdAt: toIso(row.createdAt) },
    retiredAt: row.retiredAt && toIso(row.retiredAt),
    ledger: sumMicro === null ? null : formatSigned((check?.expectedMicro ?? 0n) + sumMicro),
    chain: check && {
      ...{ balance: formatSigned(check.chainMicro), ledger: formatSigned(check.expectedMicro) },
      block: Number(check.block),
      isSame: check.chainMicro === check.expectedMicro,
      checkedAt: toIso(check.at),
    },
  };
}
