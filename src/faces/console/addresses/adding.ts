import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { FieldError } from '../../operator/input/problems.ts';
import { readCandidates, refusedAddresses } from '../../operator/input/read-candidates.ts';
import { type AddressEntry, readChoice, readList } from '../../operator/input/readers.ts';
import { perform } from '../../operator/operation.ts';
import { mayWait } from '../../operator/subjects/address-changes.ts';
import {
  ASKED_LENGTH,
  type DerivationView,
  deriveAddresses,
  firstAddresses,
  showDerivation,
} from '../../operator/subjects/address-derivation.ts';
import { type ActivationView, type Added, addAddresses } from '../../operator/subjects/addresses.ts';
import { countActive, type ListedProjectView, showProject } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation, check, choice, type FormView, formPage, line, lines } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { ltr, outside, time } from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { type Fields, needProject, readPostedForm, urlTo, type Visit } from '../page/visit.ts';

/**
 * `waits` says whether the addresses must wait for another owner or a day. `unsigned` means that they must wait, unless all of them are
 * signed.
 */
type AddingSubject = { project: ListedProjectView; waits: boolean | 'unsigned' };

async function findAdding(deps: ConsoleDeps, { visit }: Asked, asked: string | undefined): Promise<AddingSubject> {
  const project = needProject(visit, asked);
  const { projectId } = project;
  const { view } = await performFor(deps, visit, showProject, { projectId });
  const count = countActive(view.activeAddresses) + view.retiredAddresses;
  const waits = count > 0 && mayWait(visit.actor, deps.config);
  return { project, waits: waits && deps.addressGuard.isGuarded(project.network) ? 'unsigned' : waits };
}

/** Explains the consequence of adding addresses. */
function renderWait({ waits }: AddingSubject): Html {
  const signed =
    waits === 'unsigned'
      ? html` If the installed address manifest contains all of these addresses, invoices use them immediately.`
      : null;
  const when = waits
    ? html`These addresses are <strong>not used for invoices</strong> until 24 hours have passed or another owner confirms them. In the meantime, an alarm shows them to everyone who manages this project, and any operator can withdraw them.${signed}`
    : html`Invoices use these addresses <strong>immediately</strong>.`;
  return html`<p>${when} Payers send money straight to these addresses: if an address is not yours, the money is lost.</p>`;
}

const policyField = ({ policy }: ListedProjectView) =>
  choice('policy', 'Policy (permanent)', [['', `same as the project: ${policy}`], ...POLICIES.map(asOption)]);
const asOption = (policy: Policy) => [policy, policy] as const;

const FRESH_FIELD = check('isFresh', 'After a restore: Quittance has never had any of these addresses', {
  hint: 'Use this only if this ledger was restored from a backup.',
});

/** The form for pasting addresses. */
export function addAddingForm(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, {
    ...byOperation(deps, addAddresses, (filled, { project }: AddingSubject) => {
      const { list = '', firstEnding, lastEnding, policy, isFresh } = filled;
      const entries = readEntries(list);
      readEnding('firstEnding', firstEnding, entries[0]?.text);
      readEnding('lastEnding', lastEnding, entries.at(-1)?.text);
      return {
        ...{ projectId: project.projectId, entries, isChecked: true, isFresh: isFresh !== undefined },
        policy: readChoice<Policy>('policy', policy, POLICIES) ?? undefined,
      };
    }),
    path: '/addresses/add',
    find: (asked, project) => findAdding(deps, asked, project),
    show: (visit, subject) => ({
      ...{ title: 'Add addresses', about: subject.project, button: 'Add addresses' },
      consequence: renderWait(subject),
      fields: [
        lines('list', 'Addresses from your wallet', {
          hint: 'Enter one address per line (T…); text after # is ignored. You can also enter CSV with a column "address". Never enter a private key or a seed phrase.',
          more: html` dir="ltr" required`,
        }),
        endingField('firstEnding', 'Last six characters of the first address', 'Copy them from your wallet.'),
        endingField(
          'lastEnding',
          'Last six characters of the last address',
          'If you add only one address, enter the same characters.',
        ),
        policyField(subject.project),
        FRESH_FIELD,
      ],
      back: urlTo(visit, '/addresses', subject.project),
    }),
    done: (visit, { project }, added) => {
      if (added.kind === 'proposed') return waitPage(visit, project, added);
      const { view, projectPolicy } = added;
      const notes = html`\n${renderNotes(view, projectPolicy, view.added)}`;
      return addedPage(visit, project, { first: html`New invoices`, addresses: view.added, notes });
    },
  });
}

/** Reports every problem that can be found without the database. Throws `INVALID_ARGUMENT`. */
function readEntries(list: string): AddressEntry[] {
  const entries = readList(list, 'the list');
  const { problems } = readCandidates(entries, []);
  if (problems.length > 0) throw refusedAddresses('no address was added', problems);
  if (entries.length === 0) throw new FieldError('list', 'contains no address: write one address per line');
  return entries;
}

/** Shows that the addresses are now waiting. */
function waitPage(
  visit: Visit,
  project: ListedProjectView,
  { view, projectPolicy }: Extract<Added, { kind: 'proposed' }>,
): Page {
  const { changeId, dueAt, addresses } = view.proposed;
  return {
    title: 'Addresses pending',
    about: project,
    main: html`<section class="card form"><p class="first">The addresses are not used for invoices yet.</p><p>They are added at ${time(dueAt)} UTC, or as soon as another owner confirms them.</p>
<div class="actions"><a class="button" href="/addresses/changes/${changeId}">Details</a><a href="${urlTo(visit, '/addresses', project)}">Addresses</a></div></section>
${renderNotes(view, projectPolicy, addresses)}`,
  };
}

type AddedShown = { first: Html; addresses: readonly string[]; advice?: Html; notes?: Html };

function addedPage(visit: Visit, about: ListedProjectView, { first, addresses, advice, notes }: AddedShown): Page {
  return {
    ...{ title: 'Addresses added', about },
    main: html`<section class="card form"><p class="first">${first} can now use these addresses.</p>${listOf(addresses)}${advice ?? null}
<div class="actions"><a class="button" href="${urlTo(visit, '/addresses', about)}">Addresses</a></div></section>${notes ?? null}`,
  };
}

const listOf = (items: readonly string[]) =>
  html`<ul>${items.map((item) => html`<li><bdi class="mono">${item}</bdi></li>`)}</ul>`;

/** Notes about new addresses: the nodes' answers, and a policy that no invoice uses yet. */
function renderNotes(
  { policy, activation }: { policy: Policy; activation: ActivationView | null },
  projectPolicy: Policy,
  addresses: readonly string[],
): Html {
  const other =
    policy === projectPolicy
      ? null
      : html`<p class="notice">These addresses have the policy ${policy}, but the project uses ${projectPolicy}: invoices use them only if the project changes to ${policy}.</p>`;
  return html`${other}${activation === null ? null : renderActivation(activation, addresses.length)}`;
}

function renderActivation({ checked, neverActivated, contracts, notCheckedBecause }: ActivationView, count: number) {
  const list = (addresses: readonly string[]) => addresses.map((address) => html` ${ltr(address)}`);
  const danger =
    contracts.length === 0
      ? null
      : html`<p class="notice" role="alert"><strong>Not a wallet:</strong>${list(contracts)} is a smart contract, and money sent there is probably lost. Unless you control the contract, withdraw or retire its address.</p>`;
  const never =
    neverActivated.length === 0
      ? null
      : html`<section class="card"><h2>Never activated</h2><p class="mono">${list(neverActivated)}</p><p>They can still receive payments. Before you spend from such an address, send it about 1 TRX to activate it. If you expected an address to be in use already, compare it with your wallet now.</p></section>`;
  const left =
    checked >= count
      ? null
      : html`<p class="hint">${count - checked} of ${count} could not be checked: <bdi>${notCheckedBecause ?? 'no node responded'}</bdi>.</p>`;
  return html`${danger}${never}${left}`;
}

const FIRST = '/addresses/derive';
const SECOND = '/addresses/derive/compare';

type Derivation = Awaited<ReturnType<typeof showDerivation.run>>;

/** The two steps for deriving addresses: choosing the key and the number, and comparing the result with the wallet. */
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
      ...{ title: 'Derive addresses', about: subject.project, button: 'Show the addresses' },
      fields: fieldsOf(subject),
      consequence: html`<p>From the public key of an account in your wallet (<span class="mono">m/44'/195'/0'</span>), Quittance can compute its addresses, but cannot spend anything. Nothing is added yet: the next page shows the addresses.</p>`,
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
  addForm(routes, deps, {
    ...byOperation(deps, deriveAddresses, (filled, { key, project }: AddingSubject & Derivation) => {
      if (filled['ending'] === undefined)
        throw new FieldError('ending', 'must be six characters, as shown in your wallet');
      firstAddresses(key.xpub).refuseOther(filled['ending'].trim());
      return { ...given(filled, project), xpub: key.xpub, seen: (filled['seen'] ?? '').split(/\s+/) };
    }),
    ...{ path: SECOND, begins: FIRST },
    find: async (asked, project) => {
      const subject = await findAdding(deps, asked, project);
      const filled = readPostedForm(asked.request, null);
      return { ...subject, ...(await performFor(deps, asked.visit, showDerivation, given(filled, subject.project))) };
    },
    show: (visit, subject) => secondView(visit, subject),
    done: (visit, { project }, derived) => {
      if (derived.kind === 'proposed') return waitPage(visit, project, derived);
      const first = html`New invoices of ${outside(project.name, 100)}`;
      const addresses = derived.view.added.map(numbered);
      return addedPage(visit, project, { first, addresses, advice: WALLET_ADVICE });
    },
  });
}

function fieldsOf({ project }: AddingSubject) {
  return [
    line('xpub', 'Account public key (xpub6…)', {
      hint: "Leave empty to use the project's current key. Never enter a private key (xprv…).",
      more: html` dir="ltr" maxlength="200" autocapitalize="off" spellcheck="false"`,
    }),
    line('count', 'Number of addresses', {
      value: '3',
      more: html` inputmode="numeric" dir="ltr" maxlength="4" required`,
    }),
    line('autoLimit', 'Automatic limit for a new key (optional)', {
      hint: 'Total number of addresses to add automatically when payable amounts run low. Default: 100; 0 turns this off. Many wallets check only the next 20 addresses for payments.',
      more: html` inputmode="numeric" dir="ltr" maxlength="5"`,
    }),
    policyField(project),
    check('isFresh', 'After a restore: Quittance has never had this key', {
      hint: 'Use this only if this ledger was restored from a backup. Quittance then starts at the key’s first address.',
    }),
  ];
}

/** The input, which both forms share. */
function given({ xpub, count, autoLimit, policy, isFresh }: Fields, { projectId }: AddingSubject['project']) {
  return {
    ...{ projectId, xpub, count: count?.trim(), autoLimit: autoLimit?.trim(), isFresh: isFresh !== undefined },
    policy: readChoice<Policy>('policy', policy, POLICIES) ?? undefined,
  };
}

function secondView(visit: Visit, subject: AddingSubject & Derivation): FormView {
  const { project, view } = subject;
  const kept = Object.entries(KEPT).map(([name, label]) => ({ kind: 'kept', name, label }) as const);
  return {
    ...{ title: 'Are these in your wallet?', about: project, button: 'They are mine: add them' },
    consequence: html`${renderFirst(view)}${renderNext(view)}${renderWait(subject)}`,
    fields: [
      ...kept,
      endingField(
        'ending',
        'Last six characters of #1',
        'Copy these characters from your wallet. This page does not show them, because they prove that the key came from your wallet.',
      ),
    ],
    back: urlTo(visit, FIRST, project),
  };
}

const KEPT = {
  ...{ xpub: 'Account public key', count: 'Number of addresses', autoLimit: 'Automatic limit' },
  ...{ policy: 'Policy', isFresh: 'After a restore', seen: 'Addresses' },
};

function renderFirst({ first }: DerivationView): Html {
  return html`<p><strong>These are the first addresses in this account.</strong> Open the account in your wallet, and check that all three match. Some wallets count accounts instead of addresses: in these wallets, only #1 matches. If the addresses do not match, paste addresses from your wallet instead.</p>${listOf(first)}`;
}

function renderNext({ next, skipped, first: [one = ''] }: DerivationView): Html {
  const items = next.map((each) => (each.derivationIndex === 0 ? one : numbered(each)));
  const over =
    skipped.length === 0
      ? null
      : html`<p class="hint">Quittance skips ${skipped.length} earlier addresses, because they are already in a project.</p>`;
  return html`<p><strong>Addresses to add</strong></p>${listOf(items)}${over}`;
}

const numbered = ({ address, derivationIndex }: DerivationView['next'][number]) => `#${derivationIndex + 1} ${address}`;

const WALLET_ADVICE = html`
<p>Your wallet may show only the first few addresses: make it show all the addresses that you added. Otherwise, the balance in the wallet looks too low.</p>`;

/** The person copies these characters from the wallet, because the pasted list may not be the one that was copied. */
export function endingField(name: string, label: string, hint: string) {
  const more = html` dir="ltr" maxlength="34" autocapitalize="off" spellcheck="false" required`;
  return line(name, label, { hint, more });
}

/** Refuses anything except the address or its last characters. Throws `INVALID_ARGUMENT`. */
export function readEnding(field: string, typed: string | undefined, address: string | undefined): void {
  const text = typed?.trim();
  if (text !== undefined && (text === address || text === address?.slice(-ASKED_LENGTH))) return;
  // The text may be a secret, so it isn't repeated.
  throw new FieldError(
    field,
    text === undefined
      ? `must be the last ${ASKED_LENGTH} characters, as shown in your wallet`
      : `does not match the end of that address, so nothing was done: compare the addresses with your wallet, including upper and lower case`,
  );
}
