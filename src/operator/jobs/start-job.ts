import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { authorize } from '../authorize.ts';
import { followedCursor } from '../chain/followed-cursor.ts';
import { refuseAbove } from '../chain/read-solid.ts';
import { selectNetwork } from '../chain/select-network.ts';
import { describeJob } from './describe-job.ts';
import { JOB_ACTIONS, type JobWork } from './job-order.ts';
import type { Jobs } from './jobs.ts';
import type { JobView } from './views.ts';

type Deps = { db: Sql; now(): UnixMs; networks: readonly Network[]; jobs: Jobs };

/** Starts what takes minutes, and returns at once. Errors: `FORBIDDEN`, `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT` where one runs. */
export async function startJob(
  { db, now, networks, jobs }: Deps,
  actor: Actor,
  { network: name, work }: { network: string | undefined; work: JobWork },
): Promise<JobView> {
  authorize(actor, JOB_ACTIONS[work.kind]);
  const network = selectNetwork(networks, name);
  const { solid } = await followedCursor(db, network);
  if (work.range !== null) refuseAbove(work.range.to, solid.number);
  return describeJob(jobs.start(actor, { ...work, network }), now());
}
