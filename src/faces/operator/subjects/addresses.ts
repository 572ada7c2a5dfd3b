import { setTimeout as delay } from 'node:timers/promises';
import { type AccountHex, parseAddress, type TronAddress } from '@quittance/tron/address';
import type { Node } from '../../../core/chain/nodes/node.ts';
import type { NodePool } from '../../../core/chain/nodes/node-pool.ts';
import { accountAt } from '../../../core/chain/nodes/questions.ts';
import { conflict, type FieldProblem, notFound } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { type Hint, say, type Text } from '../../../core/domain/message.ts';
import { NETWORKS, type Network } from '../../../core/domain/network.ts';
import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { reasonOf } from '../../../core/runtime/reason-of.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { count } from '../../../core/store/db/statement.ts';
import {
  countAddresses,
  findAddresses,
  hasAddresses,
  insertAddresses,
  LIFE_STATUSES,
  lifeStatusOf,
  MAX_LISTED,
  markRetired,
  type OwnedAddress,
  listAddresses as rowsOf,
} from '../../../core/store/ledger/addresses.ts';
import { lockProject } from '../../../core/store/ledger/projects.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText, type Printed } from '../command-words.ts';
import {
  choice,
  type Field,
  id,
  list,
  listOf,
  maybe,
  of,
  part,
  type Shown,
  schemaOf,
  show,
  text,
  time,
  whole,
  yes,
} from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { type Candidate, readCandidates, refusedAddresses } from '../input/read-candidates.ts';
import { readNote } from '../input/readers.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import { type Given, localOperation, type OperationDeps, operation } from '../operation.ts';
import { BY, entries, flag, line, maybeOneOf, not, projectId } from '../option.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select.ts';
import { type AddressChangeView, changeSchema, mustWait, proposeChange, usdtContracts } from './address-changes.ts';
import { activeAddresses, countActive } from './projects.ts';

/**
 * Activates addresses (by UUID) that were retired, or that Tether froze and unfroze, and returns them. An address that is still frozen
 * doesn't change.
 */
const markInUse = answerOf(
  'address-activate',
  { id: 'uuid' },
  `update addresses set retired_at = null, freeze_state = null
   where id = any($1::uuid[]) and (freeze_state = 'lifted' or freeze_state is null and retired_at is not null) returning id`,
  (ids: readonly string[]) => [ids],
  (rows) => new Set(rows.map(({ id }) => id)),
);

export const address: Field<TronAddress, TronAddress> = { schema: Type.String(), show: (given) => given };
const addresses = list(address);
export const about = { projectId: text, network: choice(NETWORKS), policy: choice(POLICIES) };
/** A project's address as lists show it. People count derived addresses from 1. */
export const life = {
  status: of('*', { schema: choice(LIFE_STATUSES).schema, show: lifeStatusOf }),
  ...{ derivationIndex: maybe(whole), createdAt: time, retiredAt: maybe(time) },
};
const listed = { address, policy: choice(POLICIES), position: whole, ...life };

/** Reads the position after which a list begins. Throws `INVALID_ARGUMENT`. */
export function readPosition(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new FieldError('after', `is ${clip(text)}: use a whole number (the position of an address)`);
}

/**
 * Lists at most 10,000 of a project's addresses by position. In the terminal, `next` suggests adding the first address or showing the rest.
 */
const listAddresses = operation({
  action: 'listAddresses',
  summary: "List a project's addresses with their policy and status",
  route: 'GET /addresses',
  command: 'address list',
  does: 'list addresses with their policy and status',
  input: Type.Object({
    projectId: projectId(),
    after: line('<position>', 'only addresses after this position; each page shows up to 10,000'),
  }),
  output: listOf(listed, {
    ...{ projectId: Type.String(), policy: choice(POLICIES).schema, activeAddresses: activeAddresses.schema },
  }),
  read: ({ projectId, after }) => ({ projectId, after: readPosition(after) }),
  run: async ({ db }: { db: Sql }, actor, input) => {
    const { id, policy } = await selectProject(db, actor, input.projectId);
    const rows = await rowsOf(db, id, input.after);
    const { active, retired } = await countAddresses(db, id);
    const projectId = encodeId('prj', id);
    const data = rows.map((row) => show(listed, row));
    const view = { projectId, policy, activeAddresses: active, data };
    const after = String(rows.at(-1)?.position);
    const next: Hint | null =
      countActive(active) + retired === 0
        ? { command: 'address add', args: ['T…'] }
        : rows.length < MAX_LISTED
          ? null
          : { command: 'address list', input: { projectId, after } };
    return { view, next };
  },
  print: ({ view: { data }, next }) => ({
    text: columnsText(data, [
      ['POSITION', 'position'],
      ['ADDRESS', 'address'],
      ['POLICY', 'policy'],
      ['STATUS', 'status'],
      ['DERIVED', ({ derivationIndex: index }) => (index === null ? '' : `#${index + 1}`)],
      ['CREATED', 'createdAt'],
    ]),
    next:
      next &&
      (data.length === 0
        ? say`no address yet: add an address with "${next}"`
        : say`there may be more addresses: ${next}`),
  }),
});

const TIMEOUT_MS = 3000;
/** Counting stops here, because an exact higher number wouldn't help anyone. */
const MAX_OPEN_INVOICES = 10_000;

/**
 * Counts an address's invoices that can still be paid in time or are being paid, up to `MAX_OPEN_INVOICES`. This is fast, because a network
 * has few open invoices.
 */
const countOpenInvoices = answerOf(
  'balances-open-invoices',
  { count },
  `select count(*) as count from (
     select i.id from invoices i where i.network = $2 and i.status = 'PENDING' and i.address_id = $1
     union
     select i.id from sightings s join invoices i on i.project_id = s.project_id and i.id = s.invoice_id
     where s.network = $2 and i.address_id = $1 and i.status = 'CONFIRMING'
     limit ${MAX_OPEN_INVOICES}) open`,
  (addressId: string, network: Network) => [addressId, network],
  ([row]) => row?.count ?? 0,
);

/** `openInvoices` is `null` if counting took too long. */
const detailed = {
  ...{ projectId: id('prj'), network: choice(NETWORKS), address, policy: choice(POLICIES), status: life.status },
  ...{ retiredAt: maybe(time), openInvoices: maybe(whole), isOpenInvoicesMore: yes, projectPolicy: choice(POLICIES) },
  activeAddresses,
};
export type AddressView = Shown<typeof detailed>;

/** Shows an address and the number of invoices that are affected if it's retired. Throws `NOT_FOUND` or `INVALID_ARGUMENT`. */
export const showAddress = localOperation({
  action: 'showAddress',
  input: Type.Object({ projectId: projectId(), address: Type.String() }),
  run: async ({ db }: { db: Database }, actor, { projectId: wanted, address }): Promise<AddressView> => {
    const project = await selectProject(db, actor, wanted);
    const parsed = parseAddress(address);
    const owned = parsed.kind === 'ok' ? await findAddresses(db, project.network, [parsed.account]) : [];
    const found = owned.find(({ projectId }) => projectId === project.id);
    if (found === undefined)
      throw notFound`${clip(address)} is not in this project: list its addresses with "${{ command: 'address list' }}"`;
    const openInvoices = await db
      .snapshot(async (tx) => {
        await limitTime(tx, TIMEOUT_MS);
        return countOpenInvoices(tx, found.id, project.network);
      })
      .catch(ifTooSlow);
    return show(detailed, {
      ...{ ...found, network: project.network, openInvoices, isOpenInvoicesMore: openInvoices === MAX_OPEN_INVOICES },
      ...{ projectPolicy: project.policy, activeAddresses: (await countAddresses(db, project.id)).active },
    });
  },
});

/** The nodes' reports about the added addresses. */
const activation = part({
  ...{ checked: whole, neverActivated: addresses, contracts: addresses, notCheckedBecause: maybe(text) },
});
type Mutable<Of> = { -readonly [Name in keyof Of]: Of[Name] };
export type ActivationView = Mutable<ReturnType<typeof activation.show>>;

/** Runs `work` with the nodes of the project's network. */
type WithNodes = (ask: (pool: NodePool) => Promise<void>) => Promise<void>;

/** Checking an address takes one request, and providers limit requests. */
const MAX_CHECKED = 50;
const PARALLEL_REQUESTS = 4;
/** The addresses have already been added, so the nodes' responses are only advice. */
const LIMIT_MS = 10_000;

/** Checks which of the first 50 addresses exist on the chain. Never fails, and takes at most 10 seconds. */
async function checkActivation(withNodes: WithNodes, candidates: readonly Candidate[]): Promise<ActivationView> {
  const found: ActivationView = { checked: 0, neverActivated: [], contracts: [], notCheckedBecause: null };
  const asked = candidates.slice(0, MAX_CHECKED);
  try {
    await withNodes(async (pool) => {
      const deadline = delay(LIMIT_MS, undefined, { ref: false });
      await Promise.race([askAll(pool, asked, found), deadline]);
    });
    if (found.checked < asked.length) found.notCheckedBecause = 'the nodes did not respond in time';
    else if (asked.length < candidates.length)
      found.notCheckedBecause = `at most ${MAX_CHECKED} addresses are checked at a time`;
  } catch (error) {
    found.notCheckedBecause = reasonOf(error);
  }
  // Requests that are still running after the deadline must not change the result.
  return { ...found };
}

async function askAll(pool: NodePool, candidates: readonly Candidate[], found: ActivationView): Promise<void> {
  const waiting = [...candidates];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const kind = await askAny(await pool.available(), next);
      if (kind === null) continue;
      found.checked += 1;
      if (kind === 'absent') found.neverActivated.push(next.address);
      if (kind === 'contract') found.contracts.push(next.address);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_REQUESTS }, work));
}

/** Returns the first response from any node, or `null` if none responds. */
async function askAny(nodes: readonly Node[], candidate: Candidate): Promise<'absent' | 'contract' | 'wallet' | null> {
  for (const node of nodes) {
    const shown = await node.ask(accountAt(candidate.account)).catch(() => undefined);
    if (shown === null) return 'absent';
    if (shown?.address === `41${candidate.account}`) return shown.isContract ? 'contract' : 'wallet';
  }
  return null;
}

/** Describes to people what the nodes reported about the added addresses. */
function describeActivation(activation: ActivationView, added: number) {
  const { checked, neverActivated, contracts, notCheckedBecause } = activation;
  const unused = [
    `never activated: ${neverActivated.join(', ')}`,
    '  They can still receive payments. Before you spend from such an address, send it about 1 TRX to activate it; spending also needs energy.',
    '  The first transfer to an address that has never held USDT costs the sender about twice the energy.',
    '  If you expected an address to be in use already, compare it with your wallet now.',
  ];
  const unsafe = [
    `NOT A WALLET: ${contracts.join(', ')} is a smart contract, and money sent there is probably lost.`,
    say`  Unless you control the contract, run: ${{ command: 'address retire', args: contracts }}`,
  ];
  const which = checked === 0 ? 'the addresses' : `${added - checked} of ${added} addresses`;
  return [
    ...(neverActivated.length === 0 ? [] : unused),
    ...(contracts.length === 0 ? [] : unsafe),
    checked < added &&
      `could not check whether ${which} were ever activated: ${notCheckedBecause ?? 'no node responded'}`,
  ];
}

/** Says that no invoice can use the new addresses yet, because the project has another policy. */
export function otherPolicyNote({ projectId }: { projectId: string }, policy: Policy, projectPolicy: Policy): Text[] {
  if (policy === projectPolicy) return [];
  const change = { command: 'project update', args: [projectId], input: { policy } };
  return [
    say`these addresses have the policy ${policy}, but the project uses ${projectPolicy}: to use them for invoices, run "${change}"`,
  ];
}

export const policyOption = () =>
  maybeOneOf(POLICIES, '<policy>', "permanent policy for these addresses (default: the project's current policy)");

/** `nodes` is missing if no nodes are configured. */
type AddDeps = Pick<OperationDeps, 'db' | 'now' | 'random'> & {
  config: Pick<OperationDeps['config'], 'sandbox' | 'networks'>;
  addressGuard: Pick<OperationDeps['addressGuard'], 'vouchesFor'>;
  nodes?: OperationDeps['nodes'];
};
const NOTHING_ADDED = 'no address was added';

/** Whether the ledger was ever restored from a backup that may have been incomplete. */
const wasEverRestored = answerOf(
  'restore-first-index',
  { firstIndex: 'int4' },
  'select first_index from ledger_identity where first_index > 0',
  () => [],
  ({ length }) => length > 0,
);

type Of = { projectId: string; network: Network; policy: Policy; activation: ActivationView | null };
/** The addresses are waiting for another owner's approval, or for a day to pass. */
export type Proposed = { kind: 'proposed'; view: Of & { proposed: AddressChangeView }; projectPolicy: Policy };
export type Added = { kind: 'added'; view: Of & { added: TronAddress[] }; projectPolicy: Policy } | Proposed;

/**
 * Adds addresses to a project in the given order, all or none, and reports what nodes know about them. In a project that already has an
 * address, additions by people and keys wait unless all of them are signed. `policy` defaults to the project's. `isFresh` confirms that the
 * ledger never contained any of these addresses, not even in data lost in a restore. Throws `INVALID_ARGUMENT`, `NOT_FOUND` or `CONFLICT`.
 */
export const addAddresses = operation({
  action: 'addAddresses',
  summary:
    'Add addresses. If one address is wrong, none are added. If the project already has an address and not all new addresses are signed, they are added when an owner confirms them in the console, or after a day',
  route: 'POST /addresses',
  command: 'address add',
  does: 'add addresses; if one address is wrong, none are added',
  by: BY,
  input: Type.Object({
    projectId: projectId(),
    entries: entries('[addresses...]', say`T…; "-" reads standard input, in the format of ${{ field: 'file' }}`, {
      value: '<path>',
      help: 'file with one address per line (# starts a comment), or CSV with a column "address"',
    }),
    policy: policyOption(),
    isChecked: not(
      'do not ask the nodes whether the addresses were ever activated',
      'Whether to ask the nodes about the addresses (default: true)',
    ),
    isFresh: flag('after a restore: confirm that Quittance has never had any of these addresses'),
  }),
  output: Type.Union([
    schemaOf({ ...about, added: addresses, activation: maybe(activation) }),
    Type.Object({
      ...{ projectId: text.schema, network: about.network.schema, policy: about.policy.schema },
      ...{ proposed: changeSchema, activation: maybe(activation).schema },
    }),
  ]),
  run: async (
    deps: AddDeps,
    actor,
    { projectId: wanted, entries, policy: given, isFresh = false, isChecked = true },
  ): Promise<Added> => {
    const { db, config } = deps;
    const { good, problems } = readCandidates(entries, usdtContracts(config));
    const { id: projectId, network } = await selectProject(db, actor, wanted);
    const findTaken: FindTaken = async (sql, accounts) =>
      (await findAddresses(sql, network, accounts)).map((each) => takenProblem(each, projectId, actor));
    const accounts = good.map(({ account }) => account);
    if (problems.length > 0) {
      throw refusedAddresses(NOTHING_ADDED, [...problems, ...(await findTaken(db, accounts))]);
    }
    // The ledger may not know an address that was added after the backup, but payers may still be about to pay it.
    if (!isFresh && (await wasEverRestored(db)))
      throw conflict`${NOTHING_ADDED}, because this ledger was restored from a backup. It lacks the addresses that were added after that backup, and you must never add those addresses again. If none of the addresses in your list was used before, run the command again with ${{ field: 'isFresh' }}; otherwise use new addresses from your wallet`;
    const { policy, projectPolicy, change } = await db.transaction(async (tx) => {
      const project = await lockProject(tx, projectId);
      const policy = given ?? project.policy;
      const done = { policy, projectPolicy: project.policy };
      const addresses = good.map(({ address }) => address);
      if (!mustWait(actor, deps, { project, addresses }) || !(await hasAddresses(tx, projectId))) {
        await insertAll(tx, deps, actor, { projectId, policy, good, findTaken });
        return { ...done, change: null };
      }
      const taken = await findTaken(tx, accounts);
      if (taken.length > 0) throw refusedAddresses(NOTHING_ADDED, taken, 'CONFLICT');
      const change = await proposeChange(tx, deps, actor, { project, policy, addresses, derivation: null });
      return { ...done, change };
    });
    const about = { projectId: encodeId('prj', projectId), network, policy };
    const activation = isChecked ? await checkActivation(withNodesOf(deps, network), good) : null;
    if (change !== null) return { kind: 'proposed', view: { ...about, proposed: change, activation }, projectPolicy };
    const added = good.map(({ address }) => address);
    return { kind: 'added', view: { ...about, added, activation }, projectPolicy };
  },
  print: ({ projectPolicy, ...outcome }) => {
    const { view } = outcome;
    const addresses = outcome.kind === 'added' ? outcome.view.added : outcome.view.proposed.addresses;
    return {
      text: addresses.map((address) => `${outcome.kind} ${address}`).join('\n'),
      next: [
        outcome.kind === 'proposed' && waitNote(outcome.view.proposed),
        ...otherPolicyNote(view, view.policy, projectPolicy),
        ...(view.activation === null ? [] : describeActivation(view.activation, addresses.length)),
      ],
    };
  },
});

function waitNote({ changeId, dueAt }: { changeId: string; dueAt: string }): Text {
  return say`the addresses are not in use yet: they are added at ${dueAt}, or when another owner confirms ${changeId} in the console. To withdraw them: "${{ command: 'address withdraw', args: [changeId] }}"`;
}

type FindTaken = (sql: Sql, accounts: readonly AccountHex[]) => Promise<FieldProblem[]>;
type NewAddresses = { projectId: string; policy: Policy; good: readonly Candidate[]; findTaken: FindTaken };

async function insertAll(
  tx: Sql,
  { now, random }: AddDeps,
  actor: Actor,
  { projectId, policy, good, findTaken }: NewAddresses,
): Promise<void> {
  const actedAt = now();
  const entries = good.map((candidate) => ({ ...candidate, id: uuidV7(actedAt, random(10)), index: null }));
  const added = new Set(await insertAddresses(tx, { projectId, policy, accountKeyId: null, entries }));
  const left = good.filter(({ address }) => !added.has(address)).map(({ account }) => account);
  if (left.length > 0) throw refusedAddresses(NOTHING_ADDED, await findTaken(tx, left), 'CONFLICT');
  const done = { projectId, action: 'address.added', detail: { policy } } as const;
  const actions = good.map(({ address }) => ({ ...done, subject: address }));
  await recordActions(tx, actor, actedAt, actions);
}

const withNodesOf =
  ({ config, nodes }: AddDeps, network: Network): WithNodes =>
  async (ask) => {
    const isConfigured = config.sandbox ? network === 'devnet' : config.networks[network] !== undefined;
    if (!isConfigured || nodes === undefined) throw new Error(`no ${network} node is configured here`);
    const { withNodes } = await nodes();
    return withNodes(network, ({ pool }) => ask(pool));
  };

function takenProblem({ address, projectId, retiredAt, barredAt }: OwnedAddress, wantedBy: string, actor: Actor) {
  const other = maySee(actor, projectId) ? ` (${encodeId('prj', projectId)})` : '';
  const message =
    projectId !== wantedBy
      ? `${address} belongs to another project${other}: an address can never move between projects, so use a different address`
      : retiredAt === null
        ? `${address} is already in this project: leave it out`
        : barredAt !== null
          ? `${address} was in this project before a backup was restored, and can never get a new invoice: add another address`
          : say`${address} is already in this project but retired: to use it again, run "${{ command: 'address activate', args: [address] }}"`;
  return { subject: address, message };
}

/** `unchanged` lists the addresses that already had the status. */
const switched = {
  ...{ projectId: text, status: choice(['active', 'retired']), changed: addresses, unchanged: addresses },
  activeAddresses,
};
export type SwitchedAddressesView = Shown<typeof switched>;
/** `otherPolicy` is set if a changed address has a policy other than the project's. */
type Switched = { view: SwitchedAddressesView; projectPolicy: Policy; otherPolicy: Policy | null };
type Switching = { projectId: string | undefined; addresses: readonly Candidate[]; note: string | null };

const input = Type.Object({
  projectId: projectId(),
  entries: entries('<addresses...>', 'T…; "-" reads standard input'),
  note: line('<text>', 'reason (recorded in the audit log)'),
});
const switching = {
  ...{ by: { ...BY, before: 'note' }, input, output: schemaOf(switched) },
  read: ({ projectId, entries, note }: Given<Static<typeof input>>): Switching => {
    const problems: FieldProblem[] = [];
    const text = readNote(note, problems);
    const { good: addresses, problems: wrong } = readCandidates(entries, []);
    problems.push(...wrong);
    if (problems.length > 0) throw refusedAddresses('no address was changed', problems);
    return { projectId, addresses, note: text || null };
  },
};

/** Retires all of these addresses or none. Can be repeated safely. */
export const retireAddresses = operation({
  ...switching,
  action: 'retireAddresses',
  summary: 'Stop using addresses for new invoices; Quittance watches payments to them permanently',
  route: 'POST /addresses/retire',
  command: 'address retire',
  run: (deps: Pick<OperationDeps, 'db' | 'now'>, actor, wanted) => switchAddresses(deps, actor, wanted, 'retired'),
  print: ({ view, projectPolicy }) => {
    return printSwitched(view, 'retired', [
      view.changed.length > 0 && 'the addresses get no new invoices; Quittance watches payments to them permanently',
      view.activeAddresses[projectPolicy] === 0 &&
        `warning: no active address with the policy ${projectPolicy} is left, so every new invoice is refused (AMOUNT_UNAVAILABLE): add or activate an address`,
    ]);
  },
});

/** Activates all of these addresses or none. They may be retired, or have been frozen and later released by Tether. */
export const activateAddresses = operation({
  ...switching,
  action: 'activateAddresses',
  summary: 'Use retired or frozen addresses for new invoices again',
  route: 'POST /addresses/activate',
  command: 'address activate',
  run: (deps: Pick<OperationDeps, 'db' | 'now'>, actor, wanted) => switchAddresses(deps, actor, wanted, 'active'),
  print: ({ view, projectPolicy, otherPolicy }) =>
    printSwitched(view, 'activated', otherPolicyNote(view, otherPolicy ?? projectPolicy, projectPolicy)),
});

function printSwitched(view: SwitchedAddressesView, verb: string, next: NonNullable<Printed['next']>) {
  const lines = [
    ...view.changed.map((address) => `${verb} ${address}`),
    ...view.unchanged.map((address) => `${address} was already ${view.status}`),
  ];
  return { text: lines.join('\n'), next };
}

async function switchAddresses(
  { db, now }: Pick<OperationDeps, 'db' | 'now'>,
  actor: Actor,
  { addresses, note, ...input }: Switching,
  status: 'retired' | 'active',
): Promise<Switched> {
  const { id: projectId } = await selectProject(db, actor, input.projectId);
  return db.transaction(async (tx) => {
    const { network, policy: projectPolicy } = await lockProject(tx, projectId);
    const accounts = addresses.map(({ account }) => account);
    const own = (await findAddresses(tx, network, accounts)).filter((each) => each.projectId === projectId);
    const known = new Set(own.map(({ address }) => address));
    refuse(
      addresses.filter(({ address }) => !known.has(address)),
      say`is not in this project: list its addresses with "${{ command: 'address list' }}"`,
      'NOT_FOUND',
    );
    if (status === 'active') {
      refuse(
        own.filter(({ barredAt }) => barredAt !== null),
        'was in use before a backup was restored. Payers may still send it amounts that this ledger does not know, so this address can never get a new invoice. Add another address (docs/guides/backup.md)',
        'CONFLICT',
      );
      refuse(
        own.filter(({ freezeState }) => freezeState === 'seen' || freezeState === 'frozen'),
        'is frozen by Tether, so money it receives cannot be moved. You can activate it when Tether unfreezes it',
        'CONFLICT',
      );
    }
    const actedAt = now();
    const ids = own.map(({ id }) => id);
    const marked = status === 'retired' ? await markRetired(tx, ids, actedAt) : await markInUse(tx, ids);
    const [changed, unchanged] = [own.filter(({ id }) => marked.has(id)), own.filter(({ id }) => !marked.has(id))];
    const action = status === 'retired' ? 'address.retired' : 'address.activated';
    const detail = note === null ? {} : { note };
    const activeAddresses = (await countAddresses(tx, projectId)).active;
    const done = changed.map(({ address }) => ({ projectId, action, subject: address, detail }) as const);
    await recordActions(tx, actor, actedAt, done);
    const view = {
      ...{ projectId: encodeId('prj', projectId), status },
      changed: changed.map(({ address }) => address),
      unchanged: unchanged.map(({ address }) => address),
      activeAddresses,
    };
    return { view, projectPolicy, otherPolicy: changed.find(({ policy }) => policy !== projectPolicy)?.policy ?? null };
  });
}

function refuse(addresses: readonly { address: string }[], reason: Text, code: 'NOT_FOUND' | 'CONFLICT'): void {
  if (addresses.length === 0) return;
  const problems = addresses.map(({ address }) => ({ subject: address, message: say`${address} ${reason}` }));
  throw refusedAddresses('no address was changed', problems, code);
}

export const operations = [addAddresses, listAddresses, retireAddresses, activateAddresses] as const;
