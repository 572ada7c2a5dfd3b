import type { ActionName } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import type { StepUpRequest } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, facts, field, outside, select } from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import type { Answer, Asked } from '../page/routes.ts';
import type { Visit } from '../page/visit.ts';

type Option = readonly [value: string, text: string];

/**
 * `value`: what it holds at first. A `check` is `yes` or nothing. `seen` is not shown: it names what the decision is made upon. A `passkey`
 * named `created` holds what the browser answers when it is asked by these options to make one; the form is shown where it knows how. What is `kept` was given or shown by the
 * step before, and is not typed again. A `picture` is the file in base64, which the script puts into a field of that name.
 */
export type FormField = { name: string; label: string; value?: string | undefined; hint?: string } & (
  | { kind: 'seen' }
  | { kind: 'line' | 'lines'; more?: Html }
  | { kind: 'select'; options: readonly Option[] }
  | { kind: 'check' | 'kept' }
  | { kind: 'picture'; mostBytes: number }
  | { kind: 'passkey'; options: object }
);

/** `consequence`: what follows, in numbers where there are some. `back`: where nothing is done. `preview`: a button that shows what is filled in, in a frame. */
export type FormView = {
  title: string;
  about: ListedProjectView | null;
  consequence: Html;
  fields: readonly FormField[];
  button: string;
  back: string;
  preview?: { button: Html; frame: Html };
};

/**
 * A form that runs a use case. Its page is at the path that it is sent to. Where `ACTIONS` says so, the person proves again who it is, after
 * `read` has found nothing wrong, for what is shown then.
 */
export type Form<Subject, Wanted, Outcome> = {
  action: ActionName;
  path: string;
  /** Where it begins, if it is the second step of something: its own page has nothing to show without the first. */
  begins?: string;
  /** What it is about, as the visitor may see it. Errors: `NOT_FOUND`. */
  find(asked: Asked, project: string | undefined): Promise<Subject>;
  show(visit: Visit, subject: Subject): FormView;
  /** Errors: `INVALID_ARGUMENT`. */
  read(filled: Fields, subject: Subject): Wanted;
  /** `once`: the same for a form that is sent twice. Errors: its own. */
  run(actor: Actor, wanted: Wanted, once: string): Promise<Outcome>;
  done(visit: Visit, subject: Subject, outcome: Outcome): Answer;
};

/** Names that forms need for themselves. */
export const OWN_FIELDS = ['project', 'token', 'code', 'passkey'] as const;

export type Refused = { problem: Html; status: number } | null;

export function formPage(
  visit: Visit,
  { title, about, consequence, fields, button, back, preview }: FormView,
  filled: Fields | null,
  refused: Refused,
): Page {
  // A form that is shown again shows what is so now, and so that is what it is made upon.
  const shown = fields.map((each) =>
    renderField(filled === null || each.kind === 'seen' ? each : { ...each, value: filled[each.name] }),
  );
  const form = html`<section class="card form">${refused === null ? null : alert(refused.problem)}${consequence}
<form method="post" action="${visit.path}"${makesPasskey(fields)}>${hidden('token', visit.token(visit.path))}${hiddenProject(about)}
${shown}
<div class="actions"><button>${button}</button>${preview?.button ?? null}<a href="${back}">Back</a></div></form></section>`;
  return {
    title,
    about,
    ...(refused === null ? {} : { status: refused.status }),
    ...(preview === undefined
      ? { main: form }
      : { main: html`<div class="pair">${form}${preview.frame}</div>`, isFraming: true }),
  };
}

/** The script asks the browser for it before the form is sent. */
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
      // Each is made for one challenge, which was spent or has run out.
      return hidden(name, '');
  }
}

/** What is about to be done, and the ways to prove who does it. Nothing was done yet. */
export function proofPage(
  visit: Visit,
  { title, about, consequence, fields, back }: FormView,
  filled: Fields,
  { passkey, hasCode, isEach, refused }: StepUpRequest & { isEach: boolean; refused: Refused },
): Page {
  const kept = [
    hidden('token', visit.token(visit.path)),
    ...(about === null ? [] : [hidden('project', about.projectId)]),
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
    about,
    status: refused?.status ?? 200,
    main: html`${refused === null ? null : alert(refused.problem)}
<section class="card" aria-labelledby="about-to"><h2 id="about-to">Confirm this change</h2>${consequence}
${facts(fields.flatMap((each) => (each.kind === 'seen' ? [] : [[each.label, shownValue(each, filled[each.name])] as const])))}
<p class="hint">Nothing has been changed yet. Confirm your identity: ${isEach ? 'Quittance asks for this every time.' : 'this is valid for five minutes.'}${hasCode ? null : html` You need a browser with JavaScript and your passkey.`}</p><p><a href="${back}">Cancel</a></p></section>
${byPasskey}${byCode}`,
  };
}

function shownValue(given: FormField, value: string | undefined): Html | string | null {
  if (value === undefined && given.kind === 'kept') return null;
  if (value === undefined) return html`<span class="hint">${given.kind === 'check' ? 'no' : 'nothing'}</span>`;
  if (given.kind === 'check') return 'yes';
  if (given.kind === 'picture') return `a picture of ${Math.floor((value.length * 3) / 4).toLocaleString('en')} bytes`;
  if (given.kind === 'passkey') return 'the one this browser just created';
  if (given.kind === 'select') return given.options.find(([option]) => option === value)?.[1] ?? value;
  return given.kind === 'lines' || given.kind === 'kept' ? html`<pre>${value}</pre>` : outside(value, MAX_SHOWN);
}

/** Longer than any line that a form takes: what is signed is shown whole. */
const MAX_SHOWN = 4000;

const hidden = (name: string, value: string) => html`<input type="hidden" name="${name}" value="${value}">`;
const hiddenProject = (about: ListedProjectView | null) => (about === null ? null : hidden('project', about.projectId));

/** A form of one button, for what harms nothing. */
export function oneClick(visit: Visit, path: string, label: Html | string): Html {
  return html`<form method="post" action="${path}">${hidden('token', visit.token(path))}<button class="quiet">${label}</button></form>`;
}
