import { MAX_LOGO_BYTES } from '../../../core/domain/brand/logo.ts';
import { AppError } from '../../../core/domain/errors.ts';
import { NETWORKS, type Network } from '../../../core/domain/network.ts';
import { POLICIES, TAIL_DECIMALS } from '../../../core/domain/policy.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { formatDuration, readChoice } from '../../operator/input/readers.ts';
import { perform } from '../../operator/operation.ts';
import { linkProblems } from '../../operator/subjects/project-settings.ts';
import {
  archiveProject,
  createProject,
  type ListedProjectView,
  type ProjectView,
  type Settings,
  showSettings,
  type UpdatedProjectView,
  unarchiveProject,
  updateProject,
} from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import {
  addForm,
  byOperation,
  check,
  choice,
  type Form,
  type FormField,
  type FormView,
  line,
  OWN_FIELDS,
} from '../forms/form.ts';
import { describeProblem, HEADERS, type Page } from '../page/layout.ts';
import { alert, type Column, duration, facts, ltr, number, outside, rowLink, table, time } from '../page/pieces.ts';
import { type Answer, type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { type Fields, needProject, readPostedForm, urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';

/** Adds the pages for a project's settings, the forms that change them, and the form for a new project. */
export function addProjectRoutes(routes: Routes, deps: ConsoleDeps): void {
  const find = finder(deps);
  routes.get('/settings/project', 'showSettings', ['project'], async (asked) =>
    projectPage(asked.visit, await find(asked, asked.query.project), null),
  );
  addPreviewRoutes(routes, deps);
  addForm(routes, deps, change(deps, { path: '/settings/project/look', given: readLook, show: lookForm }));
  addForm(routes, deps, change(deps, { path: '/settings/project/rules', given: readRules, show: rulesForm }));
  addForm(routes, deps, {
    ...byOperation(
      deps,
      createProject,
      ({ name = '', network = '', ...filled }: Fields, _networks: readonly Network[]) => {
        const { policy, maxSurcharge, lifetime } = readRules(filled);
        return { name, network, policy, maxSurcharge, lifetime };
      },
    ),
    path: '/settings/projects/new',
    // This process doesn't read blocks from other networks.
    find: async () => (deps.networks.length === 0 ? NETWORKS : deps.networks),
    show: (_visit, networks) => ({
      ...{ title: 'New project', button: 'Create project', back: '/settings' },
      consequence: html`<p>A project is one shop on one network, with its own addresses, keys and invoices. Its network can never be changed, and a project cannot be deleted. You can change everything else.</p>`,
      fields: [
        line('name', 'Name', { hint: 'Payers see this name.', more: html` required` }),
        choice(
          'network',
          'Network',
          networks.map((name) => [name, name] as const),
        ),
        ...ruleFields({ lifetime: '30m' }),
      ],
    }),
    // The visitor's list of projects was read before this project was created, so the list lacks it.
    done: (_visit, _networks, { projectId, warning }) => {
      const today = `/?${new URLSearchParams({ project: projectId })}`;
      if (warning === undefined) return { goTo: today };
      return {
        title: 'Project created',
        main: html`<section class="card">${alert(html`<p>${renderText(warning)}.</p>`)}<p><a class="button" href="${today}">Continue</a></p></section>`,
      };
    },
  });
  addArchiveRoutes(routes, deps);
}

type Given = Parameters<typeof updateProject.read>[0];
type Change = {
  path: string;
  given(filled: Fields): Omit<Given, 'projectId'>;
  show(visit: Visit, settings: Settings): FormView;
};

/** A form that changes some of the settings. */
function change(
  deps: ConsoleDeps,
  { path, given, show }: Change,
): Form<Settings, ReturnType<typeof updateProject.read>, { updated: UpdatedProjectView; settings: Settings }> {
  const { run, ...operation } = byOperation(deps, updateProject, (filled, { view }: Settings) => {
    return { ...given(filled), projectId: view.projectId };
  });
  return {
    ...operation,
    run: async (actor, wanted, once) => {
      const updated = await run(actor, wanted, once);
      return { updated, settings: await perform(showSettings, deps, actor, updated) };
    },
    ...{ path, show },
    find: finder(deps),
    done: (visit, _before, { updated, settings }) => projectPage(visit, settings, describeChanges(visit, updated)),
  };
}

function lookForm(visit: Visit, { view }: Settings): FormView {
  return {
    ...{ title: 'What payers see', about: view, fields: lookFields(view), button: 'Save' },
    consequence: html`<p>Payers see the changes on every page that they open afterwards, including pages for existing invoices.</p>`,
    back: urlTo(visit, '/settings/project', view),
    preview: { button: PREVIEW_BUTTON, frame: previewFrame(visit, view) },
  };
}

const POLICY_OPTIONS = [
  ['tail', 'tail: a few digits added to the amount'],
  ['tail-4', 'tail-4: the same with 4 decimals, for wallets and exchanges that do not support more decimals'],
  ['tail-3', 'tail-3: the same with 3 decimals'],
  ['exact', 'exact: invoices for the same amount each get their own address'],
] as const;

function rulesForm(visit: Visit, { view, open }: Settings): FormView {
  const { policy, maxSurcharge, lifetimeMs, maxUnpaid, maxUnpaidPerMinute } = view;
  const limit = (name: string, label: string, value: number | null) =>
    line(name, label, { value: value === null ? '' : String(value), hint: 'Leave empty for no limit.' });
  return {
    ...{ title: 'Invoice settings', about: view, button: 'Save' },
    consequence: html`<p>${describeOpen(open)} New invoices use these settings within ten seconds.</p><p>An address can never change its policy. In use: ${describeAddresses(view)} If no address has the chosen policy, every new invoice is refused.</p>`,
    back: urlTo(visit, '/settings/project', view),
    fields: [
      ...ruleFields({ policy, maxSurcharge: trimmed(maxSurcharge), lifetime: formatDuration(lifetimeMs) }),
      limit('maxUnpaid', 'Maximum unpaid invoices in 30 minutes', maxUnpaid),
      limit('maxUnpaidPerMinute', 'Maximum unpaid invoices in one minute', maxUnpaidPerMinute),
    ],
  };
}

function ruleFields({ policy, maxSurcharge: value, lifetime }: Fields<'policy' | 'maxSurcharge' | 'lifetime'>) {
  return [
    choice('policy', 'Payment matching', POLICY_OPTIONS, policy),
    line('maxSurcharge', 'Maximum surcharge', {
      ...{ value, more: html` inputmode="decimal" dir="ltr"` },
      hint: "In USDT. With tail: 0.0001 to 1; with tail-4: 0.01 to 1; with tail-3: 0.1 to 1. Leave empty for the policy's default.",
    }),
    line('lifetime', 'Invoice lifetime', {
      ...{ value: lifetime, hint: '5m to 30d, such as 30m, 12h or 2d. A later payment still counts.' },
    }),
  ];
}

function readRules({ policy, maxSurcharge = '', lifetime = '', maxUnpaid, maxUnpaidPerMinute }: Fields) {
  return {
    policy: readChoice('policy', policy, POLICIES) ?? undefined,
    ...{ maxSurcharge: maxSurcharge.trim() || undefined, lifetime: lifetime.trim() },
    ...{ maxUnpaid: maxUnpaid?.trim() ?? 'none', maxUnpaidPerMinute: maxUnpaidPerMinute?.trim() ?? 'none' },
  };
}

/** Shows a project's settings in words, with the payment page beside them. `said` reports the outcome of a form. */
function projectPage(visit: Visit, { view, logo }: Settings, said: Html | null): Page {
  const mayChange = isAllowed(visit.actor, 'updateProject');
  const change = (path: string, text: string) =>
    mayChange ? html`<p><a class="button quiet" href="${urlTo(visit, path, view)}">${text}</a></p>` : null;
  return {
    ...{ title: 'Project', about: view, isFraming: true },
    main: html`${said}${view.archivedAt === null ? null : html`<p class="notice">Archived since ${time(view.archivedAt)}: it accepts no new invoices.</p>`}<div class="pair"><div>
<section class="card" aria-labelledby="look"><h2 id="look">What payers see</h2>${facts([
      ['Name', outside(view.name, 200)],
      ['Support contact', view.supportContact === null ? NONE : outside(view.supportContact, 200)],
      ['Return link', view.returnUrl === null ? NONE : outside(view.returnUrl, 200)],
      ['Embedded in', view.embedOrigins === null ? NONE : outside(view.embedOrigins, 200)],
      ['Colour', view.accent === null ? NONE : html`${swatch(view.accent)} ${ltr(view.accent)}`],
      ['Logo', logo === null ? NONE : html`${logo.type.slice('image/'.length)}, ${number(logo.content.length)} bytes`],
    ])}${change('/settings/project/look', 'Change what payers see')}</section>
<section class="card" aria-labelledby="rules"><h2 id="rules">Invoice settings</h2>${facts([
      ['Network', html`${view.network} (permanent)`],
      ['Payment matching', describePolicy(view)],
      ['Invoice lifetime', duration(view.lifetimeMs)],
      ['Max unpaid in 30 minutes', describeLimit(view.maxUnpaid)],
      ['Max unpaid per minute', describeLimit(view.maxUnpaidPerMinute)],
      ['Addresses', html`${describeAddresses(view)} <a href="${urlTo(visit, '/addresses', view)}">Addresses</a>`],
      ['Project id', ltr(view.projectId)],
    ])}${change('/settings/project/rules', 'Change invoice settings')}${view.archivedAt === null ? change('/settings/project/archive', 'Archive the project') : change('/settings/project/unarchive', 'Restore the project')}</section></div>
${previewFrame(visit, view)}</div>`,
  };
}

const NONE = html`<span class="hint">none</span>`;

/** The content policy forbids style attributes, but allows a picture's attributes. */
function swatch(accent: string): Html {
  return html`<svg aria-hidden="true" width="16" height="16"><rect width="16" height="16" rx="4" fill="${accent}"/></svg>`;
}

function describePolicy({ policy, maxSurcharge }: Settings['view']): string {
  return policy === 'exact'
    ? 'no surcharge: invoices for the same amount each get their own address (exact)'
    : `up to ${TAIL_DECIMALS[policy]} decimals, less than ${trimmed(maxSurcharge)} USDT added to the amount (${policy})`;
}

const describeLimit = (most: number | null) => (most === null ? 'no limit' : `at most ${number(most)} invoices`);

/** `0.010000` → `0.01`. */
function trimmed(amount: string): string {
  return amount.replace(/\.?0+$/, '');
}

function describeAddresses({ activeAddresses: active }: Pick<Settings['view'], 'activeAddresses'>) {
  return `${POLICIES.map((policy) => `${number(active[policy])} with policy ${policy}`).join(', ')}.`;
}

/** Says how many open invoices a change won't affect. */
function describeOpen({ count, isAll }: Settings['open']): Html {
  const of = isAll ? null : html` of the newest 10,000`;
  if (count === 0) return html`There are no open invoices${of}.`;
  if (count === 1) return html`One open invoice${of} stays payable with its current amount, address and deadline.`;
  return html`${number(count)} open invoices${of} stay payable with their current amounts, addresses and deadlines.`;
}

/** The labels for settings in descriptions of changes. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ name: 'Name', supportContact: 'Support contact', returnUrl: 'Return link', embedOrigins: 'Embedded in' },
  ...{ accent: 'Colour', logoId: 'Logo' },
  ...{ policy: 'Policy', maxSurcharge: 'Maximum surcharge', lifetimeMs: 'Invoice lifetime' },
  ...{ maxUnpaid: 'Max unpaid in 30 minutes', maxUnpaidPerMinute: 'Max unpaid per minute' },
};
const OF_PAYERS = ['name', 'supportContact', 'returnUrl', 'embedOrigins', 'accent', 'logoId'];

/** Says which settings changed, their old and new values, and when the change takes effect. */
function describeChanges(visit: Visit, updated: UpdatedProjectView): Html {
  const { changed, policy, activeAddresses } = updated;
  const names = Object.keys(changed);
  if (names.length === 0)
    return html`<p class="good" role="status">Nothing to change: the project already has these settings.</p>`;
  const list = facts(
    Object.entries(changed).map(([name, { from, to }]) => [
      NAMES[name] ?? name,
      html`${showValue(name, from)} → ${showValue(name, to)}`,
    ]),
  );
  const isSeen = names.some((name) => OF_PAYERS.includes(name));
  const isOfNew = names.some((name) => !OF_PAYERS.includes(name));
  const isStuck = changed['policy'] !== undefined && activeAddresses[policy] === 0;
  return html`<div class="good" role="status"><p>The project was changed.</p>${list}${isSeen ? html`<p>Payers see this on every page they open from now on.</p>` : null}${isOfNew ? html`<p>New invoices use this within ten seconds; existing invoices are unchanged.</p>` : null}</div>
${isStuck ? alert(html`<p>The project has no address with the policy ${policy}, so every new invoice is refused. <a href="${urlTo(visit, '/addresses/add', updated)}">Add addresses</a></p>`) : null}`;
}

function showValue(name: string, value: string | number | null): Html | string {
  if (value === null) return 'none';
  if (name === 'lifetimeMs') return duration(Number(value));
  return outside(String(value), 200);
}

/** The fields that payers see. */
function lookFields({ name, supportContact, returnUrl, embedOrigins, accent, logoId }: ProjectView): FormField[] {
  return [
    line('name', LOOK_LABELS.name, { value: name, more: html` required` }),
    line('support', LOOK_LABELS.support, {
      value: supportContact ?? undefined,
      hint: 'An e-mail address, an https:// link, or text such as a Telegram name. Leave empty for none.',
    }),
    line('returnUrl', LOOK_LABELS.returnUrl, {
      value: returnUrl ?? undefined,
      hint: 'An https:// link to the shop. {invoiceId} is replaced by the invoice id. Leave empty for none.',
    }),
    line('embedOrigins', LOOK_LABELS.embedOrigins, {
      value: embedOrigins ?? undefined,
      hint: 'Sites such as https://shop.example, at most five. If you leave this empty, no site can embed or overlay the page.',
    }),
    line('accent', LOOK_LABELS.accent, {
      value: accent ?? undefined,
      hint: 'Colour of buttons and links, such as 0a6549; adjusted if text would be hard to read. Leave empty for green.',
    }),
    {
      ...{ kind: 'picture', name: 'logo', label: LOOK_LABELS.logo, mostBytes: MAX_LOGO_BYTES },
      hint: `A PNG, JPEG or WebP of at most ${MAX_LOGO_BYTES / 1024} KiB. If you don't choose a file, the logo stays the same.`,
    },
    ...(logoId === null ? [] : [check('noLogo', LOOK_LABELS.noLogo)]),
  ];
}

const LOOK_LABELS = {
  name: 'Name',
  support: 'Support contact for payers',
  returnUrl: 'Return link to the shop',
  embedOrigins: 'Sites that may embed the page',
  accent: 'Colour',
  logo: 'Logo',
  noLogo: 'Remove the logo',
} as const;

/** An empty field removes its setting. */
function readLook({ name = '', support, returnUrl, embedOrigins, accent, logo, noLogo }: Fields) {
  return {
    ...{ name, support: support?.trim() ?? null, returnUrl: returnUrl?.trim() ?? null },
    ...{ embedOrigins: embedOrigins?.trim() ?? null, accent: accent?.trim() ?? null },
    ...(logo === undefined ? {} : { logo: { file: 'the picture', content: logo } }),
    ...(noLogo === undefined ? {} : { logo: null }),
  };
}

/** Adds the forms that archive and restore a project, and the list of archived ones. */
function addArchiveRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/projects', 'listProjects', ['project'], async ({ visit }) => {
    const archived = visit.projects.filter(({ archivedAt }) => archivedAt !== null);
    const columns: Column<ListedProjectView>[] = [
      ['Project', (project) => rowLink(urlTo(visit, '/settings/project', project), outside(project.name, 100))],
      ['Network', ({ network }) => network],
      ['Archived', ({ archivedAt }) => (archivedAt === null ? '' : time(archivedAt))],
    ];
    const list =
      archived.length === 0 ? html`<p>No archived projects.</p>` : table('Archived projects', columns, archived);
    return { title: 'Archived projects', main: html`<section class="card">${list}</section>` };
  });
  addForm(routes, deps, {
    ...archiving(deps, archiveProject),
    path: '/settings/project/archive',
    show: (visit, { view, open }) => ({
      ...{ title: 'Archive the project', about: view, button: 'Archive' },
      consequence: html`<p>${describeOpen(open)} Payments are still recorded and reported to your shop.</p><p>Quittance refuses new orders, and the project's API keys become read-only. The project disappears from lists, but you can restore it.</p>`,
      back: urlTo(visit, '/settings/project', view),
    }),
  });
  addForm(routes, deps, {
    ...archiving(deps, unarchiveProject),
    path: '/settings/project/unarchive',
    show: (visit, { view }) => ({
      ...{ title: 'Restore the project', about: view, button: 'Restore' },
      consequence: html`<p>Its API keys can create invoices again at its active addresses. Check that these addresses are still in your wallet.</p>`,
      back: urlTo(visit, '/settings/project', view),
    }),
  });
}

function archiving(deps: ConsoleDeps, operation: typeof archiveProject) {
  return {
    ...byOperation(deps, operation, (_filled, { view }: Settings) => ({ projectId: view.projectId })),
    find: finder(deps),
  };
}

const finder =
  (deps: ConsoleDeps) =>
  ({ visit }: Asked, project: string | undefined) =>
    performFor(deps, visit, showSettings, needProject(visit, project));

type Logo = NonNullable<Settings['logo']>;

const PATH = '/settings/project/preview';

/**
 * Adds the payment page as an example: as it is, or as a form would change it, without changing anything. The input is sent in the form and
 * not in the URL, so that an external link can't put its own text on a console page.
 */
function addPreviewRoutes({ get, post }: Routes, deps: ConsoleDeps): void {
  get(PATH, 'showSettings', ['project'], (asked) => show(deps, asked, asked.query.project, null));
  post(PATH, 'showSettings', (asked) => {
    const { project, ...filled } = readPostedForm(asked.request, [...OWN_FIELDS, ...Object.keys(LOOK_LABELS)]);
    return show(deps, asked, project, filled);
  });
}

async function show(
  deps: ConsoleDeps,
  { visit, request, reply }: Asked,
  project: string | undefined,
  filled: Fields | null,
): Promise<Answer> {
  const { view, logo } = await performFor(deps, visit, showSettings, needProject(visit, project));
  const { network, policy, lifetimeMs } = view;
  const now = deps.now();
  const read = filled === null ? { brand: view, logo } : readBrand(view, logo, filled, now);
  const shown =
    'problem' in read ? read : { brand: read.brand, logoUrl: urlOf(read.logo), network, policy, lifetimeMs, now };
  const { html: text, nonce } = deps.renderExample(request, shown);
  return { sent: reply.headers(headers(nonce)).type('text/html; charset=utf-8').send(text) };
}

const urlOf = (logo: Logo | null) => logo && `data:${logo.type};base64,${logo.content.toString('base64')}`;

/** The input is read by the same functions as the form's. `problem` is why the form would be refused. */
function readBrand(
  view: ListedProjectView,
  former: Logo | null,
  filled: Fields,
  now: UnixMs,
): { brand: ListedProjectView; logo: Logo | null } | { problem: Html } {
  try {
    const wanted = updateProject.read({ projectId: view.projectId, ...readLook(filled) }, now);
    const { name = '', supportContact = null, returnUrl = null, accent = null } = wanted;
    const problems = linkProblems(wanted, view.network);
    const shown = { ...view, name, supportContact, returnUrl, accent };
    if (problems.length === 0) return { brand: shown, logo: wanted.logo === undefined ? former : wanted.logo };
    throw new AppError('INVALID_ARGUMENT', 'the project would not be changed', { problems });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return { problem: describeProblem(error, LOOK_LABELS) };
  }
}

/** With this header, browsers would refuse to show the example on its own, because it's sandboxed. */
const { 'Cross-Origin-Opener-Policy': _, ...OTHERS } = HEADERS;

/** Only console pages may frame it. The sandbox doesn't run scripts, submit forms, open windows or have cookies. */
function headers(nonce: string) {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox`;
  return { ...OTHERS, 'Content-Security-Policy': policy };
}

function previewFrame(visit: Visit, project: ListedProjectView): Html {
  return html`<iframe class="example" name="preview" title="Example of the payer’s page" src="${urlTo(visit, PATH, project)}" sandbox></iframe>`;
}

/** Appears beside the form's own button and shows the input in the frame. */
const PREVIEW_BUTTON = html`<button class="quiet" formaction="${PATH}" formtarget="preview" formnovalidate>Preview</button>`;
