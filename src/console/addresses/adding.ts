import { POLICIES, type Policy } from '../../domain/policy.ts';
import { FieldError } from '../../operator/input/field-error.ts';
import { readCandidates, refusedAddresses } from '../../operator/input/read-candidates.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { type AddressEntry, readList } from '../../operator/input/read-list.ts';
import { perform } from '../../operator/operation.ts';
import { mayWait } from '../../operator/subjects/address-changes.ts';
import {
  ASKED_LENGTH,
  type DerivationView,
  type Derived,
  deriveAddresses,
  firstAddresses,
  showDerivation,
} from '../../operator/subjects/address-derivation.ts';
import { type ActivationView, type Added, addAddresses } from '../../operator/subjects/addresses.ts';
import { countActive, type ListedProjectView, showProject } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import { type FormField, type FormView, formPage } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { ltr, outside, time } from '../page/pieces.ts';
import { type Fields, readForm } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';

/** `waits`: whether another owner, or a day, must pass before they are used; `unsigned`: unless all of them are signed. */
type AddingSubject = { project: ListedProjectView; waits: boolean | 'unsigned' };

async function findAdding(deps: ConsoleDeps, { visit }: Asked, asked: string | undefined): Promise<AddingSubject> {
  const project = needProject(visit, asked);
  const { projectId } = project;
  const { view } = await showProject.run(deps, visit.actor, { projectId });
  const count = countActive(view.activeAddresses) + view.retiredAddresses;
  const waits = count > 0 && mayWait(visit.actor, deps.config);
  return { project, waits: waits && deps.addressGuard.isGuarded(project.network) ? 'unsigned' : waits };
}

/** What follows of adding addresses. */
function renderWait({ waits }: AddingSubject): Html {
  const signed =
    waits === 'unsigned'
      ? html` Where the address manifest in force names all of them, they take invoices at once.`
      : null;
  const when = waits
    ? html`They wait for 24 hours, or until another owner confirms them, and take <strong>no invoice before</strong>. Meanwhile an alarm names them to everybody who looks after this project, and any operator can withdraw them.${signed}`
    : html`They take invoices <strong>at once</strong>.`;
  return html`<p>${when} Payers send straight to them: money to an address that is not yours is lost.</p>`;
}

const policyField = (project: ListedProjectView): FormField => ({
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
function waitPage(
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

const FIRST = '/addresses/derive';
const SECOND = '/addresses/derive/compare';

type Derivation = Awaited<ReturnType<typeof showDerivation.run>>;

/** The two steps by which addresses are derived: which key and how many, and the comparison of what comes with the wallet. */
export function addDerivingForms(routes: Routes, deps: ConsoleDeps): void {
  addForm<
    AddingSubject,
    { filled: Fields; read: ReturnType<typeof showDerivation.read> },
    { filled: Fields; found: Derivation }
  >(routes, deps, {
    action: 'showDerivation',
    path: FIRST,
    find: (asked, project) => findAdding(deps, asked, project),
    show: (visit, subject) => ({
      ...{ title: 'Derive addresses', about: subject.project, button: 'Show the addresses', fields: fieldsOf(subject) },
      consequence: html`<p>From the public key of an account of your wallet (<span class="mono">m/44'/195'/0'</span>) its addresses can be computed, and nothing can be spent. Nothing is added yet: the next page shows them.</p>`,
      back: urlTo(visit, '/addresses', subject.project),
    }),
    read: (filled, { project }) => ({ filled, read: showDerivation.read(given(filled, project), deps.now()) }),
    run: async (actor, { filled, read }) => ({ filled, found: await perform(showDerivation, deps, actor, read) }),
    done: (visit, subject, { filled, found }) => {
      const seen = found.view.next.map(({ address }) => address).join('\n');
      return formPage(
        { ...visit, path: SECOND },
        secondView(visit, { ...subject, ...found }),
        { ...filled, seen },
        null,
      );
    },
  });
  addSecond(routes, deps);
}

function addSecond(routes: Routes, deps: ConsoleDeps): void {
  addForm<AddingSubject & Derivation, ReturnType<typeof deriveAddresses.read>, Derived>(routes, deps, {
    ...{ action: 'deriveAddresses', path: SECOND, begins: FIRST },
    find: async (asked, project) => {
      const subject = await findAdding(deps, asked, project);
      const filled = readForm(asked.request, null);
      const wanted = showDerivation.read(given(filled, subject.project), deps.now());
      return { ...subject, ...(await perform(showDerivation, deps, asked.visit.actor, wanted)) };
    },
    show: (visit, subject) => secondView(visit, subject),
    read: (filled, { key, project }) => {
      if (filled['ending'] === undefined)
        throw new FieldError('ending', 'takes six characters, as your wallet shows them');
      firstAddresses(key.xpub).refuseOther(filled['ending'].trim());
      return deriveAddresses.read(
        { ...given(filled, project), xpub: key.xpub, seen: (filled['seen'] ?? '').split(/\s+/) },
        deps.now(),
      );
    },
    run: (actor, wanted) => perform(deriveAddresses, deps, actor, wanted),
    done: (visit, { project }, derived) =>
      derived.kind === 'proposed' ? waitPage(visit, project, derived) : derivedPage(visit, project, derived),
  });
}

function fieldsOf({ project }: AddingSubject): FormView['fields'] {
  return [
    {
      ...{ kind: 'line', name: 'xpub', label: 'Public key of the account (xpub6…)' },
      hint: 'Empty: the key that the project has derived from before. Never a private key (xprv…).',
      more: html` dir="ltr" maxlength="200" autocapitalize="off" spellcheck="false"`,
    },
    {
      ...{ kind: 'line', name: 'count', label: 'How many', value: '3' },
      more: html` inputmode="numeric" dir="ltr" maxlength="4" required`,
    },
    {
      ...{ kind: 'line', name: 'autoLimit', label: 'How many a new key may add by itself (optional)' },
      hint: 'In all, when payable amounts get scarce; 100 if it is empty, 0 for never. Many wallets look only 20 addresses ahead.',
      more: html` inputmode="numeric" dir="ltr" maxlength="5"`,
    },
    policyField(project),
    {
      ...{ kind: 'check', name: 'isFresh', label: 'After a restore: Quittance never had this key' },
      hint: 'Only where this ledger was restored from a backup. It begins with the first address of the key.',
    },
  ];
}

/** The input, as both forms have it. */
function given({ xpub, count, autoLimit, policy, isFresh }: Fields, { projectId }: AddingSubject['project']) {
  return {
    ...{ projectId, xpub, count: count?.trim(), autoLimit: autoLimit?.trim(), isFresh: isFresh !== undefined },
    policy: readChoice<Policy>('policy', policy, POLICIES) ?? undefined,
  };
}

function secondView(visit: Visit, subject: AddingSubject & Derivation): FormView {
  const { project, view } = subject;
  const kept = ['xpub', 'count', 'autoLimit', 'policy', 'isFresh', 'seen'].map(
    (name) => ({ kind: 'kept', name, label: KEPT[name] ?? name }) as const,
  );
  return {
    ...{ title: 'Are these in your wallet?', about: project, button: 'They are mine: add them' },
    consequence: html`${renderFirst(view)}${renderNext(view)}${renderWait(subject)}`,
    fields: [
      ...kept,
      endingField(
        'ending',
        'The last six characters of #1',
        'Type them from your wallet: they are not shown here, because nothing on a key says whose it is.',
      ),
    ],
    back: urlTo(visit, FIRST, project),
  };
}

const KEPT: Readonly<Record<string, string>> = {
  ...{ xpub: 'Public key of the account', count: 'How many', autoLimit: 'By itself, in all', policy: 'Policy' },
  ...{ isFresh: 'After a restore', seen: 'Addresses' },
};

function renderFirst({ first }: DerivationView): Html {
  const items = first.map((each) => html`<li><bdi class="mono">${each}</bdi></li>`);
  return html`<p><strong>The first addresses of this account.</strong> Open it in your wallet and compare all three: some wallets count accounts instead of addresses, and then only #1 is the same. If they differ, paste addresses instead.</p><ul>${items}</ul>`;
}

function renderNext({ next, skipped, first: [one = ''] }: DerivationView): Html {
  const items = next.map(({ address, derivationIndex }) => {
    return html`<li><bdi class="mono">${derivationIndex === 0 ? one : `#${derivationIndex + 1} ${address}`}</bdi></li>`;
  });
  const over =
    skipped.length === 0
      ? null
      : html`<p class="hint">${skipped.length} before them are in a project already, and are passed over.</p>`;
  return html`<p><strong>What is added</strong></p><ul>${items}</ul>${over}`;
}

function derivedPage(
  visit: Visit,
  project: AddingSubject['project'],
  { view }: Extract<Derived, { kind: 'added' }>,
): Page {
  const items = view.added.map(
    ({ address, derivationIndex }) => html`<li><bdi class="mono">#${derivationIndex + 1} ${address}</bdi></li>`,
  );
  return {
    title: 'Addresses added',
    about: project,
    main: html`<section class="card form"><p class="first">They take invoices from now on, for ${outside(project.name, 100)}.</p><ul>${items}</ul>
<p>A wallet may show only its first few addresses: have it show as many as you added, or its balance will look too small.</p>
<div class="actions"><a class="button" href="${urlTo(visit, '/addresses', project)}">Addresses</a></div></section>`,
  };
}

/** What a person types from the wallet, because a list that was pasted may be another one than was copied. */
export function endingField(name: string, label: string, hint: string): FormField {
  const more = html` dir="ltr" maxlength="34" autocapitalize="off" spellcheck="false" required`;
  return { kind: 'line', name, label, hint, more };
}

export const ENDING_FIELD = endingField(
  'ending',
  'The last six characters of the first one',
  'Type them from your wallet, not from this page.',
);

/** Refuses what is not the end of an address, or all of it. Errors: `INVALID_ARGUMENT`. */
export function readEnding(field: string, typed: string | undefined, address: string | undefined): void {
  const text = typed?.trim();
  if (text !== undefined && (text === address || text === address?.slice(-ASKED_LENGTH))) return;
  // What was typed may be anything; it is not repeated.
  throw new FieldError(
    field,
    text === undefined
      ? `takes the last ${ASKED_LENGTH} characters, as your wallet shows them`
      : `is not the end of that address, so nothing was done: compare the addresses with your wallet, in which upper and lower case differ`,
  );
}
