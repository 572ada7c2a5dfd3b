import { poolShare } from '../../chain/nodes/pool-share.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import type { Actor } from '../actor.ts';
import type { OperationDeps } from '../operation.ts';
import { type JobOrder, nameWork } from './job-order.ts';
import { limitConnections } from './limit-connections.ts';
import { type Outcome, runJob } from './run-job.ts';

/** What goes on in this process after the answer that started it, or has ended. `total` `null`: it is not known yet. */
export type Job = {
  readonly jobId: string;
  readonly order: JobOrder;
  readonly startedBy: string;
  readonly startedAt: UnixMs;
  readonly state: 'running' | 'stopping' | 'done' | 'stopped' | 'failed';
  readonly endedAt: UnixMs | null;
  readonly progress: { readonly done: number; readonly total: number | null; readonly found: number };
  readonly outcome: Outcome | null;
  /** Why it failed. An error that nobody foresaw stands in the log. */
  readonly error: AppError | null;
};

type Running = { job: { -readonly [Name in keyof Job]: Job[Name] }; stopping: AbortController; ended: Promise<void> };

export type Jobs = {
  /** Errors: `CONFLICT` where one of the network runs. */
  start(actor: Actor, order: JobOrder): Job;
  find(jobId: string): Job | null;
  /** Those of a network, the newest first. */
  list(network: Network): readonly Job[];
  /** It ends soon after, between two transactions. One that has ended stays as it is. */
  stop(jobId: string): void;
  /** Stops all of them, and starts none any more. */
  close(): Promise<void>;
};

type Deps = Pick<OperationDeps, 'db' | 'now' | 'random' | 'log' | 'nodes'>;

/** Ended jobs that are kept: with a thousand differences each, some megabytes. */
const MAX_KEPT = 10;
/** The pages of the console have the rest. */
const CONNECTIONS = 2;
/** A node that limits our requests, or restarts, answers again within this time. */
const PATIENCE_MS = 60_000;

/** The jobs of a process: one at a time for a network. */
export function createJobs({ db, now, random, log, nodes }: Deps): Jobs {
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
        const onProgress = (progress: Job['progress']) => {
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
    start: (actor, order) => {
      if (isClosed) throw new AppError('CONFLICT', 'this process stops, and starts nothing any more');
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
    list: (network) => all().filter(({ order }) => order.network === network),
    stop: (jobId) => {
      const found = [...running.values()].find(({ job }) => job.jobId === jobId);
      if (found !== undefined) abort(found);
    },
    close: async () => {
      isClosed = true;
      const under = [...running.values()];
      for (const each of under) abort(each);
      await Promise.all(under.map((each) => each.ended));
    },
  };
}

function busy({ order, startedBy, startedAt }: Job): AppError {
  return new AppError(
    'CONFLICT',
    `a job of ${order.network} runs already: ${nameWork(order)}, started by ${startedBy} at ${toIso(startedAt)}. Wait until it ends, or stop it`,
  );
}
