import type { Hint } from '../../domain/message.ts';
import type { Actor } from '../actor.ts';
import { reconcileNow } from '../chain/reconcile-now.ts';
import { rescanRange } from '../chain/rescan-range.ts';
import { verifyRange } from '../chain/verify-range.ts';
import type { ReconciledAddress, RescannedView, VerifiedRangeView } from '../chain/views.ts';
import type { NodeDeps } from '../node-connection.ts';
import type { JobWork } from './job-order.ts';

/** `found`: differences, or transfers that were recorded, so far. `total` is known when something was done. */
type Progress = { done: number; total: number | null; found: number };
export type WorkDeps = NodeDeps & { signal: AbortSignal; onProgress(progress: Progress): void };

/** What came of a job. Of addresses whose books balance, which may be thousands, only the number is kept. */
export type Outcome =
  | { kind: 'verify'; view: VerifiedRangeView; hint: Hint | null }
  | { kind: 'rescan'; view: RescannedView }
  | {
      kind: 'reconcile';
      node: string;
      total: number;
      good: number;
      odd: readonly ReconciledAddress[];
      hints: readonly Hint[];
    };

/** More of them say nothing new. */
const MAX_ODD = 1000;

/** Runs the use case that a job is of. Errors: its own, and that of `signal`. */
export async function runJob(deps: WorkDeps, actor: Actor, work: JobWork): Promise<Outcome> {
  if (work.kind === 'reconcile') {
    const onProgress = (done: number, total: number) => deps.onProgress({ done, total, found: 0 });
    const { view, hints } = await reconcileNow({ ...deps, onProgress }, actor, { addresses: [] });
    const good = view.data.filter(({ status }) => status === 'good').length;
    const odd = view.data.filter(({ status }) => status !== 'good').slice(0, MAX_ODD);
    return { kind: 'reconcile', node: view.node, total: view.data.length, good, odd, hints: hints.slice(0, MAX_ODD) };
  }
  const { kind, range } = work;
  const total = range.to - range.from + 1;
  const onProgress = (done: number, found: number) => deps.onProgress({ done, total, found });
  if (kind === 'verify') return { kind, ...(await verifyRange({ ...deps, onProgress }, actor, range)) };
  return { kind, view: await rescanRange({ ...deps, onProgress }, actor, range) };
}
