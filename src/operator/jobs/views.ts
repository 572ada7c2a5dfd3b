import { type Static, Type } from '../../runtime/type.ts';
import { ReconciledAddress, RescannedView, VerifiedRangeView } from '../chain/views.ts';
import { nullable, Said, Time } from '../view.ts';
import { JOB_KINDS } from './job-order.ts';

const Text = Type.String();
const Count = Type.Integer();

const Books = Type.Object({
  ...{ node: Text, total: Count, good: Count },
  /** Those that are not good, each with what is said beside it; at most 1,000. */
  odd: Type.Array(Type.Object({ row: ReconciledAddress, note: Text })),
});

/**
 * A job of this process. `done` of `total` blocks or addresses; `found`: differences, or transfers that were recorded, so far. `said`: what
 * came of it, in the words of the command. `result` is `null` until it is done.
 */
export const JobView = Type.Object({
  ...{ jobId: Text, network: Text, kind: Type.Enum(JOB_KINDS), from: nullable(Count), to: nullable(Count) },
  ...{ startedBy: Text, startedAt: Time, endedAt: nullable(Time) },
  state: Type.Enum(['running', 'stopping', 'done', 'stopped', 'failed']),
  ...{ done: Count, total: nullable(Count), perSecond: nullable(Type.Number()), found: Count },
  said: Type.Array(Said),
  result: nullable(
    Type.Union([
      Type.Object({ verified: VerifiedRangeView }),
      Type.Object({ rescanned: RescannedView }),
      Type.Object({ books: Books }),
    ]),
  ),
});
export type JobView = Static<typeof JobView>;

export const JobListView = Type.Object({ network: Text, data: Type.Array(JobView) });
export type JobListView = Static<typeof JobListView>;
