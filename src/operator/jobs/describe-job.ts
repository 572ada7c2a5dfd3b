import type { Text } from '../../domain/message.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { adviseOnDifferences, sayRescanned, sayUnattested, sayVerified } from '../chain/range-words.ts';
import { adviseOnBooks, noteReconciled } from '../chain/reconcile-words.ts';
import type { Job } from './jobs.ts';
import type { Outcome } from './run-job.ts';
import type { JobView } from './views.ts';

/** A job as it is shown. */
export function describeJob(job: Job, now: UnixMs): JobView {
  const { jobId, order, startedBy, startedAt, endedAt, state, progress, outcome } = job;
  const seconds = ((endedAt ?? now) - startedAt) / 1000;
  return {
    ...{ jobId, network: order.network, kind: order.kind },
    ...{ from: order.range?.from ?? null, to: order.range?.to ?? null },
    ...{ startedBy, startedAt: toIso(startedAt), endedAt: endedAt && toIso(endedAt), state, ...progress },
    perSecond: seconds > 0 && progress.done > 0 ? progress.done / seconds : null,
    said: outcome === null ? sayEnd(job) : sayOutcome(outcome),
    result: outcome && describeOutcome(outcome),
  };
}

function describeOutcome(outcome: Outcome): NonNullable<JobView['result']> {
  switch (outcome.kind) {
    case 'verify':
      return { verified: outcome.view };
    case 'rescan':
      return { rescanned: outcome.view };
    case 'reconcile': {
      const { node, total, good, odd } = outcome;
      return { books: { node, total, good, odd: odd.map((row) => ({ row, note: noteReconciled(row, false) })) } };
    }
  }
}

function sayOutcome(outcome: Outcome): Text[] {
  if (outcome.kind === 'reconcile') {
    const { good, total, hints } = outcome;
    const sum = `${good} of ${total} addresses balance`;
    return good === total ? [sum] : [sum, ...adviseOnBooks(hints)];
  }
  const unattested = sayUnattested(outcome.view);
  if (outcome.kind === 'rescan') return [sayRescanned(outcome.view), ...(unattested === null ? [] : [unattested])];
  const { view, hint } = outcome;
  if (hint !== null) return [sayVerified(view), adviseOnDifferences(hint)];
  return [sayVerified(view), ...(unattested === null ? [] : [unattested])];
}

/** What is said of a job that runs, or ended before its work did. */
function sayEnd({ state, error, order, progress }: Job): Text[] {
  if (state === 'running' || state === 'stopping') return [];
  const why = state === 'failed' ? [error?.text ?? 'it failed for a reason that stands in the log of the service'] : [];
  const { range } = order;
  if (range === null || progress.done === 0) return why;
  const last = range.from + progress.done - 1;
  const next = last < range.to ? `; go on from block ${last + 1}` : '';
  return [...why, `blocks ${range.from} to ${last} are done${next}`];
}
