import { resumeChainOperation } from '../../operator/chain/operations.ts';
import { resumeChain } from '../../operator/chain/resume-chain.ts';
import { showStatus } from '../../operator/chain/show-status.ts';
import type { ResumedView } from '../../operator/chain/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { byOperation } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { number, time } from '../page/pieces.ts';
import { needProject, urlTo } from '../page/visit.ts';
import { renderKept } from '../page/words.ts';

/** `recorded`: the block at which the ledger stands. */
type Subject = { project: ListedProjectView; halt: ResumedView['halt']; recorded: number };
type Wanted = ReturnType<typeof resumeChainOperation.read>;

/** Lets a watcher go on, after the reason of its halt was seen. */
export function resumeForm(deps: ConsoleDeps): Form<Subject, Wanted, ResumedView> {
  return {
    ...byOperation(deps, resumeChainOperation, ({ haltedAt = '' }, { project: { network } }: Subject) => {
      return { network, isSettled: true, haltedAt };
    }),
    path: '/chain/resume',
    find: async ({ visit }, asked) => {
      const project = needProject(visit, asked);
      const { halt } = await resumeChain(deps, visit.actor, { network: project.network, isSettled: false });
      const { view } = await showStatus(deps, visit.actor, { network: project.network });
      return { project, halt, recorded: view.recorded?.number ?? 0 };
    },
    show: (visit, { project, halt: { at, reason }, recorded }) => ({
      title: 'Let the watcher go on',
      about: project,
      consequence: html`<p>${project.network} is halted since ${time(at)} UTC:</p><div class="notice"><p>${renderKept(reason, 2000)}</p></div><p>The watcher goes on from block ${number(recorded)}, where the ledger stands, and records and expires again. Nothing that is recorded changes. If the reason is still there, it halts again.</p>`,
      fields: [{ kind: 'seen', name: 'haltedAt', label: 'Halted at', value: at }],
      button: 'I know why, and it is settled: go on',
      back: urlTo(visit, '/chain', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/chain', project, { done: 'resumed' }) }),
  };
}
