import { createHash } from 'node:crypto';
import type { AccountXpub } from '@quittance/tron/account-xpub';
import { type AccountHex, parseAddress, type TronAddress } from '@quittance/tron/address';
import { decodeId, encodeId, uuidV7 } from '../domain/ids.ts';
import type { Network } from '../domain/network.ts';
import type { Policy } from '../domain/policy.ts';
import type { RecordedAction } from '../domain/recorded-action.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import {
  BY_ITSELF,
  findActionsSince,
  insertOperatorActions,
  type OperatorAction,
  type RecordedActor,
} from '../store/access/audit-log.ts';
import { findAlarmSubjects, raiseAlarm, resolveAlarms } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { answerOf, attemptOf, commandOf, rowsOf } from '../store/db/rows-of.ts';
import { sealColumn } from '../store/db/seal.ts';
import { SEALED_ADMIN_KEY, SEALED_PERSON } from '../store/db/sealed-tables.ts';
import { isAsSealed, listColumns, maybeText, type Row, text } from '../store/db/statement.ts';
import { findAccountKey, findFirstIndex, insertAccountKey } from '../store/ledger/account-keys.ts';
import { findAddresses, insertAddresses } from '../store/ledger/addresses.ts';
import { lockProject, type Project } from '../store/ledger/projects.ts';
import { guardWhileLeading, type Leading, whileLeading } from './watching.ts';

const columns = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  kind: text<'add' | 'derive'>(),
  policy: text<Policy>(),
  addresses: 'text[]',
  firstIndex: 'int4',
  indexes: 'int8[]?',
  xpub: maybeText<AccountXpub>(),
  keyFirstIndex: 'int4?',
  autoDeriveLimit: 'int4?',
  actorKind: text<'console' | 'admin'>(),
  actorId: 'uuid',
  actedBy: 'text',
  origin: 'text?',
  proposedAt: 'timestamptz',
  dueAt: 'timestamptz',
  state: text<'waiting' | 'applied' | 'withdrawn' | 'failed'>(),
  endedAt: 'timestamptz?',
  endedBy: 'text?',
  reason: 'text?',
} as const;
const COLUMNS = listColumns(columns);

/** The account key that the addresses are derived from, and the settings that a new key is stored with. */
type Derivation = { xpub: AccountXpub; keyFirstIndex: number; autoDeriveLimit: number; indexes: readonly number[] };

/**
 * A pending or finished addition of addresses. `firstIndex` is the ledger's value at the time of the proposal; a restore increases it.
 * `derivation` is `null` if the addresses were given explicitly.
 */
export type AddressChange = Omit<
  Row<typeof columns>,
  'addresses' | 'kind' | 'indexes' | 'xpub' | 'keyFirstIndex' | 'autoDeriveLimit'
> & { addresses: readonly TronAddress[]; derivation: Derivation | null };

/** The addresses were parsed when the change was proposed, and never change afterwards. */
function readChange(row: Row<typeof columns>): AddressChange {
  const { kind: _, addresses, indexes, xpub, keyFirstIndex, autoDeriveLimit, ...change } = row;
  const isDerived = indexes !== null && xpub !== null && keyFirstIndex !== null && autoDeriveLimit !== null;
  return {
    ...change,
    addresses: addresses as TronAddress[],
    derivation: isDerived ? { xpub, keyFirstIndex, autoDeriveLimit, indexes: indexes.map(Number) } : null,
  };
}

type NewAddressChange = Omit<AddressChange, 'firstIndex' | 'state' | 'endedAt' | 'endedBy' | 'reason'>;

/** Stores a pending change. */
export const insertAddressChange = commandOf(
  'address-change-insert',
  `insert into address_changes (id, project_id, network, kind, policy, addresses, first_index, indexes, xpub, key_first_index,
     auto_derive_limit, actor_kind, actor_id, acted_by, origin, proposed_at, due_at)
   values ($1, $2, $3, $4, $5, $6, coalesce((select first_index from ledger_identity), 0), $7::int8[], $8, $9, $10, $11, $12, $13, $14,
     $15, $16)`,
  ({ derivation, ...change }: NewAddressChange) => [
    ...[change.id, change.projectId, change.network, derivation === null ? 'add' : 'derive', change.policy],
    ...[change.addresses, derivation?.indexes.map(BigInt) ?? null, derivation?.xpub ?? null],
    ...[derivation?.keyFirstIndex ?? null, derivation?.autoDeriveLimit ?? null],
    ...[change.actorKind, change.actorId, change.actedBy, change.origin],
    ...[new Date(change.proposedAt), new Date(change.dueAt)],
  ],
);

/**
 * Returns a digest of the whole change. The audit log contains the digest under a seal, so that a change that someone inserted directly
 * into the table is ignored.
 */
export function digestOfChange({ state: _, endedAt, endedBy, reason, ...change }: AddressChange): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(change).sort()))
    .digest('hex');
}

const readChanges = (rows: Row<typeof columns>[]) => rows.map(readChange);

export const findAddressChange = answerOf(
  'address-change-find',
  columns,
  `select ${COLUMNS} from address_changes where id = $1`,
  (id: string) => [id],
  ([row]) => (row === undefined ? null : readChange(row)),
);

/** Returns a project's pending changes and the 20 most recently ended ones, newest first. */
export const findAddressChanges = answerOf(
  'address-change-list',
  columns,
  `(select ${COLUMNS} from address_changes where project_id = $1 and state = 'waiting')
   union all
   (select ${COLUMNS} from address_changes where project_id = $1 and state <> 'waiting' order by id desc limit 20)
   order by id desc`,
  (projectId: string) => [projectId],
  readChanges,
);

/** Returns a project's pending changes, oldest first. */
export const findWaitingChanges = answerOf(
  'address-change-waiting',
  columns,
  `select ${COLUMNS} from address_changes where project_id = $1 and state = 'waiting' order by id`,
  (projectId: string) => [projectId],
  readChanges,
);

/** Returns a network's oldest 1,000 pending changes, without their addresses. */
const listWaitingOfNetwork = rowsOf(
  'address-change-waiting-of-network',
  { id: 'uuid', projectId: 'uuid' },
  `select id, project_id from address_changes where network = $1 and state = 'waiting' order by due_at, id limit 1000`,
  (network: Network) => [network],
);

/** Returns the 100 changes of a network that have been due longest. */
const findDueChanges = answerOf(
  'address-change-due',
  { id: 'uuid' },
  `select id from address_changes where network = $1 and state = 'waiting' and due_at <= $2 order by due_at, id limit 100`,
  (network: Network, now: UnixMs) => [network, new Date(now)],
  (rows) => rows.map(({ id }) => id),
);

type AddressChangeEnd = { state: 'applied' | 'withdrawn' | 'failed'; at: UnixMs; by: string; reason?: string };

/** Ends a change. Returns `false` if the change has already ended. */
export const endAddressChange = attemptOf(
  'address-change-end',
  `update address_changes set state = $2, ended_at = $3, ended_by = $4, reason = $5 where id = $1 and state = 'waiting'`,
  (id: string, { state, at, by, reason }: AddressChangeEnd) => [id, state, new Date(at), by, reason ?? null],
);

const proposer = {
  isOwner: 'bool',
  isPersonSound: isAsSealed(SEALED_PERSON, { isOfOther: true }),
  isKeySound: isAsSealed(SEALED_ADMIN_KEY, { isOfOther: true }),
} as const;

/**
 * Whether the person who proposed a change is still an owner with a valid seal. If an API key proposed the change, that key must not be
 * revoked.
 */
const isProposerOwner = answerOf(
  'address-change-proposer',
  proposer,
  `select num_nonnulls(p.id, k.id) > 0 as is_owner, case when p.id is not null then ${sealColumn(SEALED_PERSON, 'p.')} end as is_person_sound,
     case when k.id is not null then ${sealColumn(SEALED_ADMIN_KEY, 'k.')} end as is_key_sound
   from address_changes c
     left join people p on c.actor_kind = 'console' and p.id = c.actor_id and p.role = 'owner' and p.removed_at is null
     left join admin_keys k on c.actor_kind = 'admin' and k.id = c.actor_id and k.role = 'owner' and k.revoked_at is null
   where c.id = $1`,
  (id: string) => [id],
  ([row]) => row?.isOwner === true && row.isPersonSound !== false && row.isKeySound !== false,
);

/** `contracts` contains the USDT contracts, because their addresses are never wallets. */
type ApplyDeps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  contracts: readonly AccountHex[];
};

/** A change is applied either because its delay has passed or because someone confirmed it. */
type Cause = { kind: 'due' } | { kind: 'confirmed'; actor: RecordedActor };

type Applied =
  /** `passedOver` contains the addresses that were added to the project in some other way in the meantime. */
  | { kind: 'applied'; change: AddressChange; added: TronAddress[]; passedOver: TronAddress[] }
  /** Nothing was added, and the change is over. `detail` is its alarm's text. */
  | { kind: 'failed'; change: AddressChange; reason: string; detail: string }
  /** The change was already over, or isn't due yet. */
  | { kind: 'none' };

/** An attempt is repeated only if another project has added one of the addresses in the meantime. */
const MAX_ATTEMPTS = 5;

/**
 * Adds all addresses of a pending change, or none, and ends the change. Audit rows and alarms are written in the same transaction, which
 * holds the project's lock. All checks of the proposal are repeated. `id` is the change's UUID.
 */
export async function applyAddressChange(deps: ApplyDeps, id: string, cause: Cause): Promise<Applied> {
  const known = await findAddressChange(deps.db, id);
  if (known === null) return { kind: 'none' };
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    try {
      return await deps.db.transaction(async (tx) => {
        await lockProject(tx, known.projectId);
        const change = await findAddressChange(tx, id);
        const actedAt = deps.now();
        if (change?.state !== 'waiting' || (cause.kind === 'due' && change.dueAt > actedAt)) return { kind: 'none' };
        const reason = await findProblem(tx, deps, change, cause);
        return reason === null
          ? add(tx, deps, change, { cause, actedAt })
          : fail(tx, change, { cause, actedAt, reason });
      });
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }
  throw new Error(
    `in each of ${MAX_ATTEMPTS} attempts, another project added addresses from ${encodeId('chg', id)} first`,
  );
}

class Overtaken extends Error {}

/** Returns why a change can no longer be applied, or `null` if it still can. */
async function findProblem(
  tx: Sql,
  { contracts, db }: ApplyDeps,
  change: AddressChange,
  cause: Cause,
): Promise<string | null> {
  const { projectId, network, policy, addresses, derivation } = change;
  if ((await findFirstIndex(tx)) !== change.firstIndex)
    return 'the ledger was restored after the addresses were proposed';
  const unrecorded = await findUnrecorded(tx, change, cause);
  if (unrecorded !== null) return unrecorded;
  const accounts = addresses.map(accountOf);
  const contract = addresses.find((_, index) => contracts.some((each) => each === accounts[index]));
  if (contract !== undefined) return `${contract} is the USDT contract itself`;
  // Someone who confirms a change can sign its addresses and confirm again, so for them the addition itself fails, and the change stays.
  const lacks = cause.kind === 'due' ? addresses.map((address) => db.refuseNew({ network, projectId, address })) : [];
  const unsigned = lacks.findIndex((lack) => lack !== null);
  if (unsigned !== -1) return `${addresses[unsigned]} has to be signed first: ${lacks[unsigned]}`;
  const owned = await findAddresses(tx, network, accounts);
  const foreign = owned.find((each) => each.projectId !== projectId);
  if (foreign !== undefined) return `${foreign.address} now belongs to another project`;
  const other = owned.find((each) => each.policy !== policy);
  if (other !== undefined) return `${other.address} is already in this project, with the policy ${other.policy}`;
  const key = derivation === null ? null : await findAccountKey(tx, network, derivation.xpub);
  return key !== null && key.projectId !== projectId
    ? 'the account key of these addresses now belongs to another project'
    : null;
}

const ENDS_TRUST: readonly RecordedAction[] = ['user.changed', 'user.reset', 'user.removed', 'admin-key.revoked'];

/**
 * Returns why the audit log doesn't confirm a change, or `null` if it does. An attacker who can write to the changes table still can't
 * write a sealed entry. The clocks of two processes may differ, so entry numbers decide the order.
 */
async function findUnrecorded(tx: Sql, change: AddressChange, cause: Cause): Promise<string | null> {
  const { id, addresses, actorKind, actorId } = change;
  const [proposer, changeId, digest] = [
    encodeId(actorKind === 'admin' ? 'adm' : 'usr', actorId),
    encodeId('chg', id),
    digestOfChange(change),
  ];
  const recorded = await findActionsSince(tx, 0, [proposer, ...addresses.slice(0, 1)], []);
  const isOfIt = ({ detail }: { detail: object }) => 'change' in detail && detail.change === changeId;
  const proposed = recorded.find(
    (one) => one.action === 'address.proposed' && isOfIt(one) && 'digest' in one.detail && one.detail.digest === digest,
  );
  if (proposed === undefined) {
    return 'the audit log has no matching proposal: an earlier release created the change, or the database was changed directly';
  }
  const later = recorded.filter(({ seq }) => seq > proposed.seq);
  if (later.some((one) => isOfIt(one) && one.action !== 'address.proposed'))
    return 'according to the audit log, the change has already ended';
  // A person who runs a command on this machine decides which proposals to trust.
  if (cause.kind === 'confirmed' && cause.actor.actorKind === 'cli') return null;
  if (
    later.some(({ subject, action }) => subject === proposer && ENDS_TRUST.includes(action)) ||
    !(await isProposerOwner(tx, id))
  ) {
    return 'the person or key that proposed the addresses was later removed, reset, revoked or given a different role';
  }
  return null;
}

function accountOf(address: TronAddress): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind === 'ok') return parsed.account;
  throw new Error(`an address change contains ${address}, which is not an address: ${parsed.reason}`);
}

type Doing = { cause: Cause; actedAt: UnixMs };

async function add(
  tx: Sql,
  { random }: ApplyDeps,
  change: AddressChange,
  { cause, actedAt }: Doing,
): Promise<Extract<Applied, { kind: 'applied' }>> {
  const { id, projectId, network, policy, addresses, derivation } = change;
  const newId = () => uuidV7(actedAt, random(10));
  let accountKeyId: string | null = null;
  if (derivation !== null) {
    const { xpub, keyFirstIndex: firstIndex, autoDeriveLimit } = derivation;
    await insertAccountKey(tx, { id: newId(), projectId, xpub, firstIndex, autoDeriveLimit });
    accountKeyId = (await findAccountKey(tx, network, xpub))?.id ?? null;
  }
  const owned = new Set(
    (await findAddresses(tx, network, addresses.map(accountOf))).map(({ address }) => address as string),
  );
  const entries = addresses.flatMap((address, position) => {
    const index = derivation?.indexes[position] ?? null;
    return owned.has(address) ? [] : [{ id: newId(), address, account: accountOf(address), index }];
  });
  const inserted = await insertAddresses(tx, { projectId, policy, accountKeyId, entries });
  if (inserted.length < entries.length) throw new Overtaken();
  const { actor, by } = actorOf(cause);
  await end(tx, change, { state: 'applied', at: actedAt, by });
  const changeId = encodeId('chg', id);
  const row = { ...actor, projectId, actedAt };
  await insertOperatorActions(tx, [
    ...(cause.kind === 'due'
      ? []
      : addresses.map(
          (subject): OperatorAction => ({
            ...row,
            action: 'address.confirmed',
            subject,
            detail: { change: changeId, proposedBy: change.actedBy },
          }),
        )),
    ...entries.map(({ address: subject, index }): OperatorAction => {
      const detail = { policy, change: changeId, proposedBy: change.actedBy };
      if (index === null) return { ...row, action: 'address.added', subject, detail };
      return { ...row, action: 'address.derived', subject, detail: { ...detail, index, accountKeyId } };
    }),
  ]);
  const added = entries.map(({ address }) => address);
  return { kind: 'applied', change, added, passedOver: addresses.filter((address) => owned.has(address)) };
}

async function fail(
  tx: Sql,
  change: AddressChange,
  { cause, actedAt, reason }: Doing & { reason: string },
): Promise<Extract<Applied, { kind: 'failed' }>> {
  const { id, projectId, addresses } = change;
  const { actor, by } = actorOf(cause);
  await end(tx, change, { state: 'failed', at: actedAt, by, reason });
  const detail = await raiseFailedChange(tx, change, reason);
  const recorded = { change: encodeId('chg', id), reason };
  await insertOperatorActions(
    tx,
    addresses.map((subject) => {
      return { ...actor, projectId, actedAt, action: 'address.failed', subject, detail: recorded };
    }),
  );
  return { kind: 'failed', change, reason, detail };
}

function actorOf(cause: Cause): { actor: RecordedActor; by: string } {
  const actor = cause.kind === 'due' ? BY_ITSELF : cause.actor;
  return { actor, by: actor.actedBy };
}

/** As long as this transaction holds the project's lock, no one else can end the change. */
async function end(tx: Sql, { id, projectId, network }: AddressChange, how: AddressChangeEnd): Promise<void> {
  if (!(await endAddressChange(tx, id, how)))
    throw new Error(`${encodeId('chg', id)} ended while the project was locked`);
  await settleChangeAlarm(tx, { id: projectId, network });
}

const PENDING = 'address-change-pending';
const FAILED = 'address-change-failed';

/** An alarm names at most this many changes and addresses. `quittance address pending` shows all of them. */
const MAX_CHANGES = 3;
const MAX_ADDRESSES = 3;

/**
 * Raises a project's alarm about pending address changes, or resolves the alarm if there are none. Call it in every transaction that
 * affects a change, so that every pending change has an alarm.
 */
export async function settleChangeAlarm(tx: Sql, { id, network }: Pick<Project, 'id' | 'network'>): Promise<void> {
  const subject = encodeId('prj', id);
  const waiting = await findWaitingChanges(tx, id);
  if (waiting.length === 0) {
    await resolveAlarms(tx, network, PENDING, subject);
    return;
  }
  const named = waiting.slice(0, MAX_CHANGES).map(describeChange);
  const more = waiting.length - named.length;
  const detail = `new addresses are pending for ${subject}: ${named.join('; ')}${more > 0 ? `; and ${more} more` : ''}. If they are not yours, withdraw them ("quittance address withdraw chg_…") and find out who proposed them. To list them all, run "quittance address pending --project ${subject}"`;
  await raiseAlarm(tx, network, { kind: PENDING, subject, detail });
}

/** Describes a change for alarms and the log: `chg_…: 2 addresses (T…, T…), proposed by ann (console), are added at 2026-…Z`. */
function describeChange({ id, addresses, actedBy, actorKind, dueAt }: AddressChange): string {
  const more = addresses.length - MAX_ADDRESSES;
  const named = `${addresses.slice(0, MAX_ADDRESSES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const [count, verb] = addresses.length === 1 ? ['1 address', 'is'] : [`${addresses.length} addresses`, 'are'];
  return `${encodeId('chg', id)}: ${count} (${named}), proposed by ${actedBy} (${actorKind}), ${verb} to be added at ${toIso(dueAt)}`;
}

/** Reports that a change couldn't be applied, in an alarm that an operator has to close. */
async function raiseFailedChange(tx: Sql, change: AddressChange, reason: string): Promise<string> {
  const { id, projectId, network } = change;
  const subject = encodeId('prj', projectId);
  const detail = `the addresses from ${encodeId('chg', id)} were not added to ${subject}: ${reason}. If they are yours, propose them again; then close this alarm with "quittance chain acknowledge --alarm ${FAILED} --network ${network} --subject ${subject}"`;
  await raiseAlarm(tx, network, { kind: FAILED, subject, detail });
  return detail;
}

type AddressChangeWatchDeps = Leading & {
  random(bytes: number): Uint8Array;
  usdt: AccountHex;
  certainNow(): UnixMs;
};

/** A change waits for a day, so a few seconds don't matter. The alarm was already raised when it was proposed. */
const PAUSE_MS = 5000;

/** Applies a network's due address changes and maintains their alarm, while this process is the leader. Runs until it's stopped. */
export function startAddressChangeWatch(options: AddressChangeWatchDeps): Loop {
  const { network, isLeader, usdt } = options;
  const deps = { ...options, db: whileLeading(options.db, network, isLeader), contracts: [usdt] };
  const logged = new Set<string>();
  const look = async (shouldEnd: () => boolean) => {
    const failures = await makeDue(deps, shouldEnd);
    await keepAlarm(deps, logged);
    if (failures.length > 0) throw failures[0];
  };
  return guardWhileLeading(
    options,
    { name: 'address changes', pauseMs: PAUSE_MS, onFollower: () => logged.clear() },
    look,
  );
}

type Deps = AddressChangeWatchDeps & { contracts: readonly AccountHex[] };

/** Applies the due changes. If one fails, the others aren't delayed. */
async function makeDue(deps: Deps, shouldEnd: () => boolean): Promise<unknown[]> {
  const { db, network, certainNow, log } = deps;
  const failures: unknown[] = [];
  for (const id of await findDueChanges(db, network, certainNow())) {
    if (shouldEnd()) return [];
    try {
      const outcome = await applyAddressChange(deps, id, { kind: 'due' });
      const change = encodeId('chg', id);
      if (outcome.kind === 'failed') log.error({ alarm: 'address-change-failed', change }, outcome.detail);
      if (outcome.kind === 'applied')
        log.warn({ change, addresses: outcome.added }, 'added addresses that were pending for a day');
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

/**
 * Logs each pending change once. Corrects the alarm if someone has tampered with it; normally it's raised and resolved together with the
 * changes.
 */
async function keepAlarm({ db, network, log }: Deps, logged: Set<string>): Promise<void> {
  const waiting = await listWaitingOfNetwork(db, network);
  const projects = new Set(waiting.map(({ projectId }) => encodeId('prj', projectId)));
  const open = new Set(await findAlarmSubjects(db, network, PENDING));
  for (const subject of new Set([...projects, ...open])) {
    const id = decodeId('prj', subject);
    if (id === null || projects.has(subject) === open.has(subject)) continue;
    await db.transaction((tx) => settleChangeAlarm(tx, { id, network }));
  }
  for (const { id, projectId } of waiting) {
    if (logged.has(id)) continue;
    logged.add(id);
    const change = await findAddressChange(db, id);
    if (change === null) continue;
    log.error({ alarm: PENDING, subject: encodeId('prj', projectId) }, describeChange(change));
  }
  const ids = new Set(waiting.map(({ id }) => id));
  for (const id of logged) if (!ids.has(id)) logged.delete(id);
}
