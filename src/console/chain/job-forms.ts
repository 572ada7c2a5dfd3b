import { AppError } from '../../domain/errors.ts';
import { showStatus } from '../../operator/chain/show-status.ts';
import { JOB_ACTIONS, type JobKind, type JobWork, readJobWork } from '../../operator/jobs/job-order.ts';
import type { Jobs } from '../../operator/jobs/jobs.ts';
import { showJob } from '../../operator/jobs/show-jobs.ts';
import { startJob } from '../../operator/jobs/start-job.ts';
import type { JobView } from '../../operator/jobs/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import type { Form, FormField } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { number } from '../page/pieces.ts';
import type { Asked } from '../page/routes.ts';
import { needProject, urlTo } from '../page/visit.ts';
import { JOBS, nameJob } from './jobs-part.ts';

export type ChainDeps = ConsoleDeps & { jobs: Jobs };

/** `blocks`: those that stand fixed, of a rescan that a comparison asks for. */
type Subject = { project: ListedProjectView; recorded: number; blocks: { from: string; to: string } | null };
type Wanted = { network: string; work: JobWork };
type JobForm = Form<Subject, Wanted, JobView>;

/** What a form offers at first: some minutes. */
const OFFERED_BLOCKS = 1000;

/** Starts a job of the project's network. */
export function jobForm(deps: ChainDeps, kind: JobKind): JobForm {
  return {
    ...formOf(deps, kind),
    path: `/chain/${kind}`,
    find: async (asked, project) => ({ ...(await findNetwork(deps, asked, project)), blocks: null }),
  };
}

/** Rescans the blocks of a comparison that found something missing. */
export function mendForm(deps: ChainDeps): JobForm {
  return {
    ...formOf(deps, 'rescan'),
    path: '/chain/jobs/:jobId/rescan',
    find: async (asked, project) => {
      const { jobId = '' } = asked.request.params as { jobId?: string };
      const { network, from, to } = await showJob(deps, asked.visit.actor, { jobId });
      const found = await findNetwork(deps, asked, project);
      if (from === null || to === null || network !== found.project.network) {
        throw new AppError('NOT_FOUND', `this job read no blocks of ${found.project.network}`);
      }
      return { ...found, blocks: { from: String(from), to: String(to) } };
    },
  };
}

/** The network must have nodes here, and must have been followed. */
async function findNetwork(deps: ChainDeps, { visit }: Asked, asked: string | undefined) {
  const project = needProject(visit, asked);
  const { network } = project;
  if (!deps.networks.includes(network)) {
    throw new AppError('CONFLICT', `this process has no nodes of ${network}, so it cannot ask them`);
  }
  const { view } = await showStatus(deps, visit.actor, { network });
  if (view.recorded !== null) return { project, recorded: view.recorded.number };
  throw new AppError('CONFLICT', `nothing of ${network} is recorded yet, so there is nothing to compare`);
}

function formOf(deps: ChainDeps, kind: JobKind): Omit<JobForm, 'path' | 'find'> {
  return {
    action: JOB_ACTIONS[kind],
    show: (visit, { project, recorded, blocks }) => ({
      title: blocks === null ? JOBS[kind] : nameJob({ kind, from: Number(blocks.from), to: Number(blocks.to) }),
      about: project,
      consequence: html`<p>${WHAT_FOLLOWS[kind]}</p><p class="hint">${kind === 'reconcile' ? COST_OF_BOOKS : `The ledger of ${project.network} stands at block ${number(recorded)}; later ones are the watcher’s. ${COST_OF_BLOCKS}`}</p>`,
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

function blockFields(recorded: number): FormField[] {
  const more = html` inputmode="numeric" dir="ltr" maxlength="20" required`;
  const first = Math.max(1, recorded - OFFERED_BLOCKS + 1);
  return [
    { kind: 'line', name: 'from', label: 'First block', value: String(first), more },
    { kind: 'line', name: 'to', label: 'Last block', value: String(recorded), more, hint: 'At most 100,000 blocks.' },
  ];
}

const WHAT_FOLLOWS: Record<JobKind, string> = {
  verify:
    'Reads these blocks again, verifies them, and compares the transfers of your addresses with the ledger. It changes nothing.',
  rescan:
    'Reads these blocks again and records what the ledger missed. An invoice that was paid by it becomes paid, and its shop is told. What the chain denies is not touched: then it ends, and names the repair. To repeat it changes nothing more.',
  reconcile:
    'Asks a node what each address of this network holds, and compares it with the ledger. A difference is an alarm, which ends when they are the same.',
};

const COST_OF_BLOCKS =
  'It reads 30 blocks a second at most, so that the watcher and your shops do not wait: 1,000 take about a minute, 100,000 some hours where nodes are far. Of what a node takes a day, it leaves what the watcher needs.';
const COST_OF_BOOKS = 'Four requests for each address, and some seconds where one was never compared.';
