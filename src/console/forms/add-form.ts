import { AppError } from '../../domain/errors.ts';
import { ACTIONS, type Rule } from '../../operator/actions.ts';
import type { Given, LocalOperation, OperationDeps } from '../../operator/operation.ts';
import { perform } from '../../operator/operation.ts';
import type { StepUpProof } from '../../operator/subjects/sign-in.ts';
import type { Static, TSchema } from '../../runtime/type.ts';
import { html } from '../../web/html.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { type Fields, readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { chooseProject, urlTo } from '../page/visit.ts';
import { type Form, type FormView, formPage, OWN_FIELDS, proofPage, type Refused } from './form.ts';

/** Adds the page of a form, and what it is sent to. */
export function addForm<Subject, Wanted, Outcome>(
  { get, form: post }: Routes,
  deps: Pick<ConsoleDeps, 'stepUp' | 'now'>,
  form: Form<Subject, Wanted, Outcome>,
): void {
  get(form.path, form.action, async (asked) => {
    const { project } = readQuery(asked.request, ['project']);
    if (form.begins !== undefined)
      return { goTo: urlTo(asked.visit, form.begins, chooseProject(asked.visit, project)) };
    const subject = await form.find(asked, project);
    return formPage(asked.visit, form.show(asked.visit, subject), null, null);
  });
  post(form.path, form.action, (asked) => send(deps, form, asked));
}

async function send<Subject, Wanted, Outcome>(
  deps: Pick<ConsoleDeps, 'stepUp' | 'now'>,
  form: Form<Subject, Wanted, Outcome>,
  asked: Asked,
): Promise<Answer> {
  const { visit, request, tokens } = asked;
  const subject = await form.find(asked, readForm(request, null)['project']);
  const view = form.show(visit, subject);
  const names = view.fields.map(({ name }) => name);
  const { project: _project, token, code, passkey, ...filled } = readForm(request, [...OWN_FIELDS, ...names]);
  const refuse = (refused: Refused) => formPage(visit, view, filled, refused);
  const taken = tokens.take(visit.path, token);
  if (taken.kind === 'refused') return refuse({ problem: html`<p>${taken.reason}.</p>`, status: 409 });
  const labels = Object.fromEntries(view.fields.map(({ name, label }) => [name, label]));
  try {
    const wanted = form.read(filled, subject);
    const asking = await askAgain(deps, form, asked, { view, filled, code, passkey });
    if (asking !== null) return proofPage(visit, view, filled, asking);
    return form.done(visit, subject, await form.run(visit.actor, wanted, `console-${taken.id}`));
  } catch (error) {
    if (!(error instanceof AppError) || !SHOWN_AGAIN.has(error.code)) throw error;
    return refuse({ problem: describeProblem(error, labels), status: error.code === 'INVALID_ARGUMENT' ? 400 : 409 });
  }
}

/** What the person can mend in the form itself; other errors have a page of their own. */
const SHOWN_AGAIN: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'CONFLICT', 'USAGE', 'CONFIG_INVALID']);

type Filled = { view: FormView; filled: Fields; code: string | undefined; passkey: string | undefined };

/** Returns `null` if the action requires no proof, or if the person has just given one that counts for it. */
async function askAgain<Subject, Wanted, Outcome>(
  deps: Pick<ConsoleDeps, 'stepUp' | 'now'>,
  { action }: Form<Subject, Wanted, Outcome>,
  { visit, request }: Asked,
  { view, filled, code, passkey }: Filled,
) {
  const rule: Rule = ACTIONS[action];
  const stepUp = rule.stepUp === undefined ? null : await deps.stepUp(request);
  if (stepUp === null || (rule.stepUp === 'recent' && stepUp.isRecent)) return null;
  // A person signs what the page shows: the form, its subject and its project as the server resolved them, and every field.
  const subject = [visit.path, view.title, view.about?.projectId ?? null];
  const signed = { name: action, input: JSON.stringify([...subject, Object.entries(filled).sort()]) };
  const proof = readProof(code, passkey);
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
  if (passkey === undefined) return null;
  try {
    return { passkey: JSON.parse(passkey) as unknown };
  } catch {
    return { passkey: null };
  }
}

/** The part of a form that is an operation of the admin API. `given`: its input. */
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
