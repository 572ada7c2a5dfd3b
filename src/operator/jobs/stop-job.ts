import type { UnixMs } from '../../domain/time.ts';
import type { Actor } from '../actor.ts';
import { authorize } from '../authorize.ts';
import { describeJob } from './describe-job.ts';
import { JOB_ACTIONS } from './job-order.ts';
import type { Jobs } from './jobs.ts';
import { findJob } from './show-jobs.ts';
import type { JobView } from './views.ts';

/** Ends a job soon. One that has ended stays as it is. Errors: `NOT_FOUND`, `FORBIDDEN`. */
export async function stopJob(
  { now, jobs }: { now(): UnixMs; jobs: Jobs },
  actor: Actor,
  { jobId }: { jobId: string },
): Promise<JobView> {
  const job = findJob(jobs, jobId);
  authorize(actor, JOB_ACTIONS[job.order.kind]);
  jobs.stop(jobId);
  return describeJob(job, now());
}
