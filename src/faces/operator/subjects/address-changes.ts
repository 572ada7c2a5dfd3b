import type { AccountHex, TronAddress } from '@quittance/tron/address';
import { DEVNET_CONTRACTS, USDT_CONTRACTS } from '@quittance/tron/usdt';
import { type AppError, conflict, invalidArgument } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { NETWORKS, type Network } from '../../../core/domain/network.ts';
import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { DAY_MS, toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import {
  type AddressChange,
  applyAddressChange,
  digestOfChange,
  endAddressChange,
  findAddressChange,
  findWaitingChanges,
  insertAddressChange,
  findAddressChanges as rowsOf,
  settleChangeAlarm,
} from '../../../core/payments/apply-address-change.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_ACTION } from '../../../core/store/db/sealed-tables.ts';
import { count, isAsSealed, json, listColumns, sealed, text as textOf } from '../../../core/store/db/statement.ts';
import { lockProject, type Project } from '../../../core/store/ledger/projects.ts';
import { type Actor, maySee, ROLES } from '../actor.ts';
import { columnsText } from '../command-words.ts';
import { choice, id, listOf, maybe, of, part, type Shown, schemaOf, show, text, texts, time } from '../fields.ts';
import { noSuch, readId } from '../input/readers.ts';
import { localOperation, type OperationDeps, operation, type Vouching } from '../operation.ts';
import { argument, BY, projectId } from '../option.ts';
import { recordActions, recordedActor } from '../record-actions.ts';
import { selectProject } from '../select.ts';

/**
 * A pending or finished addition of addresses. `derivationIndexes` has each address's index, from 0; `null` if the addresses were given.
 * `origin` is where it was proposed from; owners see it. `reason` is why it failed.
 */
const shown = {
  ...{ changeId: of('id', id('chg')), projectId: id('prj'), network: choice(NETWORKS) },
  ...{ state: choice(['waiting', 'applied', 'withdrawn', 'failed']), policy: choice(POLICIES), addresses: texts },
  derivationIndexes: {
    ...{ of: 'derivation', schema: maybe({ schema: Type.Array(Type.Integer()), show: () => null }).schema },
    show: (derivation: AddressChange['derivation']) => derivation && [...derivation.indexes],
  },
  proposedBy: of('*', part({ kind: of('actorKind', choice(['console', 'admin'])), name: of('actedBy', text) })),
  ...{ origin: maybe(text), proposedAt: time, dueAt: time },
  ...{ endedAt: maybe(time), endedBy: maybe(text), reason: maybe(text) },
};
export type AddressChangeView = Shown<typeof shown>;
export const changeSchema = schemaOf(shown);

const viewChange = (change: AddressChange, { role }: Pick<Actor, 'role'>): AddressChangeView =>
  show(shown, { ...change, origin: role === 'owner' ? change.origin : null });

const CHANGE = ['<change>', 'chg_…'] as const;

/** Lists a project's pending changes and its 20 most recently finished ones, newest first. Throws `NOT_FOUND` or `INVALID_ARGUMENT`. */
export const listAddressChanges = operation({
  action: 'listAddressChanges',
  summary: 'List pending address additions, and recently finished additions',
  route: 'GET /address-changes',
  command: 'address pending',
  does: 'list address additions from the console or the admin API that are waiting for confirmation',
  input: Type.Object({ projectId: projectId() }),
  output: listOf(shown, { projectId: Type.String() }),
  run: async ({ db }: { db: Sql }, actor, { projectId }) => {
    const { id } = await selectProject(db, actor, projectId);
    return { projectId: encodeId('prj', id), data: (await rowsOf(db, id)).map((change) => viewChange(change, actor)) };
  },
  // Prints each address on its own line so that people can compare it with a wallet.
  print: ({ data }) => ({
    text: columnsText(
      data.flatMap((change) => change.addresses.map((address) => ({ ...change, address }))),
      [
        ['CHANGE', 'changeId'],
        ['ADDRESS', 'address'],
        ['POLICY', 'policy'],
        ['STATE', 'state'],
        ['PROPOSED BY', ({ proposedBy: { kind, name } }) => `${name} (${kind})`],
        ['AT', 'proposedAt'],
        ['ADDED AT', ({ dueAt, state }) => (state === 'waiting' ? dueAt : '')],
        ['ENDED', ({ endedAt, endedBy }) => (endedAt === null ? '' : `${endedAt} by ${endedBy}`)],
      ],
    ),
    next: data.some(({ state }) => state === 'waiting')
      ? say`if the addresses are yours, have another owner confirm them in the console, or run "${{ command: 'address confirm', args: ['chg_…'] }}". If not, run "${{ command: 'address withdraw', args: ['chg_…'] }}" and find out who proposed them`
      : 'no additions are pending',
  }),
});

/** Shows a change, and why this actor may not confirm it (`null` if it may). Throws `NOT_FOUND` or `INVALID_ARGUMENT`. */
export const showAddressChange = operation({
  action: 'showAddressChange',
  summary: 'Show a pending address addition',
  route: 'GET /address-changes/:changeId',
  input: Type.Object({ changeId: argument(...CHANGE, 'chg_…') }),
  output: changeSchema,
  run: async (deps: { db: Sql; now(): UnixMs }, actor, { changeId }) => {
    const change = await selectChange(deps.db, actor, changeId);
    return { view: viewChange(change, actor), refusal: await findRefusal(deps, actor, change) };
  },
});

/**
 * Adds a change's addresses at once. Requires an owner other than the person who proposed it, or someone who runs commands here, because
 * that person can change the database anyway. `passedOver` lists addresses that were added to the project in the meantime. Throws
 * `INVALID_ARGUMENT`, `NOT_FOUND` or `CONFLICT`.
 */
export const confirmAddressChange = localOperation({
  action: 'confirmAddressChange',
  command: 'address confirm',
  does: 'confirm a pending addition and add its addresses now',
  by: BY,
  input: Type.Object({ changeId: argument(...CHANGE) }),
  run: async (
    deps: Pick<OperationDeps, 'db' | 'now' | 'random'> & { config: Pick<OperationDeps['config'], 'networks'> },
    actor,
    { changeId },
  ) => {
    const { db } = deps;
    const found = await selectChange(db, actor, changeId);
    if (found.state !== 'waiting') throw hasEnded(found);
    const refusal = await findRefusal(deps, actor, found);
    if (refusal !== null) throw conflict`${encodeId('chg', found.id)} was not confirmed: ${refusal}`;
    const cause = { kind: 'confirmed', actor: recordedActor(actor) } as const;
    const outcome = await applyAddressChange({ ...deps, contracts: usdtContracts(deps.config) }, found.id, cause);
    const change = await selectChange(db, actor, changeId);
    if (outcome.kind === 'none') throw hasEnded(change);
    if (outcome.kind === 'failed')
      throw conflict`no address was added, and ${changeId} is closed: ${outcome.reason}. If the addresses are yours, propose them again with "${{ command: 'address add' }}"`;
    return { change: viewChange(change, actor), added: outcome.added, passedOver: outcome.passedOver };
  },
  print: ({ added, passedOver }) => ({
    text: [
      ...added.map((address) => `added ${address}`),
      ...passedOver.map((address) => `skipped ${address}: it is already in the project`),
    ].join('\n'),
  }),
});

export const withdrawAddressChange = operation({
  action: 'withdrawAddressChange',
  summary: 'Withdraw a pending addition; its addresses are not added',
  route: 'POST /address-changes/:changeId/withdraw',
  command: 'address withdraw',
  by: BY,
  input: Type.Object({ changeId: argument(...CHANGE, 'chg_…') }),
  output: changeSchema,
  run: async ({ db, now }: { db: Database; now(): UnixMs }, actor, { changeId }) => {
    const { id, projectId, addresses } = await selectChange(db, actor, changeId);
    return db.transaction(async (tx) => {
      const project = await lockProject(tx, projectId);
      const at = now();
      const isEnded = await endAddressChange(tx, id, { state: 'withdrawn', at, by: actor.name });
      const change = await selectChange(tx, actor, changeId);
      if (!isEnded) throw hasEnded(change);
      await settleChangeAlarm(tx, project);
      const detail = { change: encodeId('chg', id), proposedBy: change.actedBy };
      const done = addresses.map((subject) => ({ projectId, action: 'address.withdrawn', subject, detail }) as const);
      await recordActions(tx, actor, at, done);
      return viewChange(change, actor);
    });
  },
  print: ({ addresses }) => ({ text: addresses.map((address) => `withdrawn ${address}`).join('\n') }),
});

/** Finds the change with this id (`chg_…`). Throws `INVALID_ARGUMENT` or `NOT_FOUND`. */
async function selectChange(db: Sql, actor: Actor, changeId: string): Promise<AddressChange> {
  const change = await findAddressChange(db, readId('chg', changeId));
  if (change !== null && maySee(actor, change.projectId)) return change;
  throw noSuch('chg', changeId);
}

/** The error for an action that requires a pending change. */
function hasEnded(change: AddressChange): AppError {
  const at = change.endedAt === null ? '' : ` by ${change.endedBy} at ${toIso(change.endedAt)}`;
  return conflict`${encodeId('chg', change.id)} was ${ENDED[change.state]}${at}: it is no longer pending`;
}

const ENDED: Readonly<Record<AddressChange['state'], string>> = {
  ...{ waiting: 'waiting', applied: 'applied', withdrawn: 'withdrawn', failed: 'rejected as impossible' },
};

/**
 * A session's longest lifetime. A new owner may confirm only after this time. By then, a stolen session that invited the owner has ended.
 */
const SETTLED_MS = 7 * DAY_MS;

const maker = {
  actorKind: textOf<'cli' | 'console' | 'admin' | 'service' | 'key'>(),
  actorId: 'uuid?',
  seal: sealed(SEALED_ACTION),
} as const;

const findMaker = rowOf(
  'address-change-key-maker',
  maker,
  `select ${listColumns(maker)} from operator_actions where subject = $1 and action = 'admin-key.created'`,
  (adminKeyId: string) => [adminKeyId],
);

const granted = {
  seq: count,
  actorKind: maker.actorKind,
  actedAt: 'timestamptz',
  // The role of an invited or reset person, or someone's new role.
  detail: json<{ role?: string; to?: string }>(),
  isSound: isAsSealed(SEALED_ACTION),
} as const;

/**
 * Searches the newest 100 entries for the entry that gave a person their role, beginning with the newest. Returns nothing if no entry
 * mentions it.
 */
const findGrants = answerOf(
  'address-change-new-owner',
  granted,
  `select ${listColumns(granted, '', { isSound: sealColumn(SEALED_ACTION, '') })} from operator_actions
   where subject = $1 and action in ('user.invited', 'user.reset', 'user.changed') order by seq desc limit 100`,
  (personId: string) => [personId],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/**
 * Whether the audit log shows that the person has been an owner since then, or was made one by a command. Tampered entries don't count, so
 * the newest intact entry must say that the person is an owner.
 */
async function isSettled(db: Sql, personId: string, since: UnixMs): Promise<boolean> {
  const grants = await findGrants(db, personId);
  const role = grants[0]?.detail.to ?? grants[0]?.detail.role;
  return role === 'owner' && grants.every(({ actorKind, actedAt }) => actorKind === 'cli' || actedAt <= since);
}

/**
 * Returns why an actor may not confirm a change, or `null` if the actor may. The actor must be an independent owner: neither the one who
 * proposed the change, nor the creator of the key that did, nor anyone whom either of them could have made an owner just for this. This
 * restriction doesn't apply to commands on the machine.
 */
async function findRefusal({ db, now }: { db: Sql; now(): UnixMs }, { kind, id, role }: Actor, change: AddressChange) {
  if (change.state !== 'waiting') return 'this change is no longer pending';
  if (kind === 'cli') return null;
  const otherwise = `otherwise the addresses are added at ${toIso(change.dueAt)}`;
  if (kind === 'admin' || id === null)
    return `an owner must confirm this change in the console with a second factor; ${otherwise}`;
  if (ROLES.indexOf(role) < ROLES.indexOf('owner')) return `only an owner can confirm this change; ${otherwise}`;
  if (change.actorKind === 'console' && change.actorId === id) {
    return `you proposed this change, so another owner must confirm it; ${otherwise}`;
  }
  if (change.actorKind === 'admin') {
    const made = await findMaker(db, encodeId('adm', change.actorId));
    if (made?.actorId === id)
      return `you created the key that proposed this change, so another owner must confirm it; ${otherwise}`;
    if (made?.actorKind !== 'console' && made?.actorKind !== 'cli') {
      return `the key that proposed this change was not created by a person, so no one can confirm it; ${otherwise}`;
    }
  }
  if (!(await isSettled(db, encodeId('usr', id), unixMs(now() - SETTLED_MS)))) {
    return `another owner must confirm this change, because your account, its sign-in methods or its role are less than seven days old, or the audit log does not record how you became an owner; ${otherwise}`;
  }
  return null;
}

/** How long a change waits for another owner, who may never see it. */
const WAIT_MS = DAY_MS;
/** The maximum number of addresses in a change, because a person reviews them all. */
export const MAX_PROPOSED = 500;
const MAX_WAITING = 20;

/**
 * Whether additions by this actor may have to wait, in a project that already has an address. Anyone who runs commands here can change the
 * database anyway.
 */
export function mayWait({ kind }: Pick<Actor, 'kind'>, config: { sandbox: boolean }): boolean {
  return kind !== 'cli' && !config.sandbox;
}

/**
 * Whether these addresses must wait. Addresses in the manifest in force don't have to wait: they were signed for this project with keys
 * that a stolen session doesn't have.
 */
export function mustWait(
  actor: Pick<Actor, 'kind'>,
  { config, addressGuard }: { config: { sandbox: boolean }; addressGuard: Pick<Vouching, 'vouchesFor'> },
  { project: { id: projectId, network }, addresses }: Pick<Proposed, 'addresses'> & { project: ProjectOf },
): boolean {
  if (!mayWait(actor, config)) return false;
  return !addresses.every((address) => addressGuard.vouchesFor({ network, projectId, address }));
}

type ProjectOf = Pick<Project, 'id' | 'network'>;
type Proposed = {
  policy: Policy;
  addresses: readonly TronAddress[];
  derivation: AddressChange['derivation'];
};

/**
 * Makes addresses wait for another owner or a day, in a transaction that holds the project's lock. Raises the alarm about it. Throws
 * `INVALID_ARGUMENT` or `CONFLICT`.
 */
export async function proposeChange(
  tx: Sql,
  { now, random }: Pick<OperationDeps, 'now' | 'random'>,
  actor: Actor,
  { project, ...wanted }: Proposed & { project: ProjectOf },
): Promise<AddressChangeView> {
  const { kind, id: actorId } = actor;
  if (kind === 'cli' || kind === 'key' || actorId === null)
    throw new Error(`additions by ${actor.name} need no confirmation`);
  const { addresses, policy, derivation } = wanted;
  refuseTooMany(addresses.length);
  refuseWaiting(await findWaitingChanges(tx, project.id), addresses);
  const proposedAt = now();
  const id = uuidV7(proposedAt, random(10));
  const dueAt = unixMs(proposedAt + WAIT_MS);
  await insertAddressChange(tx, {
    ...{ id, projectId: project.id, network: project.network, policy, addresses, derivation },
    ...{ actorKind: kind, actorId, actedBy: actor.name, origin: actor.origin, proposedAt, dueAt },
  });
  await settleChangeAlarm(tx, project);
  const change = await findAddressChange(tx, id);
  if (change === null) throw new Error(`${encodeId('chg', id)} disappeared, although changes are never deleted`);
  const detail = { change: encodeId('chg', id), policy, dueAt: toIso(dueAt), digest: digestOfChange(change) };
  const done = addresses.map((subject, position) => {
    const index = derivation?.indexes[position];
    return {
      ...({ projectId: project.id, action: 'address.proposed', subject } as const),
      detail: index === undefined ? detail : { ...detail, index },
    };
  });
  await recordActions(tx, actor, proposedAt, done);
  return viewChange(change, actor);
}

function refuseTooMany(count: number): void {
  if (count <= MAX_PROPOSED) return;
  throw invalidArgument`${count} addresses were given, but at most ${MAX_PROPOSED} can wait for review at a time: use fewer addresses, or add them with the command on the server`;
}

function refuseWaiting(waiting: readonly AddressChange[], addresses: readonly TronAddress[]): void {
  if (waiting.length >= MAX_WAITING)
    throw conflict`no address was added, because ${waiting.length} changes to this project are already pending. Confirm or withdraw them: "${{ command: 'address pending' }}"`;
  const wanted = new Set<string>(addresses);
  for (const { id, addresses: others } of waiting) {
    const twice = others.find((address) => wanted.has(address));
    if (twice === undefined) continue;
    throw conflict`no address was added, because ${twice} is already pending in ${encodeId('chg', id)}. Confirm or withdraw that change: "${{ command: 'address pending' }}"`;
  }
}

export const operations = [listAddressChanges, confirmAddressChange, withdrawAddressChange, showAddressChange];

/** Every USDT contract, including devnet's fake one and those on the configured networks. None of them is a wallet address. */
export function usdtContracts({ networks }: { networks: Partial<Record<Network, { usdt: AccountHex }>> }) {
  return [
    ...[USDT_CONTRACTS.mainnet.account, USDT_CONTRACTS.nile.account, DEVNET_CONTRACTS.usdt, DEVNET_CONTRACTS.fakeUsdt],
    ...Object.values(networks).map(({ usdt }) => usdt),
  ];
}
