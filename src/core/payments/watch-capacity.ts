import { randomBytes } from 'node:crypto';
import { LOW_PERCENT } from '../domain/capacity.ts';
import { encodeId } from '../domain/ids.ts';
import { formatAmount } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { endAlarm, tellAlarm } from '../store/chain/tell-alarms.ts';
import { type CapacityProject, findCapacityProject, listCapacityProjects } from '../store/ledger/capacity.ts';
import { type Leading, loopWhileLeading } from './leading.ts';
import { type AmountCapacity, type Capacity, measureCapacity } from './measure-capacity.ts';
import { adviseAddresses, createRelief, type Relief } from './relief.ts';
import { whileLeading } from './watching.ts';

type CapacityWatchDeps = Leading & { metrics: Metrics };

/** With this interval, a low capacity or a recovery is reported within a minute. A refused invoice raises the alarm immediately. */
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
  // Another process measures now, so the values that this process shows would become outdated.
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
  { db, network, log, now }: CapacityWatchDeps,
  project: CapacityProject,
  capacity: Capacity,
): Promise<void> {
  const subject = encodeId('prj', project.id);
  if (!capacity.isLow) return endAlarm({ db, log }, 'capacity-low', network, subject);
  const detail = describe(subject, project, capacity, await adviseAddresses({ db, now }, project.id));
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
