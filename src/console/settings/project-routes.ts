import type { Text } from '../../domain/message.ts';
import { NETWORKS, type Network } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { formatDuration } from '../../operator/input/duration.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import {
  createProject,
  type NewProjectView,
  type Settings,
  showSettings,
  type UpdatedProjectView,
  updateProject,
} from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { Form, FormField, FormView } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { alert } from '../page/pieces.ts';
import { type Fields, readQuery } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';
import { addArchiveRoutes } from './archive-forms.ts';
import { lookFields, readLook } from './look-fields.ts';
import { addPreviewRoutes, PREVIEW_BUTTON, previewFrame } from './preview.ts';
import { describeAddresses, describeChanges, describeOpen, projectPage, trimmed } from './project-page.ts';

/** The settings of a project, the forms that change them, and a new project. */
export function addProjectRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/project', 'showSettings', async ({ visit, request }) => {
    const project = needProject(visit, readQuery(request, ['project']).project);
    return projectPage(visit, { ...(await showSettings.run(deps, visit.actor, project)), said: null });
  });
  addPreviewRoutes(routes, deps);
  addForm(routes, deps, change(deps, { path: '/settings/project/look', given: readLook, show: lookForm }));
  addForm(routes, deps, change(deps, { path: '/settings/project/rules', given: readRules, show: rulesForm }));
  addForm(routes, deps, creation(deps));
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
      return { updated, settings: await showSettings.run(deps, actor, updated) };
    },
    ...{ path, show },
    find: ({ visit }: Asked, project) => showSettings.run(deps, visit.actor, needProject(visit, project)),
    done: (visit, _before, { updated, settings }) =>
      projectPage(visit, { ...settings, said: describeChanges(visit, updated) }),
  };
}

function lookForm(visit: Visit, { view }: Settings): FormView {
  return {
    ...{ title: 'What payers see', about: view, fields: lookFields(view), button: 'Save' },
    consequence: html`<p>It is seen on every payer’s page that is opened from then on, also of invoices that there are.</p>`,
    back: urlTo(visit, '/settings/project', view),
    preview: { button: PREVIEW_BUTTON, frame: previewFrame(visit, view) },
  };
}

const POLICY_OPTIONS = [
  ['tail', 'tail: a few digits added to the amount'],
  ['tail-4', 'tail-4: the same with 4 decimals, for wallets and exchanges that take no more'],
  ['tail-3', 'tail-3: the same with 3 decimals'],
  ['exact', 'exact: an address for each invoice of an amount'],
] as const;
const SURCHARGE_HINT =
  'In USDT, with a tail: 0.0001 to 1, from 0.01 with tail-4, from 0.1 with tail-3. Empty: as is usual for the policy.';
const LIFETIME_HINT = '5m to 30d, such as 30m, 12h or 2d. A later payment still counts.';

function rulesForm(visit: Visit, { view, open }: Settings): FormView {
  const { policy, maxSurcharge, lifetimeMs, maxUnpaid, maxUnpaidPerMinute } = view;
  const limit = (name: string, label: string, value: number | null): FormField => {
    return { kind: 'line', name, label, value: value === null ? '' : String(value), hint: 'Empty: no limit.' };
  };
  return {
    ...{ title: 'How invoices are made', about: view, button: 'Save' },
    consequence: html`<p>${describeOpen(open)} New ones follow what you set here within ten seconds.</p><p>An address keeps its policy for life. In use: ${describeAddresses(view)} With a policy that has none every new invoice is refused.</p>`,
    back: urlTo(visit, '/settings/project', view),
    fields: [
      { kind: 'select', name: 'policy', label: 'Payments are told apart by', options: POLICY_OPTIONS, value: policy },
      {
        ...{ kind: 'line', name: 'maxSurcharge', label: 'Most that is added', hint: SURCHARGE_HINT },
        ...{ value: trimmed(maxSurcharge), more: NUMBER },
      },
      {
        ...{ kind: 'line', name: 'lifetime', label: 'An invoice waits', hint: LIFETIME_HINT },
        value: formatDuration(lifetimeMs),
      },
      limit('maxUnpaid', 'Unpaid invoices of the last 30 minutes, at most', maxUnpaid),
      limit('maxUnpaidPerMinute', 'Unpaid invoices of the last minute, at most', maxUnpaidPerMinute),
    ],
  };
}

const NUMBER = html` inputmode="decimal" dir="ltr"`;

function readRules({ policy, maxSurcharge = '', lifetime = '', maxUnpaid, maxUnpaidPerMinute }: Fields) {
  return {
    policy: readChoice('policy', policy, POLICIES) ?? undefined,
    ...{ maxSurcharge: maxSurcharge.trim() || undefined, lifetime: lifetime.trim() },
    ...{ maxUnpaid: maxUnpaid?.trim() ?? 'none', maxUnpaidPerMinute: maxUnpaidPerMinute?.trim() ?? 'none' },
  };
}

type Creation = ReturnType<typeof createProject.read>;

function creation(deps: ConsoleDeps): Form<readonly Network[], Creation, NewProjectView> {
  return {
    ...byOperation(deps, createProject, ({ name = '', network = '', ...filled }: Fields) => {
      const { policy, maxSurcharge, lifetime } = readRules(filled);
      return { name, network, policy, maxSurcharge, lifetime };
    }),
    path: '/settings/projects/new',
    // Of the others no block is read here.
    find: async () => (deps.networks.length === 0 ? NETWORKS : deps.networks),
    show: (_visit, networks) => ({
      ...{ title: 'New project', about: null, button: 'Make the project', back: '/settings' },
      consequence: html`<p>A project is one shop on one network, with its own addresses, keys and invoices. It keeps its network for life, and is never deleted. The rest can be changed.</p>`,
      fields: [
        { kind: 'line', name: 'name', label: 'Name', hint: 'Payers see it.', more: html` required` },
        { kind: 'select', name: 'network', label: 'Network', options: networks.map((name) => [name, name] as const) },
        { kind: 'select', name: 'policy', label: 'Payments are told apart by', options: POLICY_OPTIONS },
        {
          kind: 'line',
          name: 'maxSurcharge',
          label: 'Most that is added',
          hint: SURCHARGE_HINT,
          more: NUMBER,
        },
        { kind: 'line', name: 'lifetime', label: 'An invoice waits', value: '30m', hint: LIFETIME_HINT },
      ],
    }),
    // The visitor's list of projects is older.
    done: (_visit, _networks, { projectId, warning }) => {
      const today = `/?${new URLSearchParams({ project: projectId })}`;
      return warning === undefined ? { goTo: today } : warningPage(warning, today);
    },
  };
}

function warningPage(warning: Text, today: string): Page {
  return {
    title: 'The project is made',
    main: html`<section class="card">${alert(html`<p>${renderText(warning)}.</p>`)}<p><a class="button" href="${today}">Go on</a></p></section>`,
  };
}
