import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import {
  type AddressChangeView,
  confirmAddressChange,
  showAddressChange,
  withdrawAddressChange,
} from '../../operator/subjects/address-changes.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { number } from '../page/pieces.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject } from '../page/visit.ts';
import { changePage, renderChanged } from './change-page.ts';
import { ENDING_FIELD, readEnding } from './endings.ts';

type Subject = { change: AddressChangeView; refusal: string | null; project: ListedProjectView };

/** One addition that waits: its page, confirming it and withdrawing it. */
export function addChangeRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/addresses/changes/:changeId', 'showAddressChange', async (asked) => {
    const { done } = readQuery(asked.request, ['done']);
    const { project, ...shown } = await find(deps, asked);
    return changePage(asked.visit, project, { ...shown, said: done === undefined ? null : (SAID[done] ?? null) });
  });
  addConfirmForm(routes, deps);
  addForm<Subject, { changeId: string }, AddressChangeView>(routes, deps, {
    ...byOperation(deps, withdrawAddressChange, (_, { change }: Subject) => ({ changeId: change.changeId })),
    path: '/addresses/changes/:changeId/withdraw',
    find: (asked) => find(deps, asked),
    show: (_, { change, project }) => ({
      ...{ title: 'Withdraw addresses', about: project, button: 'Withdraw', fields: [] },
      consequence: html`<p>${countOf(change)} not added, now or later. Who wants them proposes them anew.</p>${renderChanged(change)}`,
      back: `/addresses/changes/${change.changeId}`,
    }),
    done: (_, { change }) => ({ goTo: `/addresses/changes/${change.changeId}?done=withdrawn` }),
  });
}

const SAID: Readonly<Record<string, ReturnType<typeof html>>> = {
  confirmed: html`They are added, and take invoices.`,
  withdrawn: html`It is withdrawn: nothing was added.`,
};

const countOf = ({ addresses }: AddressChangeView) =>
  addresses.length === 1 ? '1 address is' : `${number(addresses.length)} addresses are`;

function addConfirmForm(routes: Routes, deps: ConsoleDeps): void {
  addForm<Subject, { changeId: string }, unknown>(routes, deps, {
    action: 'confirmAddressChange',
    path: '/addresses/changes/:changeId/confirm',
    find: (asked) => find(deps, asked),
    show: (_, { change, project }) => ({
      ...{ title: 'Confirm addresses', about: project, button: 'They are ours: add them now' },
      consequence: html`<p>${countOf(change)} added at once, with the policy ${change.policy}, and payers are shown them. Money that goes to an address of somebody else is lost.</p>${renderChanged(change)}`,
      fields: [ENDING_FIELD],
      back: `/addresses/changes/${change.changeId}`,
    }),
    read: ({ ending }, { change, refusal }) => {
      if (refusal !== null) throw new AppError('CONFLICT', `nothing was added: ${refusal}`);
      readEnding('ending', ending, change.addresses[0]);
      return { changeId: change.changeId };
    },
    run: (actor, wanted) => confirmAddressChange.run(deps, actor, wanted),
    done: (_, { change }) => ({ goTo: `/addresses/changes/${change.changeId}?done=confirmed` }),
  });
}

/** A change as the visitor may see it. One of another project is as unknown. Errors: `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked): Promise<Subject> {
  const { changeId = '' } = request.params as { changeId?: string };
  const unknown = new AppError('NOT_FOUND', `there is no change ${clip(changeId)} that you may see`);
  const { view: change, refusal } = await showAddressChange
    .run(deps, visit.actor, { changeId })
    .catch((error: unknown) => {
      throw error instanceof AppError && error.code !== 'DATABASE_UNAVAILABLE' ? unknown : error;
    });
  return { change, refusal, project: needProject(visit, change.projectId) };
}
