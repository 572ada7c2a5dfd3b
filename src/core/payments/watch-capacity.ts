import { randomBytes } from 'node:crypto';
import { LOW_PERCENT } from '../domain/capacity.ts';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import { countPayable, type Policy, payableRange } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { keepNewest } from '../runtime/keep-newest.ts';
import type { Logger } from '../runtime/log.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { BY_ITSELF } from '../store/access/service-actor.ts';
import { endAlarm, tellAlarm } from '../store/chain/tell-alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { listAccountKeys } from '../store/ledger/account-keys.ts';
import { countAddressesInUse } from '../store/ledger/allocation.ts';
import {
  type CapacityProject,
  countReserved,
  findCapacityProject,
  listCapacityProjects,
} from '../store/ledger/capacity.ts';
import { deriveNextAddresses } from './derive-addresses.ts';
import { type AmountCapacity, type Capacity, measureCapacity } from './measure-capacity.ts';
import { type Leading, loopWhileLeading, whileLeading } from './watching.ts';

type CapacityWatchDeps = Leading & { metrics: Metrics };

/** Short enough to report a low capacity or a recovery within a minute. A refused invoice raises the alarm immediately. */
const CHECK_MS = 30_000;
/** If measuring is slow, pauses become longer, so that measuring takes at most a twentieth of the time. */
const PAUSE_PER_ROUND = 20;
/** Maximum number of amounts in an alarm (`quittance address capacity` shows all of them), and of failures in a log line. */
const MAX_NAMED = 3;

/** Measures each project on a network, immediately and then every 30 seconds, while this process is the leader. Runs until it's stopped. */
export function startCapacityWatch(options: CapacityWatchDeps): Loop {
  const { network, metrics, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  const { relieve } = createRelief({ ...options, db, random: randomBytes });
  const deps = { ...options, db, relieve };
  const shown = new Set<string>();
  let dueMs = 0;
  const measure = async (shouldEnd: () => boolean) => {
    const startMs = performance.now();
    if (startMs < dueMs) return;
    await measureAll(deps, shown, shouldEnd);
    dueMs = startMs + Math.max(CHECK_MS, (performance.now() - startMs) * PAUSE_PER_ROUND);
  };
  // Another process measures now, so the values shown by this process would become stale.
  const onFollower = () => {
    for (const project of shown) forget(metrics, network, project);
    shown.clear();
    dueMs = 0;
  };
  return loopWhileLeading(options, { name: 'capacity', onFollower }, measure);
}

type Measuring = CapacityWatchDeps & Pick<Relief, 'relieve'>;
type Failure = { what: string; error: unknown };

/**
 * Measures all projects once. If a project can't be measured, the others aren't delayed. Failures are logged together at the end, and
 * retried in the next round.
 */
async function measureAll(deps: Measuring, shown: Set<string>, shouldEnd: () => boolean): Promise<void> {
  const failures: Failure[] = [];
  try {
    for await (const project of allProjects(deps)) {
      if (shouldEnd()) return;
      const name = encodeId('prj', project.id);
      try {
        const capacity = await measureRelieved(deps, project);
        // This process may report its results only as long as it leads and hasn't been asked to stop.
        if (shouldEnd()) return;
        shown.add(name);
        show(deps, project, capacity);
        await notify(deps, project, capacity);
      } catch (error) {
        if (shouldEnd()) return;
        forget(deps.metrics, deps.network, name);
        failures.push({ what: name, error });
      }
    }
  } catch (error) {
    if (shouldEnd()) return;
    failures.push({ what: 'the list of projects', error });
  } finally {
    report(deps, failures);
  }
}

/** Measures again if a pool was 80 % used and more addresses could be derived. */
async function measureRelieved({ db, now, relieve }: Measuring, project: CapacityProject): Promise<Capacity> {
  const capacity = await measureCapacity(db, project, now());
  const scarce = capacity.amounts.filter(({ total, free }) => total > 0n && free * 100n <= total * LOW_PERCENT);
  if (scarce.length === 0) return capacity;
  const { id: projectId, policy, maxSurchargeMicro } = project;
  for (const { requestedMicro } of scarce) {
    if (!(await relieve({ projectId, policy, maxSurchargeMicro, requestedMicro }))) return capacity;
  }
  return measureCapacity(db, (await findCapacityProject(db, projectId, now())) ?? project, now());
}

function report({ log, network }: CapacityWatchDeps, failures: readonly Failure[]): void {
  const [first] = failures;
  if (first === undefined) return;
  const named = failures.slice(0, MAX_NAMED).map(({ what }) => what);
  const more = failures.length - named.length;
  log.warn(
    { err: first.error, failures: failures.length },
    `could not measure the capacity of ${network} for ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}; Quittance retries in the next round`,
  );
}

async function* allProjects({ db, network, now }: CapacityWatchDeps): AsyncGenerator<CapacityProject> {
  for (let afterId: string | null = null; ; ) {
    const page: CapacityProject[] = await listCapacityProjects(db, network, afterId, now());
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    afterId = last.id;
  }
}

function show({ metrics, network }: CapacityWatchDeps, { id }: CapacityProject, capacity: Capacity): void {
  const labels = { network, project: encodeId('prj', id) };
  forget(metrics, network, labels.project);
  if (capacity.freeShare !== null) metrics.capacityFreeRatio.set(labels, capacity.freeShare);
  if (capacity.daysLeft !== null) metrics.capacityDaysLeft.set(labels, capacity.daysLeft);
}

function forget(metrics: Metrics, network: Network, project: string): void {
  metrics.capacityFreeRatio.remove({ network, project });
  metrics.capacityDaysLeft.remove({ network, project });
}

async function notify(
  { db, network, log }: CapacityWatchDeps,
  project: CapacityProject,
  capacity: Capacity,
): Promise<void> {
  const subject = encodeId('prj', project.id);
  if (!capacity.isLow) return endAlarm({ db, log }, 'capacity-low', network, subject);
  const detail = describe(subject, project, capacity, await adviseAddresses(db, project.id));
  await tellAlarm({ db, log }, 'capacity-low', { network, subject, detail });
}

function describe(
  projectId: string,
  { policy, activeAddresses }: CapacityProject,
  { amounts }: Capacity,
  fix: string,
): string {
  if (activeAddresses === 0n) {
    return `${projectId} has no active address with its policy ${policy}, so no invoice can be created. ${fix}`;
  }
  const low = amounts.filter(({ isLow }) => isLow);
  const more = low.length - MAX_NAMED;
  const named = low.slice(0, MAX_NAMED).map(describeAmount).join('; ');
  return `${projectId} is running out of payable amounts: ${named}${more > 0 ? `; and ${more} more` : ''}. ${fix}`;
}

function describeAmount({ requestedMicro, free, total, daysLeft }: AmountCapacity): string {
  const left = daysLeft === null || free === 0n ? '' : `, enough for ${daysLeft} days at the current rate`;
  return `for ${formatAmount(requestedMicro)} USDT, ${free} of ${total} are free${left}`;
}

/** The payable amounts that a project has for invoices with one requested amount. */
type AmountPool = { projectId: string; policy: Policy; maxSurchargeMicro: bigint; requestedMicro: MicroUsdt };

export type Relief = {
  /** Call this when an invoice was created. Checks its pool from time to time, in the background. */
  noteCreated(pool: AmountPool): void;
  /** Derives addresses if a pool is 80 % used. Returns the resulting pool, or `null` if none of the project's keys can derive addresses. */
  relieve(pool: AmountPool): Promise<Pool | null>;
};

type ReliefDeps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; log: Logger };

/** One address is added for every four in use. After that, two thirds of the pool are used. It takes 25 ms to add 25. */
const IN_USE_PER_ADDED = 4n;
const MAX_ADDED = 25;
/** A process first checks a pool after it has used this share of one address's capacity for the amount: 45 of 900. */
const FIRST_LOOK_SHARE = 20n;
/** How long Quittance remembers that a project can't derive addresses. */
const BARE_MS = 1000;
const MAX_REMEMBERED = 10_000;

/**
 * Adds addresses automatically when payable amounts run low. Every process may do this, but the project's lock allows only one at a time,
 * and the next one then finds enough. It never derives addresses from a key without active addresses: in that case the operator has stopped
 * using the wallet or doesn't want invoices, or the ledger was restored.
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

/** Returns how many more amounts may be used before 80 % are in use; negative if more than that are. */
function spareOf({ total, free }: Pool): bigint {
  return free - (total * LOW_PERCENT) / 100n;
}

function isScarce(pool: Pool): boolean {
  return pool.addresses > 0n && spareOf(pool) <= 0n;
}

/** Measures a pool, and derives addresses if it's scarce. Returns `null` if no addresses can be derived. */
async function look({ db, now, random, log }: ReliefDeps, pool: AmountPool): Promise<Pool | null> {
  const { projectId } = pool;
  const keys = await listAccountKeys(db, projectId);
  const key = keys.find((each) => each.isInUse && each.autoDerived < each.autoDeriveLimit);
  const found = await measure(db, pool);
  if (found.addresses === 0n) return null;
  // Another check may have derived the last addresses after an invoice had found none.
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
    log.warn({ ...facts, addresses }, '80 % of the payable amounts for a price are used: derived new addresses');
  } else if (derived.kind !== 'not-wanted') {
    log.warn({ ...facts, why: derived.kind }, 'payable amounts are running low, but no address could be derived');
    return null;
  }
  return measure(db, pool);
}

/** Explains what an operator can do when payable amounts run low, and why the project didn't derive addresses automatically. */
export async function adviseAddresses(db: Sql, projectId: string): Promise<string> {
  const project = encodeId('prj', projectId);
  const add = `Add addresses: quittance address add --project ${project} T…`;
  const spent = (await listAccountKeys(db, projectId)).find(
    ({ isInUse, autoDerived, autoDeriveLimit: limit }) => isInUse && limit > 0 && autoDerived >= limit,
  );
  const { frozen } = await countAddressesInUse(db, projectId);
  const why = frozen === 0 ? '' : `Tether froze ${frozen} of its addresses. `;
  if (spent === undefined) return why + add;
  return `${why}Quittance has derived ${spent.autoDerived} addresses from its account key automatically, which is the limit. Raise the limit with quittance address derive --project ${project} --auto-limit ${spent.autoDeriveLimit + RAISED_BY}, if your wallet shows that many addresses. Or: ${add}`;
}

const RAISED_BY = 100;
