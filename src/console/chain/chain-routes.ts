import { isAllowed } from '../../operator/authorize.ts';
import { listProducers } from '../../operator/chain/list-producers.ts';
import { showStatus } from '../../operator/chain/show-status.ts';
import { JOB_ACTIONS, JOB_KINDS } from '../../operator/jobs/job-order.ts';
import { listJobs, showJob } from '../../operator/jobs/show-jobs.ts';
import { stopJob } from '../../operator/jobs/stop-job.ts';
import type { JobView } from '../../operator/jobs/views.ts';
import { html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import { readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { chooseProject, Forbidden, needProject, urlTo, type Visit } from '../page/visit.ts';
import { alarmForm } from './alarm-form.ts';
import { chainPage } from './chain-page.ts';
import { type ChainDeps, jobForm, mendForm } from './job-forms.ts';
import { jobPage } from './job-page.ts';
import { producersPage } from './producers-page.ts';
import { resumeForm } from './resume-form.ts';

/** Where the chain stands, what needs a decision, and the jobs that read it again. */
export function addChainRoutes(routes: Routes, deps: ChainDeps): void {
  const { get, post } = routes;
  get('/chain', 'showStatus', (asked) => show(deps, asked));
  get('/chain/producers', 'listProducers', async ({ visit, request }) => {
    const project = needProject(visit, readQuery(request, ['project']).project);
    return producersPage(visit, project, await listProducers(deps, visit.actor, { network: project.network }));
  });
  get('/chain/jobs/:jobId', 'showJob', async (asked) => {
    const { project, still } = readQuery(asked.request, ['project', 'still']);
    const job = await findJob(deps, asked);
    const about = projectOf(asked.visit, job, project);
    return jobPage(asked.visit, about, { job, isStill: still !== undefined, problem: null });
  });
  post('/chain/jobs/:jobId/stop', 'stopJob', (asked) => stop(deps, asked));
  for (const kind of JOB_KINDS) addForm(routes, deps, jobForm(deps, kind));
  addForm(routes, deps, mendForm(deps));
  addForm(routes, deps, alarmForm(deps));
  addForm(routes, deps, resumeForm(deps));
}

const DONE: Readonly<Record<string, string>> = {
  closed: 'The alarm is closed.',
  resumed: 'The watcher may go on. It takes some seconds until it says where it stands.',
};

async function show(deps: ChainDeps, { visit, request }: Asked): Promise<Answer> {
  const { project: asked, done } = readQuery(request, ['project', 'done']);
  const project = needProject(visit, asked);
  const { network } = project;
  const status = await showStatus(deps, visit.actor, { network });
  const producers = await listProducers(deps, visit.actor, { network });
  const jobs = deps.networks.includes(network) ? await listJobs(deps, visit.actor, { network }) : null;
  const text = DONE[done ?? ''];
  return chainPage(visit, project, {
    ...{ ...status, producers, jobs, now: deps.now() },
    said: text === undefined ? null : html`${text}`,
  });
}

function findJob(deps: ChainDeps, { visit, request }: Asked): Promise<JobView> {
  const { jobId = '' } = request.params as { jobId?: string };
  return showJob(deps, visit.actor, { jobId });
}

/** The project that was chosen, if it is on the network of the job, else one that is. */
function projectOf(visit: Visit, { network }: JobView, asked: string | undefined) {
  const chosen = chooseProject(visit, asked);
  return chosen?.network === network ? chosen : (visit.projects.find((each) => each.network === network) ?? null);
}

async function stop(deps: ChainDeps, asked: Asked): Promise<Answer> {
  const { visit, request, tokens } = asked;
  const { token } = readForm(request, ['token']);
  const job = await findJob(deps, asked);
  if (!isAllowed(visit.actor, JOB_ACTIONS[job.kind])) throw new Forbidden(JOB_ACTIONS[job.kind]);
  const project = projectOf(visit, job, undefined);
  const taken = tokens.take(visit.path, token);
  if (taken.kind === 'refused') {
    return jobPage(visit, project, { job, isStill: true, problem: html`<p>${taken.reason}.</p>` });
  }
  await stopJob(deps, visit.actor, { jobId: job.jobId });
  return { goTo: urlTo(visit, `/chain/jobs/${job.jobId}`, project) };
}
