import { AppError } from '../../../core/domain/errors.ts';
import type { Static, TSchema } from '../../../core/runtime/type.ts';
import { ACTIONS, type ActionName, type Rule } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import { type Given, type LocalOperation, type OperationDeps, perform } from '../../operator/operation.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import type { StepUpProof, StepUpRequest } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { describeProblem, type Page } from '../page/layout.ts';
import { alert, facts, field, hidden, outside, select } from '../page/pieces.ts';
import type { Answer, Asked, ConsoleDeps, Routes } from '../page/routes.ts';
import { chooseProject, type Fields, parsePasskey, readPostedForm, urlTo, type Visit } from '../page/visit.ts';

type Option = readonly [value: string, text: string];

/**
 * `value` is the initial value. A `check` is `yes` or absent. A `seen` field isn't shown; it identifies the state that the person's
 * decision is based on. A `passkey` named `created` holds the browser's response to these creation options, and appears only if the browser
 * supports passkeys. A `kept` value was given or shown in the previous step and isn't typed again. A `picture` is a file, which the script
 * puts into the field as base64.
 */
export type FormField = { name: string; label: string; value?: string | undefined; hint?: string } & (
  | { kind: 'seen' }
  | { kind: 'line' | 'lines'; more?: Html }
  | { kind: 'select'; options: readonly Option[] }
  | { kind: 'check' | 'kept' }
  | { kind: 'picture'; mostBytes: number }
  | { kind: 'passkey'; options: object }
);

type Rest = { value?: string | undefined; hint?: string; more?: Html };

export const line = (name: string, label: string, rest: Rest = {}): FormField => ({
  ...{ kind: 'line', name, label },
  ...rest,
});

export const lines = (name: string, label: string, rest: Rest): FormField => ({
  ...{ kind: 'lines', name, label },
  ...rest,
});

export const choice = (name: string, label: string, options: readonly Option[], value?: string): FormField => ({
  ...{ kind: 'select', name, label, options, value },
});

export const check = (name: string, label: string, rest: Pick<Rest, 'hint'> & { isOn?: boolean } = {}): FormField => ({
  ...{ kind: 'check', name, label, value: rest.isOn ? 'yes' : undefined },
  ...(rest.hint === undefined ? {} : { hint: rest.hint }),
});

/**
 * `consequence` says what will happen, with numbers if there are any. `back` is the page to return to without doing anything. `preview` is
 * a button that shows the filled-in form in a frame.
 */
export type FormView = {
  title: string;
  about?: ListedProjectView;
  consequence: Html;
  fields?: readonly FormField[];
  button: string;
  back: string;
  preview?: { button: Html; frame: Html };
};

/**
 * A form that runs a use case. Its page has the same path as its submission. If `ACTIONS` requires it, the person proves their identity
 * again for exactly what is shown, after `read` has accepted the input.
 */
export type Form<Subject, Wanted, Outcome> = {
  action: ActionName;
  path: string;
  /** The path of the first step, if this is the second one. The second step's page has nothing to show without the first. */
  begins?: string;
  /** Fields that a link may fill in. */
  filled?: readonly string[];
  /** Finds the subject if the visitor may see it. Throws `NOT_FOUND`. */
  find(asked: Asked, project: string | undefined): Promise<Subject>;
  show(visit: Visit, subject: Subject): FormView;
  /** Throws `INVALID_ARGUMENT`. */
  read(filled: Fields, subject: Subject): Wanted;
  /** `once` has the same value if the form is submitted twice. Throws its own errors. */
  run(actor: Actor, wanted: Wanted, once: string): Promise<Outcome>;
  /** By default, the person returns to `back`. */
  done?(visit: Visit, subject: Subject, outcome: Outcome): Answer;
};

/** Names reserved for the forms themselves. */
export const OWN_FIELDS = ['project', 'token', 'code', 'passkey'] as const;

type Refused = { problem: Html; status: number } | null;

export function formPage(
  visit: Visit,
  { title, about, consequence, fields = [], button, back, preview }: FormView,
  filled: Fields | null,
  refused: Refused,
): Page {
  // A form that is shown again after an error shows the current state, so the `seen` field must identify that state as well.
  const shown = fields.map((each) =>
    renderField(filled === null || each.kind === 'seen' ? each : { ...each, value: filled[each.name] }),
  );
  const form = html`<section class="card form">${refused && alert(refused.problem)}${consequence}
<form method="post" action="${visit.path}"${makesPasskey(fields)}>${hidden('token', visit.token(visit.path))}${about ? hidden('project', about.projectId) : null}
${shown}
<div class="actions"><button>${button}</button>${preview?.button ?? null}<a href="${back}">Back</a></div></form></section>`;
  const page = { title, about: about ?? null, status: refused?.status ?? 200 };
  if (preview === undefined) return { ...page, main: form };
  return { ...page, main: html`<div class="pair">${form}${preview.frame}</div>`, isFraming: true };
}

/** The script asks the browser for a passkey before the form is submitted. */
function makesPasskey(fields: readonly FormField[]): Html | null {
  const made = fields.find(({ kind }) => kind === 'passkey');
  return made?.kind === 'passkey'
    ? html` data-passkey="create" data-options="${JSON.stringify(made.options)}" hidden`
    : null;
}

function renderField(given: FormField): Html {
  const { name, label, value, hint } = given;
  switch (given.kind) {
    case 'seen':
      return hidden(name, value ?? '');
    case 'line':
      return field(name, label, value, given.more, hint);
    case 'lines':
      return html`<div><label for="${name}">${label}</label><textarea id="${name}" name="${name}" rows="6" spellcheck="false"${hint === undefined ? null : html` aria-describedby="${name}-hint"`}${given.more ?? null}>${value ?? ''}</textarea>${hint === undefined ? null : html`<p class="hint" id="${name}-hint">${hint}</p>`}</div>`;
    case 'select':
      return select(name, label, given.options, value);
    case 'picture':
      return html`<div data-picture hidden><label for="${name}-file">${label}</label><input id="${name}-file" type="file" accept="image/png,image/jpeg,image/webp" data-into="${name}" data-most="${given.mostBytes}" aria-describedby="${name}-hint"><p class="hint" id="${name}-hint">${hint ?? null}${value === undefined ? null : ' The picture you chose before is kept.'}</p></div><noscript><p class="hint">${label}: to choose a file, you need a browser with JavaScript.</p></noscript>${hidden(name, value ?? '')}`;
    case 'kept':
      return html`${value === undefined ? null : hidden(name, value)}`;
    case 'check':
      return html`<label class="check"><input type="checkbox" name="${name}" value="yes"${value === undefined ? null : html` checked`}> <span>${label}${hint === undefined ? null : html`<span class="hint">${hint}</span>`}</span></label>`;
    case 'passkey':
      // A passkey is created for one challenge, which is used up or expired by now.
      return hidden(name, '');
  }
}

/** Shows the action and the ways to prove one's identity. Nothing has been done yet. */
function proofPage(
  visit: Visit,
  { title, about, consequence, fields = [], back }: FormView,
  filled: Fields,
  { passkey, hasCode, isEach, refused }: StepUpRequest & { isEach: boolean; refused: Refused },
): Page {
  const kept = [
    hidden('token', visit.token(visit.path)),
    ...(about === undefined ? [] : [hidden('project', about.projectId)]),
    ...fields.flatMap(({ name }) => (filled[name] === undefined ? [] : [hidden(name, filled[name])])),
  ];
  const byPasskey =
    passkey === null
      ? null
      : html`<form method="post" action="${visit.path}" class="card fields" data-passkey="get" data-options="${JSON.stringify(passkey)}" hidden>${kept}${hidden('passkey', '')}
<p><button>Confirm with a passkey</button></p></form>`;
  const byCode = hasCode
    ? html`<form method="post" action="${visit.path}" class="card fields">${kept}
<div><label for="code">Code from your app, or a recovery code</label><input id="code" name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" maxlength="40" required></div>
<p><button>Confirm with the code</button></p></form>`
    : null;
  return {
    title,
    about: about ?? null,
    status: refused?.status ?? 200,
    problem: refused?.problem ?? null,
    main: html`
<section class="card" aria-labelledby="about-to"><h2 id="about-to">Confirm this change</h2>${consequence}
${facts(fields.flatMap((each) => (each.kind === 'seen' ? [] : [[each.label, shownValue(each, filled[each.name])] as const])))}
<p class="hint">Nothing has been changed yet. Confirm your identity: ${isEach ? 'Quittance asks for this every time.' : 'your confirmation is valid for five minutes.'}${hasCode ? null : html` You need a browser with JavaScript and your passkey.`}</p><p><a href="${back}">Cancel</a></p></section>
${byPasskey}${byCode}`,
  };
}

function shownValue(given: FormField, value: string | undefined): Html | string | null {
  if (value === undefined && given.kind === 'kept') return null;
  if (value === undefined) return html`<span class="hint">${given.kind === 'check' ? 'no' : 'nothing'}</span>`;
  if (given.kind === 'check') return 'yes';
  if (given.kind === 'picture') return `a picture of ${Math.floor((value.length * 3) / 4).toLocaleString('en')} bytes`;
  if (given.kind === 'passkey') return 'the passkey that this browser just created';
  if (given.kind === 'select') return given.options.find(([option]) => option === value)?.[1] ?? value;
  return given.kind === 'lines' || given.kind === 'kept' ? html`<pre>${value}</pre>` : outside(value, MAX_SHOWN);
}

/** This is longer than any line that a form accepts, because a person must see the whole text that they sign. */
const MAX_SHOWN = 4000;

/** A form with a single button, for harmless actions. */
export function oneClick(visit: Visit, path: string, label: Html | string): Html {
  return html`<form method="post" action="${path}">${hidden('token', visit.token(path))}<button class="quiet">${label}</button></form>`;
}

/** Adds a form's page and its submission. */
export function addForm<Subject, Wanted, Outcome>(
  { get, form: post }: Routes,
  deps: Pick<ConsoleDeps, 'stepUp'>,
  form: Form<Subject, Wanted, Outcome>,
): void {
  get(form.path, form.action, ['project', ...(form.filled ?? [])], async (asked) => {
    const { project, ...filled }: Fields = asked.query;
    if (form.begins !== undefined)
      return { goTo: urlTo(asked.visit, form.begins, chooseProject(asked.visit, project)) };
    const subject = await form.find(asked, project);
    return formPage(asked.visit, form.show(asked.visit, subject), Object.keys(filled).length > 0 ? filled : null, null);
  });
  post(form.path, form.action, async (asked) => {
    const { visit, request, tokens } = asked;
    const subject = await form.find(asked, readPostedForm(request, null)['project']);
    const view = form.show(visit, subject);
    const { fields = [] } = view;
    const names = fields.map(({ name }) => name);
    const { project: _project, token, code, passkey, ...filled } = readPostedForm(request, [...OWN_FIELDS, ...names]);
    const refuse = (refused: Refused) => formPage(visit, view, filled, refused);
    const taken = tokens.take(visit.path, token);
    if (taken.kind === 'refused') return refuse({ problem: html`<p>${taken.reason}.</p>`, status: 409 });
    const labels = Object.fromEntries(fields.map(({ name, label }) => [name, label]));
    try {
      const wanted = form.read(filled, subject);
      const asking = await askAgain(deps, form.action, asked, { view, filled, proof: readProof(code, passkey) });
      if (asking !== null) return proofPage(visit, view, filled, asking);
      const outcome = await form.run(visit.actor, wanted, `console-${taken.id}`);
      return form.done?.(visit, subject, outcome) ?? { goTo: view.back };
    } catch (error) {
      if (!(error instanceof AppError) || !SHOWN_AGAIN.has(error.code)) throw error;
      return refuse({ problem: describeProblem(error, labels), status: error.code === 'INVALID_ARGUMENT' ? 400 : 409 });
    }
  });
}

/** Errors that the person can fix in the form itself. Others have their own page. */
const SHOWN_AGAIN: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'CONFLICT', 'USAGE', 'CONFIG_INVALID']);

/** Returns `null` if the action requires no proof, or if the person has just given a valid one. */
async function askAgain(
  deps: Pick<ConsoleDeps, 'stepUp'>,
  action: ActionName,
  { visit, request }: Asked,
  { view, filled, proof }: { view: FormView; filled: Fields; proof: StepUpProof | null },
) {
  const rule: Rule = ACTIONS[action];
  const stepUp = rule.stepUp === undefined ? null : await deps.stepUp(request);
  if (stepUp === null || (rule.stepUp === 'recent' && stepUp.isRecent)) return null;
  // The person signs what the page shows: the form, its subject and project as the server resolved them, and every field.
  const subject = [visit.path, view.title, view.about?.projectId ?? null];
  const signed = { name: action, input: JSON.stringify([...subject, Object.entries(filled).sort()]) };
  const isRefused = proof !== null && !(await stepUp.take(signed, proof));
  if (proof !== null && !isRefused) return null;
  const problem = html`<p>That code is wrong or was already used. Nothing was changed.</p>`;
  return {
    ...(await stepUp.ask(signed)),
    isEach: rule.stepUp === 'each',
    refused: isRefused ? { problem, status: 403 } : null,
  };
}

function readProof(code: string | undefined, passkey: string | undefined): StepUpProof | null {
  if (code !== undefined) return { code: code.trim() };
  return passkey === undefined ? null : { passkey: parsePasskey(passkey) };
}

/** The part of a form that runs an admin API operation. `given` builds its input. */
export function byOperation<Input extends TSchema, Wanted, Outcome, Subject>(
  deps: OperationDeps,
  operation: LocalOperation<Input, Wanted, Outcome>,
  given: (filled: Fields, subject: Subject) => Given<Static<Input>>,
): Pick<Form<Subject, Wanted, Outcome>, 'action' | 'read' | 'run'> {
  return {
    action: operation.action,
    read: (filled, subject) => operation.read(given(filled, subject), deps.now()),
    run: (actor, wanted) => perform(operation, deps, actor, wanted),
  };
}

/**
 * Adds the submission of a one-button form (`oneClick`). `run` returns the next page, or shows the outcome. Throws `CONFLICT` or its own
 * errors, each with a page.
 */
export function addClick(
  { post }: Routes,
  path: string,
  action: ActionName,
  run: (asked: Asked) => Promise<string | Page>,
): void {
  post(path, action, async (asked) => {
    const { token } = readPostedForm(asked.request, ['token']);
    const taken = asked.tokens.take(asked.visit.path, token);
    if (taken.kind === 'refused') throw new AppError('CONFLICT', taken.reason);
    const next = await run(asked);
    return typeof next === 'string' ? { goTo: next } : next;
  });
}
