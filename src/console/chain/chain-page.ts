import { alarmRow } from '../../domain/alarm-kinds.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { showStatus } from '../../operator/chain/show-status.ts';
import { sayWatcher } from '../../operator/chain/status-words.ts';
import type { ChainStatusView, ProducersView } from '../../operator/chain/views.ts';
import type { JobListView } from '../../operator/subjects/jobs.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { duration, live, ltr, number, outside, table, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { renderKept, renderText } from '../page/words.ts';
import { alarmPath } from './alarm-form.ts';
import { renderJobs } from './jobs-part.ts';
import { sayProducers } from './producers-page.ts';

type Status = Awaited<ReturnType<typeof showStatus>>;
/** `jobs` `null`: this process has no nodes of the network. */
export type Seen = Status & { producers: ProducersView; jobs: JobListView | null; now: number; said: Html | null };

/** May I believe what I see? */
export function chainPage(visit: Visit, project: ListedProjectView, seen: Seen): Page {
  const { view, now, said } = seen;
  return {
    title: 'Chain',
    about: project,
    beside: html`<p class="asof" id="asof" data-live>As of ${new Date(now).toISOString().slice(11, 19)} UTC <a href="${urlTo(visit, '/chain', project)}">Look again</a></p>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${live('troubles', html`${renderHalt(visit, project, view)}`, { isSpoken: true })}
${live('standings', renderStanding(seen))}
${live('warnings', renderAlarms(visit, project, view), { isSpoken: true })}
${live('node-list', html`${renderNodes(view)}`)}
${live('makers', renderProducers(visit, project, seen))}
${live('job-list', renderJobs(visit, project, seen.jobs))}`,
  };
}

function renderHalt(visit: Visit, project: ListedProjectView, { halt }: ChainStatusView): Html | null {
  if (halt === null) return null;
  const step = isAllowed(visit.actor, 'resumeChain')
    ? html`<p><a class="button" href="${urlTo(visit, '/chain/resume', project)}">It is settled</a></p>`
    : html`<p class="hint">An owner decides when it goes on.</p>`;
  return html`<section class="card" aria-labelledby="halt"><h2 id="halt">The watcher stopped, and nothing becomes paid</h2><div class="notice"><p>${time(halt.at)} UTC: ${renderKept(halt.reason, MAX_TEXT)}</p></div><p>Find out which of the two is right, the ledger or the chain.</p>${step}</section>`;
}

/** As long as an alarm is kept. */
const MAX_TEXT = 2000;

function renderStanding({ view, state, now }: Seen): Html {
  const { network, examined, recorded, behind, watcher, halt } = view;
  const causes = behind.why.filter(({ code }) => halt === null || code !== 'halted');
  const isWell = behind.why.length === 0;
  const tile = (name: string, block: number | null, hint: Html | string) =>
    html`<div class="tile"><dt>${name}</dt><dd>${block === null ? '–' : ltr(number(block))}</dd><dd class="hint">${hint}</dd></div>`;
  const age = examined === null ? 'no block was examined yet' : `${duration(now - Date.parse(examined.time))} old`;
  const nodesSay = watcher === null ? '' : `the nodes say ${number(watcher.nodeSolidNumber)}`;
  return html`<section class="card" aria-labelledby="standing"><h2 id="standing">${network}</h2><p><span class="badge" data-state="${isWell ? 'PAID' : 'CONFIRMING'}">${isWell ? 'Up to date' : behind.blocks === 0 ? 'Held up' : 'Behind'}</span> ${sayBehind(behind)}.</p>
${causes.length === 0 ? null : html`<ul>${causes.map(({ text }) => html`<li>${renderKept(text, MAX_TEXT)}</li>`)}</ul>`}
<p class="hint">The watcher: ${sayWatcher(state)}.</p></section>
<section aria-labelledby="heights"><h2 id="heights" class="unseen">Blocks</h2><dl class="tiles">${tile('Newest block', examined?.number ?? null, age)}
${tile('Irreversible, by our own proof', watcher?.ownSolidNumber ?? null, nodesSay)}
${tile('Recorded', recorded?.number ?? null, recorded === null ? 'nothing yet' : html`of ${time(recorded.time)} UTC`)}</dl></section>`;
}

function sayBehind({ blocks, why }: ChainStatusView['behind']): string {
  if (why.length === 0) return 'all that the nodes call irreversible is recorded, and no alarm holds it up';
  if (blocks === null) return 'how far is not known';
  if (blocks === 0) return 'what was irreversible is recorded, and nothing goes on';
  return `${number(blocks)} irreversible ${blocks === 1 ? 'block is' : 'blocks are'} not recorded`;
}

function renderAlarms(visit: Visit, project: ListedProjectView, { alarms, halt }: ChainStatusView): Html {
  // The halt has a card of its own.
  const open = alarms.filter(({ kind }) => halt === null || kind !== 'halted');
  if (open.length === 0) {
    const more = halt === null ? '' : ' but the halt';
    return html`<section class="card" aria-labelledby="alarms"><h2 id="alarms">No alarm${more}</h2><p>What somebody must know of this network stands here, with what to do.</p></section>`;
  }
  const items = open.map((alarm) => renderAlarm(visit, project, alarm));
  return html`<section class="card" aria-labelledby="alarms"><h2 id="alarms">${open.length === 1 ? 'One alarm' : `${open.length} alarms`}</h2><ul class="concerns">${items}</ul></section>`;
}

function renderAlarm(visit: Visit, project: ListedProjectView, alarm: ChainStatusView['alarms'][number]): Html {
  const { kind, detail, raisedAt, seenCount } = alarm;
  const close =
    alarmRow(kind).endsBy === 'cause'
      ? null
      : isAllowed(visit.actor, 'acknowledgeAlarms')
        ? html`<a class="button quiet" href="${urlTo(visit, alarmPath(alarm), project)}">Close it</a>`
        : html`<p class="hint">An operator closes it.</p>`;
  return html`<li data-rank="2"><span class="rank">${kind}</span><div><p>${renderKept(detail, MAX_TEXT)}</p><p>${renderText(alarmRow(kind).advice)}</p><p class="hint">Since ${time(raisedAt)} UTC, seen ${number(seenCount)} ${seenCount === 1 ? 'time' : 'times'}.</p>${close}</div></li>`;
}

type NodeView = NonNullable<ChainStatusView['watcher']>['nodes'][number];

function renderNodes({ watcher, updatedAt }: ChainStatusView): Html | null {
  if (watcher === null || updatedAt === null) return null;
  return html`<section class="card flush" aria-labelledby="nodes"><h2 id="nodes">Nodes, as the watcher saw them <small>${time(updatedAt)} UTC</small></h2>${table('Nodes', NODES, watcher.nodes)}</section>`;
}

/** As much of what a node said as a list shows. */
const MAX_REASON = 200;

const NODES = [
  [
    'Node',
    ({ url, operator }: NodeView) =>
      html`${outside(url)}${operator === url ? null : html`<br><small>${outside(operator)}</small>`}`,
  ],
  ['State', renderState],
  ['Answers in', ({ answerMs }: NodeView) => (answerMs === null ? '–' : `${Math.round(answerMs)} ms`), 'number'],
  [
    'Requests today',
    ({ requestsToday, requestsPerDay = null }: NodeView) =>
      `${number(requestsToday)}${requestsPerDay === null ? '' : ` of ${number(requestsPerDay)}`}`,
    'number',
  ],
  ['Refused', ({ refusals, requests }: NodeView) => `${number(refusals)} of ${number(requests)}`, 'number'],
] as const;

/** What a node disagreed in, or failed by, is its reason. */
function renderState({ state, pausedForMs, reason, failures = 0 }: NodeView): Html {
  const look = state === 'healthy' ? 'PAID' : state === 'unknown' ? 'EXPIRED' : 'CONFIRMING';
  const left = pausedForMs > 0 ? ` for ${Math.ceil(pausedForMs / 1000)} s` : '';
  const row = failures > 1 ? ` (${failures} failures in a row)` : '';
  const why = reason === null ? null : html` <small>${outside(reason, MAX_REASON)}${row}</small>`;
  return html`<span class="badge" data-state="${look}">${state}${left}</span>${why}`;
}

function renderProducers(visit: Visit, project: ListedProjectView, { producers: { data } }: Seen): Html {
  const [newest] = data;
  const text =
    newest === undefined
      ? html`None is known yet: the watcher learns them when it first follows the network.`
      : sayProducers(newest);
  return html`<section class="card" aria-labelledby="producers"><h2 id="producers">Who may make blocks</h2><p>${text}</p><p><a href="${urlTo(visit, '/chain/producers', project)}">Their names, and every change</a></p></section>`;
}
