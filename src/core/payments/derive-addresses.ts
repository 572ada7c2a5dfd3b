import { type AccountXpub, type DerivedAddress, deriveAddresses } from '@quittance/tron/account-xpub';
import { LOW_PERCENT } from '../domain/capacity.ts';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import { countPayable, type Policy, payableRange, type WordRange } from '../domain/policy.ts';
import { isRecent, type UnixMs } from '../domain/time.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import type { Logger } from '../runtime/log.ts';
import { BY_ITSELF, insertOperatorActions, type RecordedActor } from '../store/access/audit-log.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { statement } from '../store/db/statement.ts';
import {
  claimAutoDerived,
  findAccountKey,
  findFirstIndex,
  insertAccountKey,
  listAccountKeys,
} from '../store/ledger/account-keys.ts';
import { findAddresses, insertAddresses, isInUse, type OwnedAddress } from '../store/ledger/addresses.ts';
import { countAddressesInUse } from '../store/ledger/allocation.ts';
import { findProject, lockProject, type Project } from '../store/ledger/projects.ts';
import { isOfRow } from './watching.ts';

/**
 * After a restore, it's unknown which indexes were used since the backup, or after earlier restores of that backup. Therefore a clock
 * limits the indexes: no index is used before the clock reaches it, so an index that the clock hasn't reached can't have been used. The
 * clock starts in 2026, advances by two indexes per second, and reaches the last index (2³¹) in 2060.
 */
const EPOCH_MS = Date.UTC(2026, 0, 1);
const INDEXES_A_SECOND = 2;
const LAST_INDEX = 2 ** 31 - 1;

/** Returns the lowest index that has certainly never been used, no matter what happened to the ledger before. */
export function indexAt(now: UnixMs): number {
  const seconds = Math.max(0, Math.floor((now - EPOCH_MS) / 1000));
  return Math.min(LAST_INDEX, 1 + seconds * INDEXES_A_SECOND);
}

/**
 * Returns how many addresses a restored ledger may derive now, starting at the index `next`, so that it stays below `indexAt` at any later
 * moment.
 */
export function derivableAt(now: UnixMs, next: number): number {
  return Math.max(0, indexAt(now) - next);
}

/** `actor` is recorded in the audit log. */
type Deps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; actor: RecordedActor };

type Derived =
  | {
      kind: 'derived';
      project: Project;
      policy: Policy;
      /**
       * There may be fewer than requested, because of `MAX_LOOKED_AT` or because a restore was too recent. The next call continues where
       * this one ended.
       */
      added: DerivedAddress[];
      /**
       * The skipped addresses, which already belong to a project on the network. They precede the last added address and are ordered by
       * index.
       */
      skipped: (OwnedAddress & { index: number })[];
    }
  /** Nothing was added, because all `count` addresses from index `from` on already belong to projects of the network. */
  | { kind: 'all-taken'; from: number; count: number }
  /** Nothing was added: after a restore, a key can derive more addresses only as time passes. */
  | { kind: 'too-soon' }
  | { kind: 'key-of-another-project' }
  /** Nothing was added, because the key would have added addresses other than `only`. */
  | { kind: 'others-come-next' }
  /** Nothing was added automatically, because the next address isn't signed. */
  | { kind: 'not-signed' }
  /** Nothing was added automatically, because another process did it, the key has reached its limit, or the key is no longer in use. */
  | { kind: 'not-wanted' };

/**
 * `isFresh`: the operator knows that no address of the key has ever been used here, not even in data that a restore lost.
 * `autoDeriveLimit`: a new key's limit. `only`: no addresses except these may be added. `isStillWanted`: called by automatic derivation
 * once no other process can add addresses to the project.
 */
type Wanted = {
  projectId: string;
  xpub: AccountXpub;
  count: number;
  policy: Policy | null;
  isFresh?: boolean;
  autoDeriveLimit?: number;
  only?: readonly string[] | null;
  isStillWanted?(tx: Sql, project: Project): Promise<boolean>;
};

/**
 * How many addresses a new key can derive automatically, unless its operator sets a limit. With tails, this is enough for 90,000 invoices
 * at the same price.
 */
export const AUTO_DERIVE_LIMIT = 100;

/** A command can import this many addresses at once. Deriving them takes 10 to 20 seconds. */
const MAX_LOOKED_AT = 10_000;
/** If the first addresses aren't free, this many more are looked up at a time. */
const BATCH = 500;
/** An attempt is repeated only if another command has derived addresses from the same key in the meantime. */
const MAX_ATTEMPTS = 10;

/**
 * Adds an account key's next `count` addresses. From the first call on, the key belongs to the project. Addresses that already belong to a
 * project on the network are skipped. If the last address is skipped, the next call checks it again.
 */
export async function deriveNextAddresses(deps: Deps, wanted: Wanted): Promise<Derived> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const next = await findNextAddresses(deps, wanted);
    if (next.kind !== 'found') return next;
    const { only } = wanted;
    if (only && next.free.map(({ address }) => address).join() !== only.join()) return { kind: 'others-come-next' };
    const free = wanted.isStillWanted === undefined ? next.free : signedOf(deps.db, next);
    if (free.length === 0) return { kind: 'not-signed' };
    const outcome = await add(deps, wanted, { ...next, free });
    if (outcome !== 'overtaken') return outcome;
  }
  throw new Error(`in each of ${MAX_ATTEMPTS} attempts, another command added addresses from this account key first`);
}

type Found = { free: DerivedAddress[]; skipped: (OwnedAddress & { index: number })[] };

/** `firstIndex` is where a new key starts. `project` is the project's state during the search. */
type Next =
  | (Found & { kind: 'found'; project: Project; firstIndex: number })
  | Extract<Derived, { kind: 'all-taken' | 'too-soon' | 'key-of-another-project' }>;

/** Returns the addresses that an account key would add next, without storing anything. */
export async function findNextAddresses(
  { db, now }: Pick<Deps, 'db' | 'now'>,
  wanted: Pick<Wanted, 'projectId' | 'xpub' | 'count' | 'isFresh'>,
): Promise<Next> {
  const project = await findProject(db, wanted.projectId);
  if (project === null) throw new Error(`the project ${wanted.projectId} does not exist`);
  const key = await findAccountKey(db, project.network, wanted.xpub);
  if (key !== null && key.projectId !== wanted.projectId) return { kind: 'key-of-another-project' };
  const firstIndex = wanted.isFresh === true ? 0 : await findFirstIndex(db);
  const from = key?.nextIndex ?? firstIndex;
  const isPaced = key === null ? firstIndex > 0 : key.wasRestored;
  const limit = isPaced ? Math.min(MAX_LOOKED_AT, derivableAt(now(), from)) : MAX_LOOKED_AT;
  if (limit === 0) return { kind: 'too-soon' };
  const found = await lookAhead(db, project.network, wanted, { from, below: from + limit });
  if (found.free.length === 0) return { kind: 'all-taken', from, count: limit };
  return { kind: 'found', project, firstIndex, ...found };
}

/** Returns the addresses before the first unsigned one. Trying to add an unsigned address would prevent the addition of all others. */
function signedOf(db: Database, { free, project: { id: projectId, network } }: Extract<Next, { kind: 'found' }>) {
  const unsigned = free.findIndex(({ address }) => db.refuseNew({ network, projectId, address }) !== null);
  return unsigned === -1 ? free : free.slice(0, unsigned);
}

/** Finds the next addresses that don't belong to any project on the network. Deriving takes long, so it runs outside a transaction. */
async function lookAhead(
  db: Sql,
  network: Project['network'],
  { xpub, count }: Pick<Wanted, 'xpub' | 'count'>,
  { from, below }: { from: number; below: number },
): Promise<Found> {
  const found: Found = { free: [], skipped: [] };
  for (let index = from; found.free.length < count && index < below; ) {
    const size = index === from ? count : BATCH;
    const derived = deriveAddresses(xpub, index, Math.min(size, below - index));
    index += derived.length;
    const accounts = derived.map(({ account }) => account);
    const owners = new Map((await findAddresses(db, network, accounts)).map((owned) => [owned.address, owned]));
    for (const each of derived) {
      if (found.free.length === count) break;
      const owner = owners.get(each.address);
      if (owner === undefined) found.free.push(each);
      else found.skipped.push({ ...owner, index: each.index });
    }
  }
  return found;
}

/** Adds all addresses that were found, or none if other addresses have been added since the search. */
async function add(deps: Deps, wanted: Wanted, found: Found & { firstIndex: number }): Promise<Derived | 'overtaken'> {
  const { db, now, random, actor } = deps;
  const { projectId, xpub, isStillWanted, autoDeriveLimit = AUTO_DERIVE_LIMIT } = wanted;
  const { firstIndex } = found;
  try {
    return await db.transaction(async (tx) => {
      const project = await lockProject(tx, projectId);
      if (isStillWanted !== undefined && !(await isStillWanted(tx, project))) return { kind: 'not-wanted' };
      await insertAccountKey(tx, { id: uuidV7(now(), random(10)), projectId, xpub, firstIndex, autoDeriveLimit });
      const key = await findAccountKey(tx, project.network, xpub);
      if (key?.projectId !== projectId) return { kind: 'key-of-another-project' };
      const isClaimed =
        isStillWanted === undefined || (key.isInUse && (await claimAutoDerived(tx, key.id, found.free.length)));
      if (!isClaimed) return { kind: 'not-wanted' };
      const policy = wanted.policy ?? project.policy;
      const entries = found.free.map((each) => ({ ...each, id: uuidV7(now(), random(10)) }));
      const inserted = await insertAddresses(tx, { projectId, policy, accountKeyId: key.id, entries });
      if (inserted.length < entries.length) throw new Overtaken();
      const actedAt = now();
      await insertOperatorActions(
        tx,
        found.free.map(({ address, index }) => {
          const detail = { policy, index, accountKeyId: key.id };
          return { projectId, action: 'address.derived', subject: address, detail, ...actor, actedAt };
        }),
      );
      return { kind: 'derived', project, policy, added: found.free, skipped: found.skipped };
    });
  } catch (error) {
    if (error instanceof Overtaken) return 'overtaken';
    throw error;
  }
}

class Overtaken extends Error {}

/** The payable amounts that a project has for invoices with one requested amount. */
type AmountPool = { projectId: string; policy: Policy; maxSurchargeMicro: bigint; requestedMicro: MicroUsdt };

export type Relief = {
  /** Call this after each creation of an invoice. From time to time, it checks the invoice's pool in the background. */
  noteCreated(pool: AmountPool): void;
  /**
   * Derives addresses if a pool is 80 % used. Returns the resulting pool, or `null` if no address can be derived and no amount is free. In
   * the second after a failed derivation, it returns `null` without looking.
   */
  relieve(pool: AmountPool): Promise<Pool | null>;
};

type ReliefDeps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; log: Logger };

/** One address is added for every four in use. After that, two thirds of the pool are used. Adding 25 addresses takes 25 ms. */
const IN_USE_PER_ADDED = 4n;
const MAX_ADDED = 25;
/** A process first checks a pool after using a twentieth of the amounts that one address has in it, for example 45 of 900. */
const FIRST_LOOK_SHARE = 20n;
/** How long Quittance remembers that a project can't derive addresses. */
const BARE_MS = 1000;
const MAX_REMEMBERED = 10_000;

/**
 * Adds addresses automatically when payable amounts run low. Every process may do this, but the project's lock allows only one at a time,
 * and the next one then finds enough free amounts. It never derives addresses from a key without active addresses: in that case the
 * operator has stopped using the wallet or doesn't want invoices, or the ledger was restored.
 */
export function createRelief(deps: ReliefDeps): Relief {
  const { now, log } = deps;
  const untilLook = new Map<string, number>();
  const bareAt = new Map<string, number>();
  const underWay = new Map<string, Promise<Pool | null>>();
  const lookOnce = async (pool: AmountPool): Promise<Pool | null> => {
    const { projectId } = pool;
    if (isRecent(bareAt.get(projectId) ?? Number.NEGATIVE_INFINITY, now(), BARE_MS)) return null;
    const { left, isBare } = await look(deps, pool);
    if (isBare) keepNewest(bareAt, projectId, now(), MAX_REMEMBERED);
    return left;
  };
  const join = (pool: AmountPool) => {
    const name = nameOf(pool);
    const running = underWay.get(name) ?? lookOnce(pool).finally(() => underWay.delete(name));
    underWay.set(name, running);
    return running;
  };
  return {
    relieve: join,
    noteCreated: (pool) => {
      const name = nameOf(pool);
      const left = (untilLook.get(name) ?? firstLook(pool)) - 1;
      keepNewest(untilLook, name, left > 0 ? left : firstLook(pool), MAX_REMEMBERED);
      if (left > 0) return;
      join(pool).then(
        // Other processes also use up these amounts.
        (found) =>
          found !== null && keepNewest(untilLook, name, Math.max(1, Number(spareOf(found) / 2n)), MAX_REMEMBERED),
        (error: unknown) => log.warn({ err: error }, 'could not check whether payable amounts are running low'),
      );
    },
  };
}

function nameOf({ projectId, requestedMicro }: AmountPool): string {
  return `${projectId} ${requestedMicro}`;
}

/** Returns how many payable amounts an address has for the requested amount. */
function wordsOf(pool: AmountPool): bigint {
  return countPayable(pool.policy, payableRange(pool, pool.requestedMicro));
}

function firstLook(pool: AmountPool): number {
  return Math.max(2, Number(wordsOf(pool) / FIRST_LOOK_SHARE));
}

/** `total` is the number of payable amounts, and `free` is how many of them aren't reserved. */
export type Pool = { addresses: bigint; total: bigint; free: bigint };

async function measure(db: Sql, pool: AmountPool): Promise<Pool> {
  const { projectId, policy, requestedMicro } = pool;
  const [{ addresses, reserved } = { addresses: 0n, reserved: 0n }] = await countReserved(db, projectId, policy, [
    payableRange(pool, requestedMicro),
  ]);
  const total = addresses * wordsOf(pool);
  return { addresses, total, free: total > reserved ? total - reserved : 0n };
}

/** Returns how many more amounts may be used before 80 % are in use. The result is negative if more than 80 % already are. */
function spareOf({ total, free }: Pool): bigint {
  return free - (total * LOW_PERCENT) / 100n;
}

function isScarce(pool: Pool): boolean {
  return pool.addresses > 0n && spareOf(pool) <= 0n;
}

type AccountKey = Awaited<ReturnType<typeof listAccountKeys>>[number];

function mayDerive({ isInUse, autoDerived, autoDeriveLimit }: AccountKey): boolean {
  return isInUse && autoDerived < autoDeriveLimit;
}

/** `isBare` means that no addresses can be derived. Then `left` is `null` if no amount is free, either. */
type Look = { left: Pool | null; isBare: boolean };

/** Measures a pool, and derives addresses if it's scarce. */
async function look({ db, now, random, log }: ReliefDeps, pool: AmountPool): Promise<Look> {
  const { projectId } = pool;
  const keys = await listAccountKeys(db, projectId);
  const key = keys.find(mayDerive);
  const found = await measure(db, pool);
  // Another check may have derived the last possible addresses after no free amount had been found for an invoice.
  const rest = (left: Pool) => (left.free > 0n ? left : null);
  if (found.addresses === 0n || key === undefined) return { left: rest(found), isBare: found.free === 0n };
  if (!isScarce(found)) return { left: found, isBare: false };
  const wanted = Number((found.addresses + IN_USE_PER_ADDED - 1n) / IN_USE_PER_ADDED);
  const count = Math.min(wanted, MAX_ADDED, key.autoDeriveLimit - key.autoDerived);
  const derived = await deriveNextAddresses(
    { db, now, random, actor: BY_ITSELF },
    {
      projectId,
      xpub: key.xpub,
      count,
      policy: null,
      isStillWanted: async (tx, { policy, maxSurchargeMicro }) =>
        isScarce(await measure(tx, { ...pool, policy, maxSurchargeMicro })),
    },
  ).catch(refusedRow);
  const facts = { project: encodeId('prj', projectId), amount: formatAmount(pool.requestedMicro) };
  if (derived.kind === 'derived') {
    const addresses = derived.added.map(({ address }) => address);
    log.warn(
      { ...facts, addresses },
      '80 % of the payable amounts for a price are used, so Quittance derived new addresses',
    );
  } else if (derived.kind !== 'not-wanted') {
    const err = 'error' in derived ? { err: derived.error } : {};
    log.warn(
      { ...facts, ...err, why: derived.kind },
      'payable amounts are running low, but no address could be derived',
    );
    return { left: rest(await measure(db, pool)), isBare: true };
  }
  return { left: await measure(db, pool), isBare: false };
}

/** A row can prevent derivation: for example, someone inserted the next address for another project. That row has an alarm of its own. */
function refusedRow(error: unknown): { kind: 'refused'; error: unknown } {
  if (isOfRow(error)) return { kind: 'refused', error };
  throw error;
}

/** Explains what an operator can do when payable amounts run low, and why the project didn't derive addresses automatically. */
export async function adviseAddresses({ db, now }: Pick<ReliefDeps, 'db' | 'now'>, projectId: string): Promise<string> {
  const project = encodeId('prj', projectId);
  const command = `quittance address add --project ${project} T…`;
  const keys = await listAccountKeys(db, projectId);
  const spent = keys.find(
    ({ isInUse, autoDerived, autoDeriveLimit: limit }) => isInUse && limit > 0 && autoDerived >= limit,
  );
  const { frozen } = await countAddressesInUse(db, projectId);
  const why = frozen === 0 ? '' : `Tether froze ${frozen} of the project's addresses. `;
  const key = keys.find(mayDerive);
  const next = key && (await findNextAddresses({ db, now }, { projectId, xpub: key.xpub, count: 1 }).catch(refusedRow));
  if (next?.kind === 'found' && signedOf(db, next).length === 0) {
    return `${why}The next address of the project's account key isn't signed, so Quittance can't derive it automatically. Sign and install a manifest with more addresses: start with "quittance manifest draft" (docs/guides/signed-addresses.md)`;
  }
  if (spent === undefined) return `${why}Add addresses: ${command}`;
  return `${why}Quittance has automatically derived ${spent.autoDerived} addresses from the project's account key, which is the limit. If your wallet can show ${spent.autoDeriveLimit + RAISED_BY} addresses, raise the limit with "quittance address derive --project ${project} --auto-limit ${spent.autoDeriveLimit + RAISED_BY}". Or add addresses: ${command}`;
}

const RAISED_BY = 100;

// With lateral subqueries, PostgreSQL counts in the index (address_id, payable_micro), one short range each.
const selectReserved = statement(
  'capacity-reserved',
  { number: 'int4', addresses: 'int8', reserved: 'int8' },
  `select r.number::int4 as number, count(*) as addresses, sum(taken.count)::int8 as reserved
   from unnest($3::int8[], $4::int8[]) with ordinality as r (from_micro, below_micro, number)
   cross join addresses a
   cross join lateral (
     select (select count(*) from invoices i
         where i.address_id = a.id and i.payable_micro >= r.from_micro and i.payable_micro < r.below_micro)
       + (select count(distinct s.amount_micro) from arrivals s
         where s.address_id = a.id and s.amount_micro >= r.from_micro and s.amount_micro < r.below_micro
           and (select i.address_id from invoices i where i.address_id = a.id and i.payable_micro = s.amount_micro) is null) as count) taken
   where a.project_id = $1 and a.policy = $2 and ${isInUse('a.')}
   group by r.number`,
);

/** For each range, in order, returns how many active addresses with the policy can use it, and how much of it is reserved. */
export async function countReserved(
  db: Sql,
  projectId: string,
  policy: Policy,
  ranges: readonly WordRange[],
): Promise<{ addresses: bigint; reserved: bigint }[]> {
  const counts = ranges.map(() => ({ addresses: 0n, reserved: 0n }));
  const bounds = [ranges.map(({ fromMicro }) => fromMicro), ranges.map(({ belowMicro }) => belowMicro)];
  for (const { number, addresses, reserved } of await db.run(selectReserved, [projectId, policy, ...bounds])) {
    counts[number - 1] = { addresses, reserved };
  }
  return counts;
}
