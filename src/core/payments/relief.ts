import { LOW_PERCENT } from '../domain/capacity.ts';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import { countPayable, type Policy, payableRange } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import type { Logger } from '../runtime/log.ts';
import { BY_ITSELF } from '../store/access/service-actor.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { listAccountKeys } from '../store/ledger/account-keys.ts';
import { countAddressesInUse } from '../store/ledger/allocation.ts';
import { countReserved } from '../store/ledger/capacity.ts';
import { deriveNextAddresses, findNextAddresses, signedOf } from './derive-addresses.ts';
import { isOfRow } from './write-rows.ts';

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
  const bareUntil = new Map<string, number>();
  const underWay = new Map<string, Promise<Pool | null>>();
  const lookOnce = async (pool: AmountPool): Promise<Pool | null> => {
    const { projectId } = pool;
    if ((bareUntil.get(projectId) ?? 0) > now()) return null;
    const { left, isBare } = await look(deps, pool);
    if (isBare) keepNewest(bareUntil, projectId, now() + BARE_MS, MAX_REMEMBERED);
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
