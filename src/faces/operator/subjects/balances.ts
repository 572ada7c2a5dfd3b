import { parseAddress, type TronAddress } from '@quittance/tron/address';
import { askEachOperator, formatSigned, type Reconciled, reconcileAddress } from '../../../core/chain/reconcile.ts';
import { AppError, notFound } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { type Hint, say, type Text } from '../../../core/domain/message.ts';
import { keyMode } from '../../../core/domain/network.ts';
import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { inGroups } from '../../../core/runtime/concurrency.ts';
import { Type } from '../../../core/runtime/type.ts';
import { type BookedAddress, listBookedAddresses } from '../../../core/store/chain/balance-checks.ts';
import { findCursor } from '../../../core/store/chain/cursor.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Database } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { maybeText, maybe as mayLack, type Row, text as textOf } from '../../../core/store/db/statement.ts';
import type { Freeze } from '../../../core/store/ledger/addresses.ts';
import { notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import { formatTable } from '../command-words.ts';
import { choice, type Field, maybe, part, type Shown, show, text, time, whole, yes } from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import { localOperation, type NodeDeps, type OperationDeps } from '../operation.ts';
import { line, lines, networkName, projectId } from '../option.ts';
import { selectProject, withNodesOf } from '../select.ts';
import { address, life, readPosition } from './addresses.ts';
import { rangeInput } from './chain-blocks.ts';

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

/** `check` is the last comparison with the chain, or `null` if there hasn't been one. */
type BalanceRow = Row<typeof columns>;

/** Lists a project's addresses by position, beginning after `after`. */
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
 * Sums the transfers to and from each of these addresses (UUIDs) above the block at its last comparison, or all its transfers if it has
 * never been compared. The next comparison includes corrections below that block.
 */
const sumSinceCheck = answerOf(
  'balances-sum',
  { id: 'uuid', micro: 'numeric' },
  `select a.id, (select coalesce(sum(t.amount_micro), 0) from transfers t
       where t.address_id = a.id and t.block_number > coalesce(b.checked_block, -1) and ${notAnnulled('t')})
     - (select coalesce(sum(o.amount_micro), 0) from outgoing_transfers o
       where o.address_id = a.id and o.block_number > coalesce(b.checked_block, -1) and ${outgoingNotAnnulled('o')}) as micro
   from addresses a left join balance_checks b on b.address_id = a.id where a.id = any($1::uuid[])`,
  (ids: readonly string[]) => [ids],
  (rows) => new Map(rows.map(({ id, micro }) => [id, micro])),
);

const micro: Field<bigint, string> = { ...text, show: formatSigned };
/**
 * `ledger` is the opening balance plus everything since then, or `null` if summing took too long. `isSigned` is `null` if no signature is
 * required.
 */
const shown = {
  ...{ address, policy: choice(POLICIES), position: whole, ...life, isSigned: maybe(yes), ledger: maybe(text) },
  // The balances on the chain and in the ledger at the block where they were last compared. The `ledger` above is the current balance.
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
/** The number of addresses per page. Comparing this many with the chain takes seconds. */
const BALANCES_OF_A_PAGE = 25;
/** Summing can take a long time, because a busy address has many transfers. */
const TIMEOUT_MS = 3000;

const page = {
  input: Type.Object({ projectId: projectId(), after: line('<position>', 'only addresses after this position') }),
  read: ({ projectId, after }: { projectId?: string | undefined; after?: string | undefined }) => ({
    ...{ projectId, after: readPosition(after) },
  }),
};

/**
 * Lists one page of a project's addresses by position, each with its ledger balance and its chain balance at the last comparison. Omits
 * sums that aren't ready in time. The next page begins after the position `next`. Throws `NOT_FOUND` or `INVALID_ARGUMENT`.
 */
export const listBalances = localOperation({
  ...page,
  action: 'listBalances',
  run: async ({ db, addressGuard }: Pick<OperationDeps, 'db' | 'addressGuard'>, actor, input) => {
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
export type BalanceListView = Awaited<ReturnType<typeof listBalances.run>>;

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

/** An address that was compared more recently than this isn't compared again, because nodes limit requests. */
const NEW_MS = 60_000;
/** How long a person waits for the ledger to reach the nodes' block. This takes up to 24 s while no payment is expected. */
const PAGE_PATIENCE_MS = 25_000;

/**
 * Compares one page of a project's addresses with the chain now, except the addresses in `skipped`, which were compared a moment ago. Throws
 * `NOT_FOUND`, `NO_NODE` or `NODE_REFUSED`.
 */
export const compareBalances = localOperation({
  ...page,
  action: 'compareBalances',
  run: async (deps: Pick<OperationDeps, 'db' | 'now' | 'nodes' | 'addressGuard'>, actor, input) => {
    const { now, nodes } = deps;
    const { projectId, network, data } = await listBalances.run(deps, actor, input);
    const isNew = ({ chain }: (typeof data)[number]) => chain !== null && now() - Date.parse(chain.checkedAt) < NEW_MS;
    const addresses = data.filter((each) => !isNew(each)).map(({ address }) => address);
    const skipped = data.filter(isNew).map(({ address }) => address);
    if (addresses.length === 0) return { projectId, network, node: null, data: [], skipped };
    const { withNodes } = await nodes();
    const wanted = { addresses, patienceMs: PAGE_PATIENCE_MS };
    const { view } = await withNodes(network, (asking) =>
      reconcileNow({ ...asking, onProgress: () => undefined }, wanted),
    );
    return { projectId, network, node: view.node, data: view.data, skipped };
  },
});
export type ComparedBalancesView = Awaited<ReturnType<typeof compareBalances.run>>;

/** The maximum number of a project's addresses that a list returns. */
const MAX_ADDRESSES = 10_000;
/** How many addresses are compared in parallel, with four requests each. */
const PARALLEL_ADDRESSES = 8;
/** While no payment is expected, the watcher reads irreversible blocks only every eighth block, which is every 24 s. */
const PATIENCE_MS = 30_000;
const CONFIRM_AFTER_MS = 3000;

/** The result for an address: its balances are equal, differ, or can't be compared yet. */
type ReconciledAddress = { address: string } & (
  | { status: 'good'; block: number; balance: string; opening: string }
  | { status: 'differs'; ledger: string; chain: string; difference: string; from: number; to: number }
  | { status: 'too-early'; reason: string }
);

/** Reads an address to compare. Throws `INVALID_ARGUMENT`. */
function readAddress(text: string): TronAddress {
  const parsed = parseAddress(text.trim());
  if (parsed.kind === 'ok') return parsed.address;
  throw new FieldError('address', `${clip(text)}: ${parsed.reason}`);
}

/** `patienceMs` limits the total wait for the ledger. Without it, the limit applies to each address. */
type Wanted = { addresses: readonly TronAddress[]; patienceMs?: number };

/**
 * Compares the balances of these addresses, or of all addresses, with the chain now. `onProgress` receives the number done and the total.
 * `signal` ends the waiting. `firstChecked` lists the addresses that were compared for the first time. `hints` lists commands that show the
 * blocks where a difference must have arisen. Throws `NOT_FOUND`, `NO_NODE` or `NODE_REFUSED`.
 */
export async function reconcileNow(
  deps: NodeDeps & { onProgress(done: number, total: number): void; signal?: AbortSignal },
  { addresses: wanted, patienceMs: allMs = Number.POSITIVE_INFINITY }: Wanted,
) {
  const { db, network, onProgress } = deps;
  const addresses = chooseAddresses(await listBookedAddresses(db, network, MAX_ADDRESSES), wanted, network);
  const nodes = (await deps.pool.available()).toReversed();
  const [first] = nodes;
  if (first === undefined) {
    throw new AppError(
      'NO_NODE',
      say`no ${network} node responds: see the state of the nodes with "${{ command: 'chain status' }}"`,
    );
  }
  const standsAt = async () => (await findCursor(db, network))?.solid.number;
  const endMs = performance.now() + allMs;
  let patienceMs = PATIENCE_MS;
  const firstChecked = new Set<string>();
  const used = new Set<string>();
  const reconcileOne = async (booked: BookedAddress) => {
    const startedMs = performance.now();
    const before = await standsAt();
    const wait = {
      patienceMs: Math.max(0, Math.min(patienceMs, endMs - startedMs)),
      confirmAfterMs: CONFIRM_AFTER_MS,
    };
    const outcome = await askEachOperator(nodes, async (node) => {
      const reconciled = await reconcileAddress({ ...deps, node, ...wait }, booked);
      used.add(node.origin);
      return reconciled;
    });
    if (outcome === null) throw new Error('no node was asked');
    if (outcome.kind === 'too-early' && performance.now() - startedMs >= PATIENCE_MS) {
      // If the ledger isn't advancing, for example because the service is stopped, it won't catch up with the next addresses' blocks
      // either.
      if ((await standsAt()) === before) patienceMs = 0;
    }
    if (outcome.kind === 'good' && outcome.isFirst) firstChecked.add(booked.address);
    return toView(booked.address, outcome);
  };
  const data = await inGroups(addresses, PARALLEL_ADDRESSES, reconcileOne, (done) =>
    onProgress(done, addresses.length),
  );
  const hints = data.flatMap((each): Hint[] =>
    each.status === 'differs' ? [{ command: 'chain repair', input: rangeInput(network, each) }] : [],
  );
  return { view: { network, node: [...used].join(', ') || first.origin, data }, firstChecked, hints };
}

function chooseAddresses(all: BookedAddress[], wanted: readonly TronAddress[], network: string): BookedAddress[] {
  if (wanted.length === 0) return all;
  const byAddress = new Map(all.map((entry) => [entry.address, entry]));
  return [...new Set(wanted)].map((address) => {
    const found = byAddress.get(address);
    if (found !== undefined) return found;
    throw notFound`no project on ${network} has the address ${address}`;
  });
}

function toView(address: string, outcome: Reconciled): ReconciledAddress {
  if (outcome.kind === 'too-early') return { address, status: 'too-early', reason: outcome.reason };
  if (outcome.kind === 'good') {
    const { block, balanceMicro, openingMicro } = outcome;
    return { address, status: 'good', block, balance: formatSigned(balanceMicro), opening: formatSigned(openingMicro) };
  }
  const { ledgerMicro, chainMicro, from, to } = outcome;
  const [ledger, chain] = [formatSigned(ledgerMicro), formatSigned(chainMicro)];
  return { address, status: 'differs', ledger, chain, difference: formatSigned(chainMicro - ledgerMicro), from, to };
}

/** A person can't check more blocks than this. */
const MAX_HINTS = 20;

/** Comments on an address's figures. `isFirst` means that the address was compared for the first time. */
export function noteReconciled(row: ReconciledAddress, isFirst: boolean): string {
  switch (row.status) {
    case 'good':
      return isFirst ? `first check: the balance was ${row.opening}` : `at block ${row.block}`;
    case 'differs':
      return `in blocks ${row.from} to ${row.to}`;
    case 'too-early':
      return row.reason;
  }
}

/** Returns advice if some balances differ, with one line for each range of blocks to check. */
export function adviseOnBooks(hints: readonly Hint[]): Text[] {
  if (hints.length === 0) return ['make sure that the service is running and catching up, and try again in a minute'];
  const distinct = new Map(hints.map((hint) => [JSON.stringify(hint), hint]));
  const lines = [...distinct.values()].slice(0, MAX_HINTS).map((hint) => say`${hint}`);
  return ['rescan the blocks that must contain the difference:', ...lines];
}

/** Fails unless every address's on-chain balance matches the ledger. */
const reconcile = localOperation({
  action: 'reconcileNow',
  command: 'reconcile',
  does: 'compare the on-chain balances of your addresses with the ledger now; exits 1 if a balance differs',
  input: Type.Object({
    address: lines('<T…>', 'only these addresses, comma-separated'),
    network: networkName(),
  }),
  read: ({ address = [], network }) => ({ addresses: address.map(readAddress), network }),
  run: (deps, _actor, { network, addresses }) => {
    const onProgress = (done: number, total: number) => {
      if (done < total) deps.note(`${done} of ${total} addresses`);
    };
    return withNodesOf(deps, network, (nodes) => reconcileNow({ ...nodes, onProgress }, { addresses }));
  },
  print: ({ view: { data }, firstChecked, hints }) => {
    const text = formatTable(
      ['ADDRESS', 'STATUS', 'LEDGER', 'CHAIN', 'DIFFERENCE', 'NOTE'],
      data.map((row) => cellsOf(row, firstChecked)),
    );
    if (data.length === 0)
      return { text, next: say`no address yet: add an address with "${{ command: 'address add', args: ['T…'] }}"` };
    if (data.every(({ status }) => status === 'good')) return { text };
    return { text, next: adviseOnBooks(hints), hasFailed: true };
  },
});

function cellsOf(row: ReconciledAddress, firstChecked: ReadonlySet<string>): string[] {
  const { address } = row;
  const note = noteReconciled(row, firstChecked.has(address));
  switch (row.status) {
    case 'good':
      return [address, 'good', row.balance, row.balance, '0.000000', note];
    case 'differs':
      return [address, 'DIFFERS', row.ledger, row.chain, row.difference, note];
    case 'too-early':
      return [address, 'too early', '', '', '', note];
  }
}

export const operations = [reconcile];
