import { type AccountXpub, type DerivedAddress, deriveAddresses } from '@quittance/tron/account-xpub';
import { derivableAt } from '../domain/derivation-index.ts';
import { uuidV7 } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { insertOperatorActions, type RecordedActor } from '../store/access/audit-log.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { claimAutoDerived, findAccountKey, findFirstIndex, insertAccountKey } from '../store/ledger/account-keys.ts';
import { findAddresses, insertAddresses, type OwnedAddress } from '../store/ledger/addresses.ts';
import { findProject, lockProject, type Project } from '../store/ledger/projects.ts';

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
export function signedOf(
  db: Database,
  { free, project: { id: projectId, network } }: Extract<Next, { kind: 'found' }>,
) {
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
