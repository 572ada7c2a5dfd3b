import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { linkProblems } from '../../operator/subjects/project-settings.ts';
import {
  type ListedProjectView,
  type Settings,
  showSettings,
  updateProject,
} from '../../operator/subjects/projects.ts';
import type { Html } from '../../web/html.ts';
import { html } from '../../web/html.ts';
import { OWN_FIELDS } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { type Fields, readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { HEADERS } from '../page/send-page.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { LOOK_LABELS, readLook } from './look-fields.ts';

type Logo = NonNullable<Settings['logo']>;

const PATH = '/settings/project/preview';

/**
 * The payer's page as an example: as it is, or as a form would make it, which changes nothing. What is filled in comes with the form and
 * not in the address, so that no link from elsewhere puts its words on a page of the console.
 */
export function addPreviewRoutes({ get, post }: Routes, deps: ConsoleDeps): void {
  get(PATH, 'showSettings', (asked) => show(deps, asked, readQuery(asked.request, ['project']).project, null));
  post(PATH, 'showSettings', (asked) => {
    const { project, ...filled } = readForm(asked.request, [...OWN_FIELDS, ...Object.keys(LOOK_LABELS)]);
    return show(deps, asked, project, filled);
  });
}

async function show(
  deps: ConsoleDeps,
  { visit, request, reply }: Asked,
  project: string | undefined,
  filled: Fields | null,
): Promise<Answer> {
  const { view, logo } = await showSettings.run(deps, visit.actor, needProject(visit, project));
  const { network, policy, lifetimeMs } = view;
  const now = deps.now();
  const read = filled === null ? { brand: view, logo } : readBrand(view, logo, filled, now);
  const shown =
    'problem' in read ? read : { brand: read.brand, logoUrl: urlOf(read.logo), network, policy, lifetimeMs, now };
  const { html: text, nonce } = deps.renderExample(request, shown);
  return { sent: reply.headers(headers(nonce)).type('text/html; charset=utf-8').send(text) };
}

const urlOf = (logo: Logo | null) => logo && `data:${logo.type};base64,${logo.content.toString('base64')}`;

/** By the readers of the form. `problem`: why it would be refused. */
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

/** With them browsers would refuse to show it alone, because it is in a sandbox. */
const { 'Cross-Origin-Opener-Policy': _, ...OTHERS } = HEADERS;

/** Pages of the console frame it, and nobody else. In the sandbox nothing runs, no form is sent, no link opens a window, and it has no cookie. */
function headers(nonce: string) {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox`;
  return { ...OTHERS, 'Content-Security-Policy': policy };
}

export function previewFrame(visit: Visit, project: ListedProjectView): Html {
  return html`<iframe class="example" name="preview" title="Example of the payer’s page" src="${urlTo(visit, PATH, project)}" sandbox></iframe>`;
}

/** Beside the button of the form: shows in the frame what is filled in. */
export const PREVIEW_BUTTON = html`<button class="quiet" formaction="${PATH}" formtarget="preview" formnovalidate>Preview</button>`;
