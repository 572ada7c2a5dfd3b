import { isAllowed } from '../../operator/authorize.ts';
import { formatHint } from '../../operator/command-words.ts';
import { JOB_ACTIONS, JOB_KINDS, type JobKind, type JobListView, type JobView } from '../../operator/subjects/jobs.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { number, outside, table, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';

export const JOBS: Record<JobKind, string> = {
  verify: 'Verify blocks',
  rescan: 'Rescan blocks',
  reconcile: 'Compare all balances',
};

export function nameJob({ kind, from, to }: Pick<JobView, 'kind' | 'from' | 'to'>): string {
  return from === null || to === null ? JOBS[kind] : `${JOBS[kind]} ${number(from)} to ${number(to)}`;
}

/** A state as it looks. */
export function jobBadge({ state }: Pick<JobView, 'state'>): Html {
  const look = {
    running: 'CONFIRMING',
    stopping: 'CONFIRMING',
    done: 'PAID',
    stopped: 'EXPIRED',
    failed: 'CONFIRMING',
  };
  return html`<span class="badge" data-state="${look[state]}">${state}</span>`;
}

/** `40 of 300 blocks`. */
export function sayProgress({ kind, done, total }: Pick<JobView, 'kind' | 'done' | 'total'>): string {
  const what = kind === 'reconcile' ? 'addresses' : 'blocks';
  return total === null ? 'none yet' : `${number(done)} of ${number(total)} ${what}`;
}

/** What is lost, so that nobody waits for it. */
export const LOST =
  'This process keeps the newest ten jobs in memory: a restart ends what runs, and forgets all of them. What a rescan recorded stays, and stands in the audit log.';

/** What takes minutes: the forms that start it, and what of it runs or ended. */
export function renderJobs(visit: Visit, project: ListedProjectView, jobs: JobListView | null): Html {
  const { network } = project;
  if (jobs === null) {
    const command = { command: 'chain verify', input: { network, from: '…', to: '…' } } as const;
    return html`<section class="card" aria-labelledby="jobs"><h2 id="jobs">Is the ledger what the chain is?</h2><p>This process has no nodes of ${network}, so it cannot read blocks again. On the machine where the nodes are configured, a command can: <code>${formatHint(command)}</code></p></section>`;
  }
  const links = JOB_KINDS.filter((kind) => isAllowed(visit.actor, JOB_ACTIONS[kind])).map(
    (kind) => html`<a class="button quiet" href="${urlTo(visit, `/chain/${kind}`, project)}">${JOBS[kind]}</a>`,
  );
  const columns = [
    [
      'Job',
      (job: JobView) =>
        html`<a class="row" href="${urlTo(visit, `/chain/jobs/${job.jobId}`, project)}">${nameJob(job)}</a>`,
    ],
    ['State', jobBadge],
    ['Done', sayProgress, 'number'],
    ['Started', ({ startedAt }: JobView) => time(startedAt)],
    ['By', ({ startedBy }: JobView) => outside(startedBy, 40)],
  ] as const;
  const list = jobs.data.length === 0 ? null : table('Jobs, the newest first', columns, jobs.data);
  return html`<section class="card" aria-labelledby="jobs"><h2 id="jobs">Is the ledger what the chain is?</h2><p>Blocks are read again from the nodes and verified as at first; balances are asked of a node. One at a time for a network.</p><div class="actions">${links}</div><p class="hint">${LOST}</p></section>
${list === null ? null : html`<section class="card flush" aria-label="Jobs">${list}</section>`}`;
}
