import { adviceOn, alarmRow } from '../../../core/domain/alarm-kinds.ts';
import { conflict, notFound } from '../../../core/domain/errors.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { formatHint } from '../../operator/command-words.ts';
import { clip } from '../../operator/input/problems.ts';
import {
  acknowledgeAlarms,
  type ChainStatusView,
  resumeChain,
  sayWatcher,
  showStatus,
} from '../../operator/subjects/chain.ts';
import type { DifferenceView } from '../../operator/subjects/chain-blocks.ts';
import { findProducers, type ProducersView } from '../../operator/subjects/chain-producers.ts';
import { explainDifference } from '../../operator/subjects/chain-ranges.ts';
import {
  JOB_ACTIONS,
  JOB_KINDS,
  type JobKind,
  type JobListView,
  type Jobs,
  type JobView,
  type JobWork,
  listJobs,
  readJobWork,
  showJob,
  startJob,
  stopJob,
} from '../../operator/subjects/jobs.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation, type Form, line, oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import {
  badge,
  type Column,
  duration,
  facts,
  live,
  ltr,
  many,
  number,
  outside,
  rowLink,
  shortAddress,
  table,
  tile,
  time,
} from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import {
  chooseProject,
  entryOf,
  Forbidden,
  needProject,
  pathPart,
  readPostedForm,
  urlTo,
  type Visit,
} from '../page/visit.ts';
import { renderKept, renderText } from '../page/words.ts';

/** Adds the pages for the chain's state, the decisions that it needs, and the jobs that read it again. */
export function addChainRoutes(routes: Routes, deps: ChainDeps): void {
  // Answers the question: can I trust these figures?
  routes.get('/chain', 'showStatus', ['project', 'done'], async ({ visit, query }) => {
    const project = needProject(visit, query.project);
    const { network } = project;
    const { view, state } = await showStatus(deps, visit.actor, { network });
    const producers = await findProducers(deps.db, network);
    const jobs = deps.networks.includes(network) ? await listJobs(deps, visit.actor, { network }) : null;
    const now = deps.now();
    return {
      title: 'Chain',
      about: project,
      beside: html`<p class="asof" id="asof" data-live>As of ${new Date(now).toISOString().slice(11, 19)} UTC <a href="${urlTo(visit, '/chain', project)}">Refresh</a></p>`,
      said: DONE[query.done ?? ''] ?? null,
      main: html`
${live('troubles', html`${renderHalt(visit, project, view)}`, { isSpoken: true })}
${live('standings', renderStanding(view, state, now))}
${live('warnings', renderAlarms(visit, project, view), { isSpoken: true })}
${live('node-list', html`${renderNodes(view)}`)}
${live('makers', renderProducers(visit, project, producers))}
${live('job-list', renderJobs(visit, project, jobs))}`,
    };
  });
  routes.get('/chain/producers', 'listProducers', ['project'], async ({ visit, query }) => {
    const project = needProject(visit, query.project);
    const { network, data } = await findProducers(deps.db, project.network);
    const [newest] = data;
    return {
      title: 'Block producers',
      about: project,
      main: html`<p><a href="${urlTo(visit, '/chain', project)}">Chain</a></p>
${newest === undefined ? html`<section class="card empty"><h2>No producers known yet</h2><p>The watcher reads them when it first follows ${network}.</p></section>` : renderSets(newest, data)}
${isAllowed(visit.actor, 'acceptProducers') ? html`<details class="card"><summary>If too many producers changed at once</summary><p>Quittance raises an alarm, and the watcher waits. Compare the producers with those on a block explorer that does not depend on your nodes. Then accept the producers on the server that runs Quittance: see “producers-refused” in docs/reference/alarms.md.</p></details>` : null}`,
    };
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
      const alarm = entryOf(
        view.alarms,
        ({ kind, subject }) => alarmRow(kind).endsBy === 'operator' && `${kind}.${subject}` === text,
        `${project.network} has no open ${clip(text)} alarm that you can close`,
      );
      return { project, alarm };
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

function renderHalt(visit: Visit, project: ListedProjectView, { halt }: ChainStatusView): Html | null {
  if (halt === null) return null;
  const step = isAllowed(visit.actor, 'resumeChain')
    ? html`<p><a class="button" href="${urlTo(visit, '/chain/resume', project)}">Resume the watcher</a></p>`
    : html`<p class="hint">Only an owner can resume the watcher.</p>`;
  return html`<section class="card" aria-labelledby="halt"><h2 id="halt">The watcher is halted, so no invoices are marked as paid</h2><div class="notice"><p>${time(halt.at)} UTC: ${renderKept(halt.reason, MAX_TEXT)}</p></div><p>Find out whether the ledger or the chain is correct.</p>${step}</section>`;
}

/** The maximum length of a stored alarm text. */
const MAX_TEXT = 2000;

type State = Awaited<ReturnType<typeof showStatus>>['state'];

function renderStanding(view: ChainStatusView, state: State, now: number): Html {
  const { network, examined, recorded, behind, watcher, halt } = view;
  const causes = behind.why.filter(({ code }) => halt === null || code !== 'halted');
  const isWell = behind.why.length === 0;
  const numbered = (block: number | null = null) => (block === null ? '–' : ltr(number(block)));
  const age = examined === null ? 'no block examined yet' : `${duration(now - Date.parse(examined.time))} old`;
  const nodesSay = watcher === null ? '' : `according to the nodes: ${number(watcher.nodeSolidNumber)}`;
  return html`<section class="card" aria-labelledby="standing"><h2 id="standing">${network}</h2><p>${isWell ? badge('Up to date', 'PAID') : badge(behind.blocks === 0 ? 'Held up' : 'Behind', 'CONFIRMING')} ${sayBehind(behind)}.</p>
${causes.length === 0 ? null : html`<ul>${causes.map(({ text }) => html`<li>${renderKept(text, MAX_TEXT)}</li>`)}</ul>`}
<p class="hint">Watcher: ${sayWatcher(state)}.</p></section>
<section aria-labelledby="heights"><h2 id="heights" class="unseen">Blocks</h2><dl class="tiles">${tile('Newest block', numbered(examined?.number), age)}
${tile('Irreversible, verified by Quittance', numbered(watcher?.ownSolidNumber), nodesSay)}
${tile('Recorded', numbered(recorded?.number), recorded === null ? 'nothing yet' : html`created ${time(recorded.time)} UTC`)}</dl></section>`;
}

function sayBehind({ blocks, why }: ChainStatusView['behind']): string {
  if (why.length === 0) return 'all irreversible blocks are recorded, and no alarm blocks progress';
  if (blocks === null) return 'the number of missing blocks is not known';
  if (blocks === 0) return 'all irreversible blocks are recorded, but the watcher is making no progress';
  return `${many(blocks, 'irreversible block is', 'irreversible blocks are')} not recorded`;
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

function renderProducers(visit: Visit, project: ListedProjectView, { data }: ProducersView): Html {
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

type ChainDeps = ConsoleDeps & { jobs: Jobs };

function addJobRoutes(routes: Routes, deps: ChainDeps): void {
  routes.get('/chain/jobs/:jobId', 'showJob', ['project', 'still'], async (asked) => {
    const { visit, query } = asked;
    const job = await findJob(deps, asked);
    return jobPage(visit, projectOf(visit, job, query.project), job, query.still !== undefined);
  });
  routes.post('/chain/jobs/:jobId/stop', 'stopJob', async (asked) => {
    const { visit, request, tokens } = asked;
    const { token } = readPostedForm(request, ['token']);
    const job = await findJob(deps, asked);
    if (!isAllowed(visit.actor, JOB_ACTIONS[job.kind])) throw new Forbidden(JOB_ACTIONS[job.kind]);
    const project = projectOf(visit, job, undefined);
    const taken = tokens.take(visit.path, token);
    if (taken.kind === 'refused')
      return { ...jobPage(visit, project, job, true), problem: html`<p>${taken.reason}.</p>`, status: 409 };
    await stopJob(deps, visit.actor, { jobId: job.jobId });
    return { goTo: urlTo(visit, `/chain/jobs/${job.jobId}`, project) };
  });
  for (const kind of JOB_KINDS) {
    addForm(routes, deps, {
      ...jobForm(deps, kind),
      path: `/chain/${kind}`,
      find: async (asked, project) => ({ ...(await findNetwork(deps, asked, project)), blocks: null }),
    });
  }
  // Rescans the blocks in a comparison that found missing transfers.
  addForm(routes, deps, {
    ...jobForm(deps, 'rescan'),
    path: '/chain/jobs/:jobId/rescan',
    find: async (asked, project) => {
      const { network, from, to } = await findJob(deps, asked);
      const found = await findNetwork(deps, asked, project);
      if (from === null || to === null || network !== found.project.network) {
        throw notFound`this job did not read ${found.project.network} blocks`;
      }
      return { ...found, blocks: { from: String(from), to: String(to) } };
    },
  });
}

const JOBS: Record<JobKind, string> = {
  verify: 'Verify blocks',
  rescan: 'Rescan blocks',
  reconcile: 'Compare all balances',
};

function nameJob({ kind, from, to }: Pick<JobView, 'kind' | 'from' | 'to'>): string {
  return from === null || to === null ? JOBS[kind] : `${JOBS[kind]} ${number(from)} to ${number(to)}`;
}

const jobBadge = ({ state }: Pick<JobView, 'state'>) =>
  badge(state, state === 'done' ? 'PAID' : state === 'stopped' ? 'EXPIRED' : 'CONFIRMING');

/** Returns a text such as `40 of 300 blocks`. */
function sayProgress({ kind, done, total }: Pick<JobView, 'kind' | 'done' | 'total'>): string {
  const what = kind === 'reconcile' ? 'addresses' : 'blocks';
  return total === null ? 'none yet' : `${number(done)} of ${number(total)} ${what}`;
}

/** This text says what is lost in a restart, so that no one waits for lost work. */
const LOST =
  'Quittance keeps only the ten newest jobs, in memory: a restart stops running jobs and clears the list. Transfers recorded by a rescan stay in the ledger, and appear in the audit log.';

/** Shows work that takes minutes: the forms that start it, and its jobs, or `null` if this process has no nodes for the network. */
function renderJobs(visit: Visit, project: ListedProjectView, jobs: JobListView | null): Html {
  const { network } = project;
  if (jobs === null) {
    const command = { command: 'chain verify', input: { network, from: '…', to: '…' } } as const;
    return html`<section class="card" aria-labelledby="jobs"><h2 id="jobs">Compare the ledger with the chain</h2><p>This process has no ${network} nodes, so it cannot read blocks again. Run this command on the machine where the nodes are configured: <code>${formatHint(command)}</code></p></section>`;
  }
  const links = JOB_KINDS.filter((kind) => isAllowed(visit.actor, JOB_ACTIONS[kind])).map(
    (kind) => html`<a class="button quiet" href="${urlTo(visit, `/chain/${kind}`, project)}">${JOBS[kind]}</a>`,
  );
  const columns: Column<JobView>[] = [
    ['Job', (job) => rowLink(urlTo(visit, `/chain/jobs/${job.jobId}`, project), nameJob(job))],
    ['Status', jobBadge],
    ['Done', sayProgress, 'number'],
    ['Started', ({ startedAt }) => time(startedAt)],
    ['By', ({ startedBy }) => outside(startedBy, 40)],
  ];
  const list = jobs.data.length === 0 ? null : table('Jobs, newest first', columns, jobs.data);
  return html`<section class="card" aria-labelledby="jobs"><h2 id="jobs">Compare the ledger with the chain</h2><p>Quittance reads the blocks from the nodes and verifies them again, or asks a node for all balances. Only one job per network can run at a time.</p><div class="actions">${links}</div><p class="hint">${LOST}</p></section>
${list === null ? null : html`<section class="card flush" aria-label="Jobs">${list}</section>`}`;
}

const findJob = (deps: ChainDeps, { visit, request }: Asked): Promise<JobView> =>
  showJob(deps, visit.actor, { jobId: pathPart(request, 'jobId') });

/** Returns the chosen project if it's on the job's network, or else any project on it. */
function projectOf(visit: Visit, { network }: JobView, asked: string | undefined) {
  const chosen = chooseProject(visit, asked);
  return chosen?.network === network ? chosen : (visit.projects.find((each) => each.network === network) ?? null);
}

/** `blocks` is the fixed range of a rescan after a comparison. */
type JobFormsSubject = { project: ListedProjectView; recorded: number; blocks: { from: string; to: string } | null };
type JobForm = Form<JobFormsSubject, { network: string; work: JobWork }, JobView>;

/** The range that a form suggests at first; it takes a few minutes. */
const OFFERED_BLOCKS = 1000;

/** This process must have nodes for the network, and the network must have been followed before. */
async function findNetwork(deps: ChainDeps, { visit }: Asked, asked: string | undefined) {
  const project = needProject(visit, asked);
  const { network } = project;
  if (!deps.networks.includes(network)) throw conflict`this process has no ${network} nodes`;
  const { view } = await showStatus(deps, visit.actor, { network });
  if (view.recorded !== null) return { project, recorded: view.recorded.number };
  throw conflict`no ${network} block is recorded yet, so there is nothing to compare`;
}

/** Starts a job on the project's network. */
function jobForm(deps: ChainDeps, kind: JobKind): Omit<JobForm, 'path' | 'find'> {
  return {
    action: JOB_ACTIONS[kind],
    show: (visit, { project, recorded, blocks }) => ({
      title: blocks === null ? JOBS[kind] : nameJob({ kind, from: Number(blocks.from), to: Number(blocks.to) }),
      about: project,
      consequence: html`<p>${WHAT_FOLLOWS[kind]}</p><p class="hint">${kind === 'reconcile' ? COST_OF_BOOKS : `The last recorded ${project.network} block is ${number(recorded)}; the watcher reads later blocks. ${COST_OF_BLOCKS}`}</p>`,
      fields: kind === 'reconcile' || blocks !== null ? [] : blockFields(recorded),
      button: 'Start',
      back: urlTo(visit, '/chain', project),
    }),
    read: (filled, { project: { network }, blocks }) => {
      const { from, to } = blocks ?? filled;
      return { network, work: readJobWork({ kind, from: from?.trim(), to: to?.trim() }) };
    },
    run: (actor, wanted) => startJob(deps, actor, wanted),
    done: (visit, { project }, { jobId }) => ({ goTo: urlTo(visit, `/chain/jobs/${jobId}`, project) }),
  };
}

function blockFields(recorded: number) {
  const more = html` inputmode="numeric" dir="ltr" maxlength="20" required`;
  const first = Math.max(1, recorded - OFFERED_BLOCKS + 1);
  return [
    line('from', 'First block', { value: String(first), more }),
    line('to', 'Last block', { value: String(recorded), more, hint: 'At most 100,000 blocks.' }),
  ];
}

const WHAT_FOLLOWS: Record<JobKind, string> = {
  verify:
    'This job reads these blocks again, verifies them, and compares the transfers of your addresses with the ledger. It changes nothing.',
  rescan:
    'This job reads these blocks again and records missing transfers. If a missing transfer pays an invoice, the invoice becomes paid and the shop is notified. If the ledger has a transfer that is not on the chain, the job stops without changing the ledger, and shows the command that repairs it. You can repeat the job safely.',
  reconcile:
    'This job asks a node for the balance of each address on this network, and compares the balances with the ledger. If a balance differs, Quittance raises an alarm. The alarm closes when the balance matches again.',
};

const COST_OF_BLOCKS =
  "The job reads at most 30 blocks per second, so it does not slow down the watcher or your shops. 1,000 blocks take about a minute; 100,000 blocks can take hours if the nodes are far away. The job leaves enough of each node's daily request limit for the watcher.";
const COST_OF_BOOKS =
  'The job makes four requests per address. An address that has never been compared takes a few seconds.';

/** How often a running job's page reloads. */
const REFRESH_S = 2;
/** How many rows a page shows; more would exceed 30 kB. */
const MAX_ROWS = 100;

/** Shows a job's progress or outcome. With `isStill`, the page doesn't reload by itself. */
function jobPage(visit: Visit, project: ListedProjectView | null, job: JobView, isStill: boolean): Page {
  const isRunning = job.state === 'running' || job.state === 'stopping';
  const path = `/chain/jobs/${job.jobId}`;
  const still = html` <a href="${urlTo(visit, path, project, isStill ? {} : { still: '1' })}">${isStill ? 'Refresh automatically' : 'Stop refreshing'}</a>`;
  const stop =
    job.state === 'running' && isAllowed(visit.actor, JOB_ACTIONS[job.kind])
      ? html`<div class="actions">${oneClick(visit, `${path}/stop`, 'Stop')}</div>`
      : null;
  return {
    title: nameJob(job),
    about: project,
    refreshS: isRunning && !isStill ? REFRESH_S : null,
    beside: jobBadge(job),
    main: html`<p><a href="${urlTo(visit, '/chain', project)}">Chain</a></p>
${renderSaid(job)}
<section class="card" aria-labelledby="progress"><h2 id="progress">${isRunning ? 'Progress' : 'Result'}</h2>${renderProgress(job, isRunning)}${stop}
${isRunning ? html`<p class="hint">${isStill ? 'Automatic refresh is off.' : `The page refreshes every ${REFRESH_S} seconds.`}${still}</p><p class="hint">${LOST}</p>` : null}</section>
${renderResult(visit, project, job)}`,
  };
}

/** Renders the text that the command would print, with the first sentence large. */
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
    ['Speed', perSecond === null ? null : `${perSecond.toFixed(1)} ${unit} per second${left}`],
    ['So far', isRunning && kind !== 'reconcile' ? `${number(found)} ${FOUND[kind]}` : null],
    ['Network', network],
    ['Started', html`${time(startedAt)} UTC by ${outside(startedBy, 100)}`],
    ['Ended', endedAt === null ? null : html`${time(endedAt)} UTC`],
  ])}`;
}

const FOUND = { verify: 'differences', rescan: 'missing transfers' };

function renderResult(visit: Visit, project: ListedProjectView | null, { jobId, result }: JobView): Html | null {
  if (result === null) return null;
  if ('verified' in result) return renderDifferences(visit, project, jobId, result.verified.differences);
  if (!('books' in result) || result.books.odd.length === 0) return null;
  const { odd, node } = result.books;
  return html`<section class="card flush" aria-labelledby="rows"><h2 id="rows">Addresses whose balances differ <small>by ${outside(node)}</small></h2>${table('Addresses whose balances differ', BOOKS, odd.slice(0, MAX_ROWS))}</section>${more(odd.length)}`;
}

type Odd = Extract<NonNullable<JobView['result']>, { books: unknown }>['books']['odd'][number];

const BOOKS: readonly Column<Odd>[] = [
  ['Address', ({ row: { address } }) => rowLink(`/find?q=${address}`, shortAddress(address))],
  ['Ledger', ({ row }) => (row.status === 'differs' ? ltr(row.ledger) : '–'), 'number'],
  ['Chain', ({ row }) => (row.status === 'differs' ? ltr(row.chain) : '–'), 'number'],
  ['Difference', ({ row }) => (row.status === 'differs' ? ltr(row.difference) : '–'), 'number'],
  ['Note', ({ row, note }) => html`${row.status === 'differs' ? '' : 'too early: '}${outside(note, 200)}`],
];

function renderDifferences(
  visit: Visit,
  project: ListedProjectView | null,
  jobId: string,
  differences: readonly DifferenceView[],
): Html | null {
  if (differences.length === 0) return null;
  const canRescan = differences.every(({ kind }) => kind === 'missing') && isAllowed(visit.actor, 'rescanRange');
  const rescan = canRescan
    ? html`<div class="actions"><a class="button" href="${urlTo(visit, `/chain/jobs/${jobId}/rescan`, project)}">Rescan these blocks</a></div>`
    : null;
  return html`<section class="card flush" aria-labelledby="rows"><h2 id="rows">Differences</h2>${table('Differences between the ledger and the chain', DIFFERENCES, differences.slice(0, MAX_ROWS))}</section>${more(differences.length)}${rescan}`;
}

const more = (count: number) =>
  count > MAX_ROWS ? html`<p class="hint">${number(count - MAX_ROWS)} more not shown.</p>` : null;

const DIFFERENCES: readonly Column<DifferenceView>[] = [
  ['Difference', (row) => outside(explainDifference(row), 200)],
  ['Side', ({ side }) => side],
  ['Address', ({ address }) => shortAddress(address)],
  ['USDT', ({ amount }) => ltr(amount), 'number'],
  ['Block', ({ blockNumber }) => ltr(number(blockNumber)), 'number'],
  ['Transaction', ({ txId }) => rowLink(`/find?q=${txId}`, ltr(`${txId.slice(0, 10)}…`))],
];
