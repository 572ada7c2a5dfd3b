import { poolShare } from '../../../core/chain/nodes/node-pool.ts';
import { AppError, conflict, notFound } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { createSemaphore } from '../../../core/runtime/concurrency.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import type { ActionName } from '../actions.ts';
import type { Actor } from '../actor.ts';
import { authorize } from '../authorize.ts';
import { clip, FieldError } from '../input/problems.ts';
import type { NodeDeps, OperationDeps } from '../operation.ts';
import { selectNetwork } from '../select.ts';
import { adviseOnBooks, noteReconciled, reconcileNow } from './balances.ts';
import { followedCursor, type Range, readRange, refuseAbove } from './chain-blocks.ts';
import {
  adviseOnDifferences,
  rescanRange,
  sayRescanned,
  sayUnattested,
  sayVerified,
  verifyRange,
} from './chain-ranges.ts';

export const JOB_KINDS = ['verify', 'rescan', 'reconcile'] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** Anyone who may run the use case may start and stop its job. */
export const JOB_ACTIONS = {
  verify: 'verifyRange',
  rescan: 'rescanRange',
  reconcile: 'reconcileNow',
} as const satisfies Record<JobKind, ActionName>;

/** A job's work. A reconciliation covers all addresses. */
export type JobWork = { kind: 'verify' | 'rescan'; range: Range } | { kind: 'reconcile'; range: null };
type JobOrder = JobWork & { network: Network };

type Given = { kind: string; from?: string | undefined; to?: string | undefined };

/** Throws `INVALID_ARGUMENT`. */
export function readJobWork({ kind: text, from, to }: Given): JobWork {
  const kind = JOB_KINDS.find((each) => each === text);
  if (kind === undefined) throw new FieldError('kind', `is ${clip(text)}: choose ${JOB_KINDS.join(', ')}`);
  if (kind !== 'reconcile') return { kind, range: readRange({ from: from ?? '', to: to ?? '' }) };
  if (from === undefined && to === undefined) return { kind, range: null };
  throw new FieldError('from', say`and ${{ field: 'to' }} are for blocks, and this compares addresses: leave them out`);
}

/** Returns a name for the work, such as `verify blocks 1 to 300`. */
function nameWork({ kind, range }: JobWork): string {
  return range === null ? `${kind} all addresses` : `${kind} blocks ${range.from} to ${range.to}`;
}

export type JobView = ReturnType<typeof describeJob>;
export type JobListView = { network: Network; data: JobView[] };

/** Limits how many database connections this work uses at once. Further work waits for a free one. */
export function limitConnections(db: Database, atOnce: number): Database {
  const inTurn = createSemaphore(atOnce);
  return {
    ...db,
    run: (statement, parameters) => inTurn(() => db.run(statement, parameters)),
    transaction: (work) => inTurn(() => db.transaction(work)),
    snapshot: (work) => inTurn(() => db.snapshot(work)),
  };
}

/** `found` counts differences, or recorded transfers, so far. `total` is `null` until some work is done. */
type Progress = { done: number; total: number | null; found: number };
type WorkDeps = NodeDeps & { signal: AbortSignal; onProgress(progress: Progress): void };

/** More addresses add no information. */
const MAX_ODD = 1000;

/**
 * Runs the job's use case. Thousands of addresses may have correct balances, so only their number is kept. Throws the errors of the use case
 * and of `signal`.
 */
async function runJob(deps: WorkDeps, actor: Actor, work: JobWork) {
  if (work.kind === 'reconcile') {
    const onProgress = (done: number, total: number) => deps.onProgress({ done, total, found: 0 });
    const { view, hints } = await reconcileNow({ ...deps, onProgress }, { addresses: [] });
    const total = view.data.length;
    const others = view.data.filter(({ status }) => status !== 'good');
    const good = total - others.length;
    const odd = others.slice(0, MAX_ODD).map((row) => ({ row, note: noteReconciled(row, false) }));
    const advice = others.length === 0 ? [] : adviseOnBooks(hints);
    const said = [`${good} of ${total} addresses match the chain`, ...advice];
    return { said, result: { books: { node: view.node, total, good, odd } } };
  }
  const { kind, range } = work;
  const total = range.to - range.from + 1;
  const onProgress = (done: number, found: number) => deps.onProgress({ done, total, found });
  if (kind === 'rescan') {
    const rescanned = await rescanRange({ ...deps, onProgress }, actor, range);
    return { said: [sayRescanned(rescanned), sayUnattested(rescanned)], result: { rescanned } };
  }
  const { view: verified, hint } = await verifyRange({ ...deps, onProgress }, range);
  const advice = hint === null ? sayUnattested(verified) : adviseOnDifferences(hint);
  return { said: [sayVerified(verified), advice], result: { verified } };
}

/** Work in this process that continues after the request that started it was answered. `total` is `null` while it's unknown. */
type Job = {
  readonly jobId: string;
  readonly order: JobOrder;
  readonly startedBy: string;
  readonly startedAt: UnixMs;
  readonly state: 'running' | 'stopping' | 'done' | 'stopped' | 'failed';
  readonly endedAt: UnixMs | null;
  readonly progress: Progress;
  /** What the job found, in words and as data. */
  readonly outcome: Awaited<ReturnType<typeof runJob>> | null;
  /** Why the job failed. Unexpected errors appear only in the log. */
  readonly error: AppError | null;
};

type Running = { job: { -readonly [Name in keyof Job]: Job[Name] }; stopping: AbortController; ended: Promise<void> };

export type Jobs = ReturnType<typeof createJobs>;

type Deps = Pick<OperationDeps, 'db' | 'now' | 'random' | 'log' | 'nodes'>;

/** How many finished jobs to keep: with a thousand differences each, a few megabytes. */
const MAX_KEPT = 10;
/** The console's pages need the remaining connections. */
const CONNECTIONS = 2;
/** A node that is limiting requests or restarting responds again within this time. */
const PATIENCE_MS = 60_000;

/** A process's jobs, one at a time for each network. */
export function createJobs({ db, now, random, log, nodes }: Deps) {
  const running = new Map<Network, Running>();
  const ended = new Map<string, Job>();
  const own = limitConnections(db, CONNECTIONS);
  let isClosed = false;
  const run = async ({ job, stopping: { signal } }: Omit<Running, 'ended'>, actor: Actor) => {
    const { order } = job;
    try {
      const { withNodes } = await nodes();
      job.outcome = await withNodes(order.network, (found) => {
        const pool = poolShare(found.pool, { signal, now });
        const onProgress = (progress: Progress) => {
          job.progress = progress;
        };
        return runJob({ ...found, db: own, pool, patienceMs: PATIENCE_MS, signal, onProgress }, actor, order);
      });
      job.state = 'done';
    } catch (error) {
      job.state = signal.aborted ? 'stopped' : 'failed';
      if (!signal.aborted && error instanceof AppError) job.error = error;
      else if (!signal.aborted) log.error({ err: error, jobId: job.jobId }, `a job failed: ${nameWork(order)}`);
    }
    job.endedAt = now();
    running.delete(order.network);
    keepNewest(ended, job.jobId, job, MAX_KEPT);
  };
  const all = () => [...[...running.values()].map(({ job }) => job), ...[...ended.values()].reverse()];
  const find = (jobId: string): Job | null => all().find((job) => job.jobId === jobId) ?? null;
  const abort = ({ job, stopping }: Running) => {
    job.state = 'stopping';
    stopping.abort();
  };
  return {
    /** Throws `CONFLICT` if the network already has a running job. */
    start: (actor: Actor, order: JobOrder): Job => {
      if (isClosed) throw conflict`this process is shutting down and starts no new jobs`;
      const other = running.get(order.network);
      if (other !== undefined) throw busy(other.job);
      const job: Running['job'] = {
        ...{ jobId: encodeId('job', uuidV7(now(), random(10))), order, startedBy: actor.name, startedAt: now() },
        ...{ state: 'running', endedAt: null, outcome: null, error: null },
        progress: { done: 0, total: order.range && order.range.to - order.range.from + 1, found: 0 },
      };
      const started = { job, stopping: new AbortController() };
      running.set(order.network, { ...started, ended: run(started, actor) });
      return job;
    },
    find,
    /** Returns a network's jobs, newest first. */
    list: (network: Network) => all().filter(({ order }) => order.network === network),
    /** Ends a job soon, between two transactions. Finished jobs are left alone. */
    stop: (jobId: string) => {
      const found = [...running.values()].find(({ job }) => job.jobId === jobId);
      if (found !== undefined) abort(found);
    },
    /** Stops all jobs and refuses new ones. */
    close: async () => {
      isClosed = true;
      const under = [...running.values()];
      for (const each of under) abort(each);
      await Promise.all(under.map((each) => each.ended));
    },
  };
}

function busy({ order, startedBy, startedAt }: Job): AppError {
  return conflict`a job for ${order.network} is already running: ${nameWork(order)}, started by ${startedBy} at ${toIso(startedAt)}. Wait until it ends, or stop it`;
}

/**
 * Describes a job in this process for the console. `done` and `total` count blocks or addresses. `found` counts differences, or recorded
 * transfers, so far. `said` is the outcome in the command's words. `result` is `null` until the job is done. `odd` lists at most 1,000
 * addresses that aren't good, each with a comment.
 */
function describeJob(job: Job, now: UnixMs) {
  const { jobId, order, startedBy, startedAt, endedAt, state, progress, outcome } = job;
  const seconds = ((endedAt ?? now) - startedAt) / 1000;
  const said: readonly (Text | null)[] = outcome?.said ?? sayEnd(job);
  return {
    ...{ jobId, network: order.network, kind: order.kind },
    ...{ from: order.range?.from ?? null, to: order.range?.to ?? null },
    ...{ startedBy, startedAt: toIso(startedAt), endedAt: endedAt && toIso(endedAt), state, ...progress },
    perSecond: seconds > 0 && progress.done > 0 ? progress.done / seconds : null,
    said: said.filter((each) => each !== null),
    result: outcome?.result ?? null,
  };
}

/** Describes a job that is still running, or that ended before its work was done. */
function sayEnd({ state, error, order, progress }: Job): Text[] {
  if (state === 'running' || state === 'stopping') return [];
  const why = state === 'failed' ? [error?.text ?? "the job failed; see the service's log for the reason"] : [];
  const { range } = order;
  if (range === null || progress.done === 0) return why;
  const last = range.from + progress.done - 1;
  const next = last < range.to ? `; to continue, start a job at block ${last + 1}` : '';
  return [...why, `blocks ${range.from} to ${last} are done${next}`];
}

type ShowJobsDeps = { now(): UnixMs; jobs: Jobs };

/** Lists the jobs that this process knows for a network, newest first. */
export async function listJobs({ now, jobs }: ShowJobsDeps, _actor: Actor, { network }: { network: Network }) {
  return { network, data: jobs.list(network).map((job) => describeJob(job, now())) };
}

/** Shows one job with its outcome. Throws `NOT_FOUND`. */
export async function showJob({ now, jobs }: ShowJobsDeps, _actor: Actor, { jobId }: { jobId: string }) {
  return describeJob(findJob(jobs, jobId), now());
}

function findJob(jobs: Jobs, jobId: string): Job {
  const job = jobs.find(jobId);
  if (job !== null) return job;
  throw notFound`there is no job ${clip(jobId)} here: a job is kept only in the process that ran it, until the process stops or newer jobs replace the job`;
}

type StartJobDeps = { db: Sql; now(): UnixMs; networks: readonly Network[]; jobs: Jobs };

/**
 * Starts work that takes minutes, and returns at once. Throws `FORBIDDEN`, `NOT_FOUND`, `INVALID_ARGUMENT`, or `CONFLICT` if a job is
 * already running.
 */
export async function startJob(
  { db, now, networks, jobs }: StartJobDeps,
  actor: Actor,
  { network: name, work }: { network: string | undefined; work: JobWork },
): Promise<JobView> {
  authorize(actor, JOB_ACTIONS[work.kind]);
  const network = selectNetwork(networks, name);
  const { solid } = await followedCursor(db, network);
  if (work.range !== null) refuseAbove(work.range.to, solid.number);
  return describeJob(jobs.start(actor, { ...work, network }), now());
}

/** Ends a job soon. Finished jobs are left alone. Throws `NOT_FOUND` or `FORBIDDEN`. */
export async function stopJob({ now, jobs }: ShowJobsDeps, actor: Actor, { jobId }: { jobId: string }) {
  const job = findJob(jobs, jobId);
  authorize(actor, JOB_ACTIONS[job.order.kind]);
  jobs.stop(jobId);
  return describeJob(job, now());
}
