import { POLICIES, type Policy } from '../../domain/policy.ts';
import { FieldError } from '../../operator/input/field-error.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { perform } from '../../operator/operation.ts';
import {
  type DerivationView,
  type Derived,
  deriveAddresses,
  firstAddresses,
  showDerivation,
} from '../../operator/subjects/address-derivation.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import { type FormView, formPage } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { outside } from '../page/pieces.ts';
import { type Fields, readForm } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { type AddingSubject, findAdding, policyField, renderWait, waitPage } from './adding-form.ts';
import { endingField } from './endings.ts';

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
