import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { describeJob } from './describe-job.ts';
import type { Job, Jobs } from './jobs.ts';
import type { JobListView, JobView } from './views.ts';

type Deps = { now(): UnixMs; jobs: Jobs };

/** The jobs of a network that this process knows, the newest first. */
export async function listJobs(
  { now, jobs }: Deps,
  _actor: Actor,
  { network }: { network: Network },
): Promise<JobListView> {
  return { network, data: jobs.list(network).map((job) => describeJob(job, now())) };
}

/** One of them, with what came of it. Errors: `NOT_FOUND`. */
export async function showJob({ now, jobs }: Deps, _actor: Actor, { jobId }: { jobId: string }): Promise<JobView> {
  return describeJob(findJob(jobs, jobId), now());
}

export function findJob(jobs: Jobs, jobId: string): Job {
  const job = jobs.find(jobId);
  if (job !== null) return job;
  throw new AppError(
    'NOT_FOUND',
    `there is no job ${clip(jobId)} here: the process that runs a job knows it, with its newest ones, until it stops`,
  );
}
