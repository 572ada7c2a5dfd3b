import { adviceOn, alarmRow } from '../../../core/domain/alarm-kinds.ts';
import { AppError } from '../../../core/domain/errors.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { clip } from '../../operator/input/problems.ts';
import {
  acknowledgeAlarms,
  type ChainStatusView,
  resumeChain,
  sayWatcher,
  showStatus,
} from '../../operator/subjects/chain.ts';
import { findProducers, type ProducersView } from '../../operator/subjects/chain-producers.ts';
import { type JobListView, listJobs } from '../../operator/subjects/jobs.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { badge, type Column, duration, live, ltr, number, outside, table, time } from '../page/pieces.ts';
import { type Answer, type Asked, performFor, type Routes } from '../page/routes.ts';
import { needProject, pathPart, readQuery, urlTo, type Visit } from '../page/visit.ts';

import { renderKept, renderText } from '../page/words.ts';
import { addJobRoutes, type ChainDeps, renderJobs } from './jobs.ts';

/** Adds the pages for the chain's state, the decisions that it needs, and the jobs that read it again. */
export function addChainRoutes(routes: Routes, deps: ChainDeps): void {
  routes.get('/chain', 'showStatus', (asked) => show(deps, asked));
  routes.get('/chain/producers', 'listProducers', async ({ visit, request }) => {
    const project = needProject(visit, readQuery(request, ['project']).project);
    return producersPage(visit, project, await findProducers(deps.db, project.network));
  });
  addJobRoutes(routes, deps);
  addForm(routes, deps, {
    ...byOperation(deps, acknowledgeAlarms, (_filled, { project: { network }, alarm }: Concerned) => {
      return { network, alarm: alarm.kind, subject: alarm.subject };
    }),
    path: '/chain/alarms/:alarm',
    find: async ({ visit, request }, asked) => {
      const project = needProject(visit, asked);
      const text = pathPart(request, 'alarm');
      const { view } = await showStatus(deps, visit.actor, { network: project.network });
      const alarm = view.alarms.find(
        ({ kind, subject }) => alarmRow(kind).endsBy === 'operator' && `${kind}.${subject}` === text,
      );
      if (alarm !== undefined) return { project, alarm };
      throw new AppError('NOT_FOUND', `${project.network} has no open ${clip(text)} alarm that you can close`);
    },
    show: (visit, { project, alarm: { kind, subject, detail, raisedAt, seenCount } }) => ({
      ...{ title: 'Close an alarm', about: project, button: 'Close the alarm' },
      consequence: html`<p><strong>${kind}</strong>${subject === '' ? null : html` ${outside(subject, 200)}`}</p><p>${renderKept(detail, 2000)}</p><p>${renderText(adviceOn(kind))}</p><p class="hint">Since ${time(raisedAt)} UTC, seen ${seenCount} ${seenCount === 1 ? 'time' : 'times'}. When you close the alarm, it disappears from the lists and metrics, and the audit log records this. If the problem happens again, Quittance raises a new alarm.</p>`,
      back: urlTo(visit, '/chain', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/chain', project, { done: 'closed' }) }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, resumeChain, ({ haltedAt = '' }, { project: { network } }: Halted) => {
      return { network, isSettled: true, haltedAt, reason: undefined };
    }),
    path: '/chain/resume',
    find: async ({ visit }, asked) => {
      const project = needProject(visit, asked);
      const { network } = project;
      const given = { network, isSettled: false, haltedAt: undefined, reason: undefined };
      const { halt } = await performFor(deps, visit, resumeChain, given);
      const { view } = await showStatus(deps, visit.actor, { network });
      return { project, halt, recorded: view.recorded?.number ?? 0 };
    },
    show: (visit, { project, halt: { at, reason }, recorded }) => ({
      ...{ title: 'Resume the watcher', about: project, button: 'I have resolved the problem: resume' },
      consequence: html`<p>${project.network} has been halted since ${time(at)} UTC:</p><div class="notice"><p>${renderKept(reason, 2000)}</p></div><p>The watcher continues after the last recorded block, ${number(recorded)}. Invoices can be marked as paid again, and they expire as usual. Recorded data does not change. If the problem still exists, the watcher halts again.</p>`,
      fields: [{ kind: 'seen', name: 'haltedAt', label: 'Halted at', value: at }],
      back: urlTo(visit, '/chain', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/chain', project, { done: 'resumed' }) }),
  });
}

type Alarm = ChainStatusView['alarms'][number];
type Concerned = { project: ListedProjectView; alarm: Alarm };
/** `recorded` is the ledger's newest block. */
type Halted = { project: ListedProjectView; halt: NonNullable<ChainStatusView['halt']>; recorded: number };

/** The kind comes first, because it never contains a dot, whereas a subject may contain anything. */
const alarmPath = ({ kind, subject }: Pick<Alarm, 'kind' | 'subject'>) =>
  `/chain/alarms/${kind}.${encodeURIComponent(subject)}`;

const DONE: Readonly<Record<string, string>> = {
  closed: 'The alarm is closed.',
  resumed: 'The watcher has been resumed. Its status is updated in a few seconds.',
};

/** Answers the question: can I trust these figures? */
async function show(deps: ChainDeps, { visit, request }: Asked): Promise<Answer> {
  const { project: asked, done } = readQuery(request, ['project', 'done']);
  const project = needProject(visit, asked);
  const { network } = project;
  const status = await showStatus(deps, visit.actor, { network });
  const producers = await findProducers(deps.db, network);
  const jobs = deps.networks.includes(network) ? await listJobs(deps, visit.actor, { network }) : null;
  const now = deps.now();
  const seen: Seen = { ...status, producers, jobs, now };
  const { view } = status;
  return {
    title: 'Chain',
    about: project,
    beside: html`<p class="asof" id="asof" data-live>As of ${new Date(now).toISOString().slice(11, 19)} UTC <a href="${urlTo(visit, '/chain', project)}">Refresh</a></p>`,
    said: DONE[done ?? ''] ?? null,
    main: html`
${live('troubles', html`${renderHalt(visit, project, view)}`, { isSpoken: true })}
${live('standings', renderStanding(seen))}
${live('warnings', renderAlarms(visit, project, view), { isSpoken: true })}
${live('node-list', html`${renderNodes(view)}`)}
${live('makers', renderProducers(visit, project, seen))}
${live('job-list', renderJobs(visit, project, seen.jobs))}`,
  };
}

type Status = Awaited<ReturnType<typeof showStatus>>;
/** `jobs` is `null` if this process has no nodes for the network. */
type Seen = Status & { producers: ProducersView; jobs: JobListView | null; now: number };

function renderHalt(visit: Visit, project: ListedProjectView, { halt }: ChainStatusView): Html | null {
  if (halt === null) return null;
  const step = isAllowed(visit.actor, 'resumeChain')
    ? html`<p><a class="button" href="${urlTo(visit, '/chain/resume', project)}">Resume the watcher</a></p>`
    : html`<p class="hint">Only an owner can resume the watcher.</p>`;
  return html`<section class="card" aria-labelledby="halt"><h2 id="halt">The watcher is halted, so no invoices are marked as paid</h2><div class="notice"><p>${time(halt.at)} UTC: ${renderKept(halt.reason, MAX_TEXT)}</p></div><p>Find out whether the ledger or the chain is correct.</p>${step}</section>`;
}

/** The maximum length of a stored alarm text. */
const MAX_TEXT = 2000;

function renderStanding({ view, state, now }: Seen): Html {
  const { network, examined, recorded, behind, watcher, halt } = view;
  const causes = behind.why.filter(({ code }) => halt === null || code !== 'halted');
  const isWell = behind.why.length === 0;
  const tile = (name: string, block: number | null, hint: Html | string) =>
    html`<div class="tile"><dt>${name}</dt><dd>${block === null ? '–' : ltr(number(block))}</dd><dd class="hint">${hint}</dd></div>`;
  const age = examined === null ? 'no block examined yet' : `${duration(now - Date.parse(examined.time))} old`;
  const nodesSay = watcher === null ? '' : `according to the nodes: ${number(watcher.nodeSolidNumber)}`;
  return html`<section class="card" aria-labelledby="standing"><h2 id="standing">${network}</h2><p>${isWell ? badge('Up to date', 'PAID') : badge(behind.blocks === 0 ? 'Held up' : 'Behind', 'CONFIRMING')} ${sayBehind(behind)}.</p>
${causes.length === 0 ? null : html`<ul>${causes.map(({ text }) => html`<li>${renderKept(text, MAX_TEXT)}</li>`)}</ul>`}
<p class="hint">Watcher: ${sayWatcher(state)}.</p></section>
<section aria-labelledby="heights"><h2 id="heights" class="unseen">Blocks</h2><dl class="tiles">${tile('Newest block', examined?.number ?? null, age)}
${tile('Irreversible, verified by Quittance', watcher?.ownSolidNumber ?? null, nodesSay)}
${tile('Recorded', recorded?.number ?? null, recorded === null ? 'nothing yet' : html`created ${time(recorded.time)} UTC`)}</dl></section>`;
}

function sayBehind({ blocks, why }: ChainStatusView['behind']): string {
  if (why.length === 0) return 'all irreversible blocks are recorded, and no alarm blocks progress';
  if (blocks === null) return 'the number of missing blocks is not known';
  if (blocks === 0) return 'all irreversible blocks are recorded, but the watcher is making no progress';
  return `${number(blocks)} irreversible ${blocks === 1 ? 'block is' : 'blocks are'} not recorded`;
}

function renderAlarms(visit: Visit, project: ListedProjectView, { alarms, halt }: ChainStatusView): Html {
  // The halt has its own card.
  const open = alarms.filter(({ kind }) => halt === null || kind !== 'halted');
  if (open.length === 0) {
    const more = halt === null ? '' : ' except the halt';
    return html`<section class="card" aria-labelledby="alarms"><h2 id="alarms">No open alarms${more}</h2><p>Problems on this network appear here, with advice on what to do.</p></section>`;
  }
  const items = open.map((alarm) => renderAlarm(visit, project, alarm));
  return html`<section class="card" aria-labelledby="alarms"><h2 id="alarms">${open.length === 1 ? 'One alarm' : `${open.length} alarms`}</h2><ul class="concerns">${items}</ul></section>`;
}

function renderAlarm(visit: Visit, project: ListedProjectView, alarm: Alarm): Html {
  const { kind, detail, raisedAt, seenCount } = alarm;
  const close =
    alarmRow(kind).endsBy === 'cause'
      ? null
      : isAllowed(visit.actor, 'acknowledgeAlarms')
        ? html`<a class="button quiet" href="${urlTo(visit, alarmPath(alarm), project)}">Close alarm</a>`
        : html`<p class="hint">An operator can close this alarm.</p>`;
  return html`<li data-rank="2"><span class="rank">${kind}</span><div><p>${renderKept(detail, MAX_TEXT)}</p><p>${renderText(adviceOn(kind))}</p><p class="hint">Since ${time(raisedAt)} UTC, seen ${number(seenCount)} ${seenCount === 1 ? 'time' : 'times'}.</p>${close}</div></li>`;
}

type NodeView = NonNullable<ChainStatusView['watcher']>['nodes'][number];

function renderNodes({ watcher, updatedAt }: ChainStatusView): Html | null {
  if (watcher === null || updatedAt === null) return null;
  return html`<section class="card flush" aria-labelledby="nodes"><h2 id="nodes">Nodes <small>as of ${time(updatedAt)} UTC</small></h2>${table('Nodes', NODES, watcher.nodes)}</section>`;
}

/** How much of a node's message is shown in a list. */
const MAX_REASON = 200;

const NODES: readonly Column<NodeView>[] = [
  [
    'Node',
    ({ url, operator }) =>
      html`${outside(url)}${operator === url ? null : html`<br><small>${outside(operator)}</small>`}`,
  ],
  ['Status', renderState],
  ['Response time', ({ answerMs }) => (answerMs === null ? '–' : `${Math.round(answerMs)} ms`), 'number'],
  [
    'Requests today',
    ({ requestsToday, requestsPerDay = null }) =>
      `${number(requestsToday)}${requestsPerDay === null ? '' : ` of ${number(requestsPerDay)}`}`,
    'number',
  ],
  ['Refused', ({ refusals, requests }) => `${number(refusals)} of ${number(requests)}`, 'number'],
];

/** The reason says how the node disagreed or failed. */
function renderState({ state, pausedForMs, reason, failures = 0 }: NodeView): Html {
  const look = state === 'healthy' ? 'PAID' : state === 'unknown' ? 'EXPIRED' : 'CONFIRMING';
  const left = pausedForMs > 0 ? ` for ${Math.ceil(pausedForMs / 1000)} s` : '';
  const row = failures > 1 ? ` (${failures} failures in a row)` : '';
  const why = reason === null ? null : html` <small>${outside(reason, MAX_REASON)}${row}</small>`;
  return html`${badge(`${state}${left}`, look)}${why}`;
}

function renderProducers(visit: Visit, project: ListedProjectView, { producers: { data } }: Seen): Html {
  const [newest] = data;
  const text =
    newest === undefined
      ? html`The producers are not known yet: the watcher reads them when it first follows the network.`
      : sayProducers(newest);
  return html`<section class="card" aria-labelledby="producers"><h2 id="producers">Block producers</h2><p>${text}</p><p><a href="${urlTo(visit, '/chain/producers', project)}">List and history</a></p></section>`;
}

type Adopted = ProducersView['data'][number];

const REASONS: Readonly<Record<string, string>> = {
  first: 'first known set',
  vote: 'network vote',
  key: 'a producer changed its key',
  operator: 'accepted by an operator',
};

/** Says when and why a producer set was adopted, and which nodes reported it. */
function sayProducers({ adoptedAt, reason, nodes, producers }: Adopted): Html {
  return html`${producers.length} producers since ${time(adoptedAt)} UTC: ${REASONS[reason] ?? reason}; reported by ${nodes.map((node, index) => html`${index === 0 ? '' : ', '}${outside(node)}`)}.`;
}

/** How many changes a page shows. Each change is the result of a network vote, and there is at most one vote every six hours. */
const MAX_CHANGES = 30;

function producersPage(visit: Visit, project: ListedProjectView, { network, data }: ProducersView): Page {
  const [newest] = data;
  return {
    title: 'Block producers',
    about: project,
    main: html`<p><a href="${urlTo(visit, '/chain', project)}">Chain</a></p>
${newest === undefined ? html`<section class="card empty"><h2>No producers known yet</h2><p>The watcher reads them when it first follows ${network}.</p></section>` : renderSets(newest, data)}
${isAllowed(visit.actor, 'acceptProducers') ? html`<details class="card"><summary>If too many producers changed at once</summary><p>Quittance raises an alarm, and the watcher waits. Compare the producers with those on a block explorer that does not depend on your nodes. Then accept the producers on the server that runs Quittance: see “producers-refused” in docs/reference/alarms.md.</p></details>` : null}`,
  };
}

function renderSets(newest: Adopted, data: readonly Adopted[]): Html {
  const shown = data.slice(0, MAX_CHANGES);
  const left =
    data.length > shown.length
      ? html`<p class="hint">${data.length - shown.length} older changes are not shown.</p>`
      : null;
  return html`<section class="card flush" aria-labelledby="now"><h2 id="now">Current producers</h2>${table('Current producers', PRODUCERS, newest.producers)}</section>
<section class="card" aria-labelledby="changes"><h2 id="changes">Changes, newest first</h2><ul>${shown.map((each) => html`<li>${sayProducers(each)}</li>`)}</ul>${left}</section>`;
}

const PRODUCERS: readonly Column<Adopted['producers'][number]>[] = [
  ['Producer', ({ address }) => outside(address)],
  ['Signs with', ({ address, signer }) => (signer === address ? 'its own key' : outside(signer))],
];
