import { isAllowed } from '../../operator/authorize.ts';
import { explainDifference } from '../../operator/chain/range-words.ts';
import type { DifferenceView } from '../../operator/chain/views.ts';
import { JOB_ACTIONS } from '../../operator/jobs/job-order.ts';
import type { JobView } from '../../operator/jobs/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { alert, duration, facts, ltr, number, outside, shortAddress, table, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';
import { JOBS, jobBadge, LOST, nameJob, sayProgress } from './jobs-part.ts';

/** How often a page of a job that runs loads itself again. */
const REFRESH_S = 2;
/** Rows of a page: with more it would pass 30 kB. */
const MAX_ROWS = 100;

type Shown = { job: JobView; isStill: boolean; problem: Html | null };

/** How far a job is, or what came of it. `isStill`: it is not loaded again by itself. */
export function jobPage(visit: Visit, project: ListedProjectView | null, { job, isStill, problem }: Shown): Page {
  const isRunning = job.state === 'running' || job.state === 'stopping';
  const path = `/chain/jobs/${job.jobId}`;
  const still = html` <a href="${urlTo(visit, path, project, isStill ? {} : { still: '1' })}">${isStill ? 'Look again, and go on by itself' : 'Do not load again by itself'}</a>`;
  const stop =
    job.state === 'running' && isAllowed(visit.actor, JOB_ACTIONS[job.kind])
      ? html`<div class="actions">${oneClick(visit, `${path}/stop`, 'Stop it')}</div>`
      : null;
  return {
    title: nameJob(job),
    about: project,
    ...(isRunning && !isStill ? { refreshS: REFRESH_S } : {}),
    ...(problem === null ? {} : { status: 409 }),
    beside: jobBadge(job),
    main: html`${problem === null ? null : alert(problem)}<p><a href="${urlTo(visit, '/chain', project)}">Chain</a></p>
${renderSaid(job)}
<section class="card" aria-labelledby="progress"><h2 id="progress">${isRunning ? 'How far it is' : 'How it went'}</h2>${renderProgress(job, isRunning)}${stop}
${isRunning ? html`<p class="hint">${isStill ? 'The page stands still.' : `The page loads again every ${REFRESH_S} seconds.`}${still}</p><p class="hint">${LOST}</p>` : null}</section>
${renderResult(visit, project, job)}`,
  };
}

/** The words of the command, the first large. */
function renderSaid({ said }: JobView): Html | null {
  const [first, ...others] = said;
  if (first === undefined) return null;
  const more = others.map((text) => html`<li>${renderText(text)}</li>`);
  return html`<section class="card verdict" aria-label="Outcome"><p class="first">${renderText(first)}</p>${more.length === 0 ? null : html`<ul>${more}</ul>`}</section>`;
}

function renderProgress(job: JobView, isRunning: boolean): Html {
  const { kind, done, total, perSecond, found, startedAt, startedBy, endedAt, network } = job;
  const unit = kind === 'reconcile' ? 'addresses' : 'blocks';
  const leftMs = perSecond === null || total === null ? null : ((total - done) / perSecond) * 1000;
  const left = isRunning && leftMs !== null ? `, about ${duration(leftMs)} left` : '';
  const bar =
    total === null
      ? null
      : html`<p><progress value="${done}" max="${total}" aria-label="${JOBS[kind]}: ${done} of ${total}"></progress></p>`;
  return html`${bar}${facts([
    ['Done', sayProgress(job)],
    ['Speed', perSecond === null ? null : `${perSecond.toFixed(1)} ${unit} a second${left}`],
    ['So far', isRunning && kind !== 'reconcile' ? `${number(found)} ${FOUND[kind]}` : null],
    ['Network', network],
    ['Started', html`${time(startedAt)} UTC by ${outside(startedBy, 100)}`],
    ['Ended', endedAt === null ? null : html`${time(endedAt)} UTC`],
  ])}`;
}

const FOUND = { verify: 'differences', rescan: 'transfers that were missing' };

function renderResult(visit: Visit, project: ListedProjectView | null, { jobId, result }: JobView): Html | null {
  if (result === null) return null;
  if ('verified' in result) return renderDifferences(visit, project, jobId, result.verified.differences);
  if (!('books' in result) || result.books.odd.length === 0) return null;
  const { odd, node } = result.books;
  return html`<section class="card flush" aria-labelledby="rows"><h2 id="rows">Addresses that do not balance <small>by ${outside(node)}</small></h2>${table('Addresses that do not balance', BOOKS, odd.slice(0, MAX_ROWS))}</section>${more(odd.length)}`;
}

type Odd = Extract<NonNullable<JobView['result']>, { books: unknown }>['books']['odd'][number];

const BOOKS = [
  [
    'Address',
    ({ row: { address } }: Odd) => html`<a class="row" href="/find?q=${address}">${shortAddress(address)}</a>`,
  ],
  ['Ledger', ({ row }: Odd) => (row.status === 'differs' ? ltr(row.ledger) : '–'), 'number'],
  ['Chain', ({ row }: Odd) => (row.status === 'differs' ? ltr(row.chain) : '–'), 'number'],
  ['Difference', ({ row }: Odd) => (row.status === 'differs' ? ltr(row.difference) : '–'), 'number'],
  ['Note', ({ row, note }: Odd) => html`${row.status === 'differs' ? '' : 'too early: '}${outside(note, 200)}`],
] as const;

function renderDifferences(
  visit: Visit,
  project: ListedProjectView | null,
  jobId: string,
  differences: readonly DifferenceView[],
): Html | null {
  if (differences.length === 0) return null;
  const isMended = differences.every(({ kind }) => kind === 'missing') && isAllowed(visit.actor, 'rescanRange');
  const mend = isMended
    ? html`<div class="actions"><a class="button" href="${urlTo(visit, `/chain/jobs/${jobId}/rescan`, project)}">Rescan these blocks</a></div>`
    : null;
  return html`<section class="card flush" aria-labelledby="rows"><h2 id="rows">Differences</h2>${table('Differences between the ledger and the chain', DIFFERENCES, differences.slice(0, MAX_ROWS))}</section>${more(differences.length)}${mend}`;
}

const more = (count: number) =>
  count > MAX_ROWS ? html`<p class="hint">${number(count - MAX_ROWS)} more are not shown.</p>` : null;

const DIFFERENCES = [
  ['Difference', (row: DifferenceView) => outside(explainDifference(row), 200)],
  ['Side', ({ side }: DifferenceView) => side],
  ['Address', ({ address }: DifferenceView) => shortAddress(address)],
  ['USDT', ({ amount }: DifferenceView) => ltr(amount), 'number'],
  ['Block', ({ blockNumber }: DifferenceView) => ltr(number(blockNumber)), 'number'],
  [
    'Transaction',
    ({ txId }: DifferenceView) => html`<a class="row" href="/find?q=${txId}">${ltr(`${txId.slice(0, 10)}…`)}</a>`,
  ],
] as const;
