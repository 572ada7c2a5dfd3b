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
import { countReserved } from '../store/ledger/capacity.ts';
import { deriveNextAddresses } from './derive-addresses.ts';

/** The payable amounts that a project has for invoices of one amount. */
type AmountPool = { projectId: string; policy: Policy; maxSurchargeMicro: bigint; requestedMicro: MicroUsdt };

export type Relief = {
  /** Says that an invoice was created. Looks at its pool now and then, beside the answer. */
  noteCreated(pool: AmountPool): void;
  /** Derives addresses if 80 % of a pool are taken. The pool as it is then; `null`: no key of the project may yield any. */
  relieve(pool: AmountPool): Promise<Pool | null>;
};

export type ReliefDeps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; log: Logger };

/** For every four addresses in use, one is added, so that two thirds of the pool are taken; 25 take 25 ms. */
const IN_USE_PER_ADDED = 4n;
const MAX_ADDED = 25;
/** Of what an address can take, so much is created of one amount before a process looks for the first time: 45 of 900. */
const FIRST_LOOK_SHARE = 20n;
/** How long it is remembered that nothing can be derived for a project. */
const BARE_MS = 1000;
const MAX_REMEMBERED = 10_000;

/**
 * Adds addresses by itself where payable amounts get scarce. Every process may; the project's lock lets one do it at a time, and the
 * next one finds that there is enough. It never derives an address from a key that has no address in use: the operator has left that
 * wallet, or wants no invoices, or the ledger was restored.
 */
export function createRelief(deps: ReliefDeps): Relief {
  const { now, log } = deps;
  const untilLook = new Map<string, number>();
  const bareUntil = new Map<string, number>();
  const underWay = new Map<string, Promise<Pool | null>>();
  const lookOnce = async (pool: AmountPool): Promise<Pool | null> => {
    const { projectId } = pool;
    if ((bareUntil.get(projectId) ?? 0) > now()) return null;
    const found = await look(deps, pool);
    if (found === null) keepNewest(bareUntil, projectId, now() + BARE_MS, MAX_REMEMBERED);
    return found;
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
        // Other processes use it up too.
        (found) =>
          found !== null && keepNewest(untilLook, name, Math.max(1, Number(spareOf(found) / 2n)), MAX_REMEMBERED),
        (error: unknown) => log.warn({ err: error }, 'whether payable amounts get scarce could not be seen'),
      );
    },
  };
}

function nameOf({ projectId, requestedMicro }: AmountPool): string {
  return `${projectId} ${requestedMicro}`;
}

/** How many payable amounts an address has for the amount. */
function wordsOf(pool: AmountPool): bigint {
  return countPayable(pool.policy, payableRange(pool, pool.requestedMicro));
}

function firstLook(pool: AmountPool): number {
  return Math.max(2, Number(wordsOf(pool) / FIRST_LOOK_SHARE));
}

/** `total` payable amounts, of which `free` are reserved for nobody. */
export type Pool = { addresses: bigint; total: bigint; free: bigint };

async function measure(db: Sql, pool: AmountPool): Promise<Pool> {
  const { projectId, policy, requestedMicro } = pool;
  const [{ addresses, reserved } = { addresses: 0n, reserved: 0n }] = await countReserved(db, projectId, policy, [
    payableRange(pool, requestedMicro),
  ]);
  const total = addresses * wordsOf(pool);
  return { addresses, total, free: total > reserved ? total - reserved : 0n };
}

/** How many may still be taken before 80 % are; below 0 where more are. */
function spareOf({ total, free }: Pool): bigint {
  return free - (total * LOW_PERCENT) / 100n;
}

function isScarce(pool: Pool): boolean {
  return pool.addresses > 0n && spareOf(pool) <= 0n;
}

/** Measures a pool, and derives addresses if it is scarce. `null`: none can be. */
async function look({ db, now, random, log }: ReliefDeps, pool: AmountPool): Promise<Pool | null> {
  const { projectId } = pool;
  const keys = await listAccountKeys(db, projectId);
  const key = keys.find((each) => each.isInUse && each.autoDerived < each.autoDeriveLimit);
  const found = await measure(db, pool);
  if (found.addresses === 0n) return null;
  // Another look may have derived the last ones since an invoice found none.
  if (key === undefined) return found.free > 0n ? found : null;
  if (!isScarce(found)) return found;
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
  );
  const facts = { project: encodeId('prj', projectId), amount: formatAmount(pool.requestedMicro) };
  if (derived.kind === 'derived') {
    const addresses = derived.added.map(({ address }) => address);
    log.warn({ ...facts, addresses }, '80 % of the payable amounts of an amount are taken: addresses were derived');
  } else if (derived.kind !== 'not-wanted') {
    log.warn({ ...facts, why: derived.kind }, 'payable amounts are scarce, and no address could be derived');
    return null;
  }
  return measure(db, pool);
}
