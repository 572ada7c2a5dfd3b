import { POLICIES, type Policy } from '../../domain/policy.ts';
import { FieldError } from '../../operator/input/field-error.ts';
import { readCandidates, refusedAddresses } from '../../operator/input/read-candidates.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { type AddressEntry, readList } from '../../operator/input/read-list.ts';
import { perform } from '../../operator/operation.ts';
import { mayWait } from '../../operator/subjects/address-changes.ts';
import { type ActivationView, type Added, addAddresses } from '../../operator/subjects/addresses.ts';
import { countActive, type ListedProjectView, showProject } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import type { FormField } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { ltr, time } from '../page/pieces.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { endingField, readEnding } from './endings.ts';

/** `waits`: whether another owner, or a day, must pass before they are used; `unsigned`: unless all of them are signed. */
export type AddingSubject = { project: ListedProjectView; waits: boolean | 'unsigned' };

export async function findAdding(
  deps: ConsoleDeps,
  { visit }: Asked,
  asked: string | undefined,
): Promise<AddingSubject> {
  const project = needProject(visit, asked);
  const { projectId } = project;
  const { view } = await showProject.run(deps, visit.actor, { projectId });
  const count = countActive(view.activeAddresses) + view.retiredAddresses;
  const waits = count > 0 && mayWait(visit.actor, deps.config);
  return { project, waits: waits && deps.addressGuard.isGuarded(project.network) ? 'unsigned' : waits };
}

/** What follows of adding addresses. */
export function renderWait({ waits }: AddingSubject): Html {
  const signed =
    waits === 'unsigned'
      ? html` Where the address manifest in force names all of them, they take invoices at once.`
      : null;
  const when = waits
    ? html`They wait for 24 hours, or until another owner confirms them, and take <strong>no invoice before</strong>. Meanwhile an alarm names them to everybody who looks after this project, and any operator can withdraw them.${signed}`
    : html`They take invoices <strong>at once</strong>.`;
  return html`<p>${when} Payers send straight to them: money to an address that is not yours is lost.</p>`;
}

export const policyField = (project: ListedProjectView): FormField => ({
  ...{ kind: 'select', name: 'policy', label: 'Policy, for life' },
  options: [['', `as the project: ${project.policy}`], ...POLICIES.map((each) => [each, each] as const)],
});

const FRESH_FIELD: FormField = {
  ...{ kind: 'check', name: 'isFresh', label: 'After a restore: Quittance never had any of them' },
  hint: 'Only where this ledger was restored from a backup.',
};

type Wanted = Parameters<typeof addAddresses.run>[2];

/** The form by which addresses are pasted. */
export function addAddingForm(routes: Routes, deps: ConsoleDeps): void {
  addForm<AddingSubject, Wanted, Added>(routes, deps, {
    action: 'addAddresses',
    path: '/addresses/add',
    find: (asked, project) => findAdding(deps, asked, project),
    show: (visit, subject) => ({
      ...{ title: 'Add addresses', about: subject.project, button: 'Add them' },
      consequence: renderWait(subject),
      fields: [
        {
          ...{ kind: 'lines', name: 'list', label: 'Addresses of your wallet' },
          hint: 'One on each line (T…); what follows # is skipped. Or CSV with a column "address". Never a key or a phrase.',
          more: html` dir="ltr" required`,
        },
        endingField('firstEnding', 'The last six characters of the first one', 'Type them from your wallet.'),
        endingField('lastEnding', 'The last six characters of the last one', 'The same, if it is only one.'),
        policyField(subject.project),
        FRESH_FIELD,
      ],
      back: urlTo(visit, '/addresses', subject.project),
    }),
    read: ({ list = '', firstEnding, lastEnding, policy, isFresh }, { project }) => {
      const entries = readEntries(list);
      readEnding('firstEnding', firstEnding, entries[0]?.text);
      readEnding('lastEnding', lastEnding, entries.at(-1)?.text);
      return addAddresses.read(
        {
          ...{ projectId: project.projectId, entries, isChecked: true, isFresh: isFresh !== undefined },
          policy: readChoice<Policy>('policy', policy, POLICIES) ?? undefined,
        },
        deps.now(),
      );
    },
    run: (actor, wanted) => perform(addAddresses, deps, actor, wanted),
    done: (visit, { project }, added) =>
      added.kind === 'proposed' ? waitPage(visit, project, added) : addedPage(visit, project, added),
  });
}

/** Errors: `INVALID_ARGUMENT`, with every problem that can be found without the database. */
function readEntries(list: string): AddressEntry[] {
  const entries = readList(list, 'the list');
  const { problems } = readCandidates(entries, []);
  if (problems.length > 0) throw refusedAddresses('no address was added', problems);
  if (entries.length === 0) throw new FieldError('list', 'holds no address: write one on each line');
  return entries;
}

/** Addresses that wait now. */
export function waitPage(
  visit: Visit,
  project: ListedProjectView,
  { view, projectPolicy }: Extract<Added, { kind: 'proposed' }>,
): Page {
  const { changeId, dueAt, addresses } = view.proposed;
  return {
    title: 'They wait',
    about: project,
    main: html`<section class="card form"><p class="first">No invoice shows them yet.</p><p>They are added at ${time(dueAt)} UTC, or as soon as another owner confirms them.</p>
<div class="actions"><a class="button" href="/addresses/changes/${changeId}">Look at them</a><a href="${urlTo(visit, '/addresses', project)}">Addresses</a></div></section>
${renderNotes(view, projectPolicy, addresses)}`,
  };
}

function addedPage(
  visit: Visit,
  project: ListedProjectView,
  { view, projectPolicy }: Extract<Added, { kind: 'added' }>,
): Page {
  const items = view.added.map((address) => html`<li><bdi class="mono">${address}</bdi></li>`);
  return {
    title: 'Addresses added',
    about: project,
    main: html`<section class="card form"><p class="first">They take invoices from now on.</p><ul>${items}</ul>
<div class="actions"><a class="button" href="${urlTo(visit, '/addresses', project)}">Addresses</a></div></section>
${renderNotes(view, projectPolicy, view.added)}`,
  };
}

/** What a person should know of new addresses: the answers of nodes, and a policy that no invoice has yet. */
function renderNotes(
  { policy, activation }: { policy: Policy; activation: ActivationView | null },
  projectPolicy: Policy,
  addresses: readonly string[],
): Html {
  const other =
    policy === projectPolicy
      ? null
      : html`<p class="notice">These serve the policy ${policy}, and the project’s is ${projectPolicy}: they take invoices after the project has changed to it.</p>`;
  return html`${other}${activation === null ? null : renderActivation(activation, addresses.length)}`;
}

function renderActivation(
  { checked, neverActivated, contracts, notCheckedBecause }: ActivationView,
  count: number,
): Html {
  const list = (addresses: readonly string[]) => addresses.map((address) => html` ${ltr(address)}`);
  const danger =
    contracts.length === 0
      ? null
      : html`<p class="notice" role="alert"><strong>No wallet:</strong>${list(contracts)} is a smart contract; money sent there is probably lost. Unless you control it, withdraw or retire it.</p>`;
  const never =
    neverActivated.length === 0
      ? null
      : html`<section class="card"><h2>Never activated</h2><p class="mono">${list(neverActivated)}</p><p>They receive all the same. To spend from one it must first be activated, with about 1 TRX. If you expected an address that is in use already, compare it with your wallet now.</p></section>`;
  const left =
    checked >= count
      ? null
      : html`<p class="hint">Nodes were not asked about ${count - checked} of ${count}: <bdi>${notCheckedBecause ?? 'no node answered'}</bdi>.</p>`;
  return html`${danger}${never}${left}`;
}
