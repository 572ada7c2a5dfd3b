import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import { keyMode, type Network } from '../../domain/network.ts';
import { POLICIES, type Policy } from '../../domain/policy.ts';
import { Type } from '../../runtime/type.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Database } from '../../store/db/database.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { maybeText, maybe as mayLack, type Row, text as textOf } from '../../store/db/statement.ts';
import type { Freeze } from '../../store/ledger/addresses.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import type { TronAddress } from '../../tron/address.ts';
import { reconcileNow } from '../chain/reconcile-now.ts';
import type { ReconciledAddress, ReconciledView } from '../chain/views.ts';
import { choice, type Field, maybe, part, type Shown, show, text, time, whole, yes } from '../fields.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import { localOperation, type OperationDeps } from '../operation.ts';
import { line, projectId } from '../option.ts';
import { selectProject } from '../select-project.ts';
import { address, life, readPosition } from './addresses.ts';

const columns = {
  id: 'uuid',
  address: 'address',
  policy: textOf<Policy>(),
  position: 'int4',
  createdAt: 'timestamptz',
  retiredAt: 'timestamptz?',
  barredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
  derivationIndex: 'int4?',
  check: mayLack({ chainMicro: 'numeric', expectedMicro: 'numeric', block: 'int8', at: 'timestamptz' }),
} as const;

/** `check`: the last comparison with the chain; `null` before the first one. */
type BalanceRow = Row<typeof columns>;

/** The addresses of a project by position, from the first after `after` on. */
const listWithChecks = rowsOf(
  'balances-list',
  columns,
  `select a.id, ${addressColumn('a')} as address, a.policy, a.position, a.created_at, a.retired_at, a.barred_at, a.freeze_state, a.derivation_index,
     b.balance_micro as check_chain_micro, b.expected_micro as check_expected_micro, b.checked_block as check_block, b.checked_at as check_at
   from addresses a left join balance_checks b on b.address_id = a.id
   where a.project_id = $1 and a.position > $2 order by a.position limit $3`,
  (projectId: string, after: number, limit: number) => [projectId, after, limit],
);

/**
 * What came to and left each of these addresses (UUIDs) above the height of their last comparison, or ever where there is none. What is
 * corrected below that height counts from the next comparison on.
 */
const sumSinceCheck = answerOf(
  'balances-sum',
  { id: 'uuid', micro: 'numeric' },
  `select a.id, (select coalesce(sum(t.amount_micro), 0) from transfers t
       where t.address_id = a.id and t.block_number > coalesce(b.checked_block, -1) and ${stands('t')})
     - (select coalesce(sum(o.amount_micro), 0) from outgoing_transfers o
       where o.address_id = a.id and o.block_number > coalesce(b.checked_block, -1) and ${outgoingStands('o')}) as micro
   from addresses a left join balance_checks b on b.address_id = a.id where a.id = any($1::uuid[])`,
  (ids: readonly string[]) => [ids],
  (rows) => new Map(rows.map(({ id, micro }) => [id, micro])),
);

const micro: Field<bigint, string> = { ...text, show: formatSigned };
/** `ledger`: opening, and what came and left since; `null` where the sums took too long. `isSigned`: `null` where it need not be. */
const shown = {
  ...{ address, policy: choice(POLICIES), position: whole, ...life, isSigned: maybe(yes), ledger: maybe(text) },
  // The last comparison: what the chain and the ledger said at the same block. `ledger` beside it is of now.
  chain: {
    ...maybe(
      part({
        ...{ balance: { ...micro, of: 'chainMicro' }, ledger: { ...micro, of: 'expectedMicro' } },
        block: { ...whole, show: (block: bigint) => Number(block) },
        isSame: { ...yes, of: '*', show: (check: Check) => check.chainMicro === check.expectedMicro },
        checkedAt: { ...time, of: 'at' },
      }),
    ),
    of: 'check',
  },
};
type Check = NonNullable<BalanceRow['check']>;
export type BalanceView = Shown<typeof shown>;
/** `next`: the position behind which the next page begins. */
export type BalanceListView = {
  projectId: string;
  network: Network;
  policy: Policy;
  data: BalanceView[];
  next: number | null;
};

/** Addresses of a page. Comparing as many with the chain takes seconds. */
const BALANCES_OF_A_PAGE = 25;
/** Sums of a busy address are of many transfers. */
const TIMEOUT_MS = 3000;

const page = {
  input: Type.Object({ projectId: projectId(), after: line('<position>', 'only those after this position') }),
  read: ({ projectId, after }: { projectId?: string | undefined; after?: string | undefined }) => {
    return { projectId, after: readPosition(after) };
  },
};

/**
 * The project's addresses by position, a page at a time, with what each holds by the ledger and by the chain when it was last compared. Where
 * the sums take too long they are left out. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`.
 */
export const listBalances = localOperation({
  ...page,
  action: 'listBalances',
  run: async (
    { db, addressGuard }: Pick<OperationDeps, 'db' | 'addressGuard'>,
    actor,
    input,
  ): Promise<BalanceListView> => {
    const project = await selectProject(db, actor, input.projectId);
    const rows = await listWithChecks(db, project.id, input.after, BALANCES_OF_A_PAGE + 1);
    const page = rows.slice(0, BALANCES_OF_A_PAGE);
    const sums = await sumOf(db, page);
    const mustBeSigned = addressGuard.isGuarded(project.network) || keyMode(project.network) === 'live';
    return {
      ...{ projectId: encodeId('prj', project.id), network: project.network, policy: project.policy },
      data: page.map((row) =>
        show(shown, {
          ...row,
          ledger: ledgerOf(row, sums?.get(row.id) ?? null),
          isSigned: mustBeSigned
            ? addressGuard.vouchesFor({ ...row, projectId: project.id, network: project.network })
            : null,
        }),
      ),
      next: rows.length > page.length ? (page.at(-1)?.position ?? null) : null,
    };
  },
});

function sumOf(db: Database, rows: readonly BalanceRow[]): Promise<Map<string, bigint> | null> {
  const ids = rows.map(({ id }) => id);
  return db
    .snapshot(async (tx) => {
      await limitTime(tx, TIMEOUT_MS);
      return sumSinceCheck(tx, ids);
    })
    .catch(ifTooSlow);
}

const ledgerOf = ({ check }: BalanceRow, sumMicro: bigint | null) =>
  sumMicro === null ? null : formatSigned((check?.expectedMicro ?? 0n) + sumMicro);

/** `skipped`: those that were compared a moment ago. */
export type ComparedBalancesView = {
  projectId: string;
  network: Network;
  node: string | null;
  data: ReconciledAddress[];
  skipped: TronAddress[];
};

/** What nodes were asked less than this ago they are not asked again: their requests are counted. */
const NEW_MS = 60_000;
/** How long a person waits for the ledger to reach the nodes' height. It takes 24 s while nobody waits for a payment. */
const PATIENCE_MS = 25_000;

/** Compares a page of a project's addresses with the chain now. Errors: `NOT_FOUND`, `NO_NODE`, `NODE_REFUSED`. */
export const compareBalances = localOperation({
  ...page,
  action: 'compareBalances',
  run: async (
    deps: Pick<OperationDeps, 'db' | 'now' | 'nodes' | 'addressGuard'>,
    actor,
    input,
  ): Promise<ComparedBalancesView> => {
    const { now, nodes } = deps;
    const { projectId, network, data } = await listBalances.run(deps, actor, input);
    const isNew = ({ chain }: (typeof data)[number]) => chain !== null && now() - Date.parse(chain.checkedAt) < NEW_MS;
    const addresses = data.filter((each) => !isNew(each)).map(({ address }) => address);
    const skipped = data.filter(isNew).map(({ address }) => address);
    if (addresses.length === 0) return { projectId, network, node: null, data: [], skipped };
    const { withNodes } = await nodes();
    const wanted = { addresses, patienceMs: PATIENCE_MS };
    const compared: ReconciledView = await withNodes(network, async (asking) => {
      return (await reconcileNow({ ...asking, onProgress: () => undefined }, actor, wanted)).view;
    });
    return { projectId, network, node: compared.node, data: compared.data, skipped };
  },
});
