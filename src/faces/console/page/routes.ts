import { createHmac, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { usageError } from '../../../core/domain/errors.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { parseUrl } from '../../../core/domain/url.ts';
import { givingWay } from '../../../core/runtime/concurrency.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import type { Static, TSchema } from '../../../core/runtime/type.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { DoctorView } from '../../operator/doctor/run-doctor.ts';
import type { AskDeps } from '../../operator/explain/explain-transaction.ts';
import { type ExportedRows, writeRows } from '../../operator/export/write-rows.ts';
import { type Given, type LocalOperation, type OperationDeps, perform } from '../../operator/operation.ts';
import { listProjects, type ProjectView } from '../../operator/subjects/projects.ts';
import type { Session } from '../../operator/subjects/sessions.ts';
import {
  requestSignIn,
  type SignedAction,
  type SignInDeps,
  type StepUpProof,
  type StepUpRequest,
} from '../../operator/subjects/sign-in.ts';
import type { RunningProcess, SettingView } from '../../operator/system/show-system.ts';
import { type Html, html } from '../../web/html.ts';
import { createAnswerError, HEADERS, type Page, sendPage } from './layout.ts';
import { hidden as hiddenField } from './pieces.ts';
import { type Fields, Forbidden, readPostedForm, readQuery, type Visit } from './visit.ts';

/** Asks the person who sent a request to prove their identity again before the action that the page shows. */
export type StepUp = {
  /** Whether the person has given a proof in the last five minutes. */
  isRecent: boolean;
  ask(action: SignedAction): Promise<StepUpRequest>;
  /** Whether the proof is from this person and for this action, and hasn't been used before. */
  take(action: SignedAction, proof: StepUpProof): Promise<boolean>;
};

/** A merchant as payers see it. `logoUrl` is a `data:` URL. */
type Example = Pick<ProjectView, 'network' | 'policy' | 'lifetimeMs'> & {
  brand: Pick<ProjectView, 'name' | 'supportContact' | 'returnUrl' | 'accent'>;
  logoUrl: string | null;
  now: UnixMs;
};

/** `publicUrl` is the payment pages' origin. */
export type ConsoleDeps = { publicUrl(): string } & OperationDeps & {
    /** The console's own origin, such as `https://console.example.com`. Forms are accepted only from this origin. */
    consoleUrl(): string;
    /** Returns the person behind a request; `null` if not signed in. */
    findActor(request: FastifyRequest): Promise<Actor | null>;
    /** Returns the session of a request; `null` if not signed in, or for a sandbox's owner, who has no session. */
    findSession(request: FastifyRequest): Promise<Session | null>;
    /** Creates the links and passkeys of people. */
    people(): SignInDeps;
    /** Returns `null` for a sandbox's owner, who has no way to prove their identity. */
    stepUp(request: FastifyRequest): Promise<StepUp | null>;
    /** Calls the listener when any process has changed an invoice's status, and when such a change may have been missed. */
    onChange(listener: () => void): void;
    /**
     * Returns the value that identifies a request's session, such as its cookie. A form is accepted only from the session that it was
     * created for.
     */
    sessionOf(request: FastifyRequest): string;
    /** Signs forms; all of a console's processes share it. If absent, it's random for each process. */
    formKey?: Uint8Array;
    /** Renders a payment page that can't be paid, or the reason why there is none, as a document whose style carries the nonce. */
    renderExample(request: FastifyRequest, shown: Example | { problem: Html }): { html: string; nonce: string };
    process: RunningProcess;
    /** This process's environment variables. */
    settings: readonly SettingView[];
    /** Checks everything around this process. */
    examine(actor: Actor): Promise<DoctorView>;
    /** Queries the chain about transactions that the ledger doesn't know. If absent, the chain isn't queried. */
    ask?: AskDeps;
  };

/** A form stays valid as long as a session may be idle. */
const MAX_AGE_MS = 12 * 3_600_000;
/**
 * How many submitted forms to remember. If a form was forgotten, its action still refuses a second submission, because each decision names
 * the state that it's based on.
 */
const MAX_SENT = 10_000;

/** Replaces the token in a form that is reopened after signing in. */
const RESUMED = 'resumed';

type Taken = { kind: 'ok'; id: string } | { kind: 'refused'; reason: string };

/** The tokens of forms. Each token is for one session and one form, and is accepted once. Two tabs have different tokens. */
function createFormTokens({ now, random, formKey = random(32) }: Pick<ConsoleDeps, 'now' | 'random' | 'formKey'>) {
  const sent = new Map<string, true>();
  const sign = (session: string, form: string, head: string) =>
    createHmac('sha256', formKey)
      .update(JSON.stringify([session, form, head]))
      .digest();
  return {
    issue: (session: string, form: string): string => {
      const head = `${Buffer.from(random(12)).toString('base64url')}.${now().toString(36)}`;
      return `${head}.${sign(session, form, head).toString('base64url')}`;
    },
    take: (session: string, form: string, token = ''): Taken => {
      if (token === RESUMED)
        return {
          kind: 'refused',
          reason: 'you are signed in again, but the form was not sent: check your input and send the form',
        };
      const [id = '', time = '', mark = ''] = token.split('.');
      const [expected, given] = [sign(session, form, `${id}.${time}`), Buffer.from(mark, 'base64url')];
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        return { kind: 'refused', reason: 'this form belongs to another session: open the page again' };
      }
      if (now() - Number.parseInt(time, 36) > MAX_AGE_MS) {
        return { kind: 'refused', reason: 'this form has expired: open the page again' };
      }
      if (sent.has(id)) return { kind: 'refused', reason: 'this form was already sent and processed' };
      keepNewest(sent, id, true, MAX_SENT);
      return { kind: 'ok', id };
    },
  };
}

type Shown = {
  passkey: Awaited<ReturnType<typeof requestSignIn>>;
  /** Where to continue. */
  next: string;
  /** The input of a form that was submitted to `next` after its session had ended, or `null` if there was no form. */
  kept: Fields | null;
  login: string;
  problem: string | null;
  status: number;
};

/** Shows how to sign in: with a passkey if the browser has one, or with a password and a code. */
export function signInPage({ passkey, next, kept, login, problem, status }: Shown): Page {
  const hidden = html`${hiddenField('next', next)}${kept && hideFields(kept, KEPT)}`;
  return {
    title: 'Sign in',
    status,
    problem: problem === null ? null : html`<p>${problem}</p>`,
    main: html`${kept === null ? null : html`<p class="notice">Your session has ended, and nothing was sent. Your input is kept on this page: sign in to get it back.</p>`}
${passkey === null ? null : renderPasskey(passkey, hidden)}
<form method="post" action="/sign-in" class="card fields">
<h2>With a password</h2>
${hidden}
<div><label for="login">Login</label><input id="login" name="login" value="${login}" autocomplete="username webauthn" autocapitalize="off" spellcheck="false" maxlength="100" required></div>
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" maxlength="1000" required></div>
<div><label for="code">Code from your app, or a recovery code</label><input id="code" name="code" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" maxlength="40" required></div>
<p><button>Sign in</button></p>
</form>
<p class="hint">No account yet? Ask the administrator for an invitation link: <code>quittance user invite</code>. Lost your passkey or password? <code>quittance user reset</code>.</p>`,
  };
}

/** The script makes it visible if the browser supports passkeys. */
function renderPasskey(options: object, hidden: Html): Html {
  return html`<form method="post" action="/sign-in" class="card fields" data-passkey="get" data-options="${JSON.stringify(options)}" hidden>
${hidden}<input type="hidden" name="passkey">
<p><button>Sign in with a passkey</button></p>
</form>`;
}

/** The prefix for kept fields in the sign-in form. */
export const KEPT = 'kept.';

const hideFields = (fields: Fields, prefix = '') =>
  Object.entries(fields).map(([name, value]) => hiddenField(prefix + name, value ?? ''));

/** Leads back to a form whose session had ended. This shows the form with its input, but doesn't submit it. */
export function resumePage(path: string, kept: Fields): Page {
  return {
    title: 'You are signed in again',
    main: html`<form method="post" action="${path}" class="card">${hideFields({ ...kept, token: RESUMED })}
<p>The form still contains your input. Nothing has been sent yet.</p><p><button autofocus>Back to the form</button></p></form>`,
  };
}

/**
 * Refuses a write that wasn't sent from a console page. Browsers report a request's origin in `Sec-Fetch-Site`, older ones only in
 * `Origin`. A client that sends neither isn't a browser, and the console is for browsers.
 */
export function checkOrigin({ headers }: FastifyRequest, consoleUrl: string): void {
  const { 'sec-fetch-site': site, origin } = headers;
  const isSame = site === undefined ? origin === new URL(consoleUrl).origin : site === 'same-origin';
  if (isSame && (origin === undefined || origin === new URL(consoleUrl).origin)) return;
  throw usageError`this form came from a page outside the console, so nothing was changed: open the page and send the form again`;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The action that a console route is for. */
    action?: ActionName;
  }
}

/** A page, a redirect, or a reply that the handler has already sent. */
export type Answer = Page | { goTo: string } | { sent: FastifyReply };
export type Asked = { visit: Visit; request: FastifyRequest; reply: FastifyReply; tokens: SessionTokens };
type SessionTokens = { take(form: string, token: string | undefined): Taken };
type Work = (asked: Asked) => Promise<Answer>;

/**
 * `get` declares the fields that a page's query may have, and passes them on as `query`. `post` doesn't accept actions that require a new
 * proof of identity. Such actions have a form, which asks for the proof.
 */
export type Routes = {
  get<const Name extends string>(
    path: string,
    action: ActionName,
    names: readonly Name[],
    work: (asked: Asked & { query: Fields<Name> }) => Promise<Answer>,
  ): void;
  post(path: string, action: ActionName, work: Work): void;
  form(path: string, action: ActionName, work: Work): void;
  /** Answers requests for any other path on the console. A signed-in person keeps the search box and the menu. */
  notFound(page: (url: string) => Page): void;
};

/** Each of a note's 2,000 characters takes at most twelve bytes in a form. */
const MAX_FORM_BYTES = 64 * 1024;

/** Creates routes for signed-in people whose role allows the route's action. Every error is answered with a page. */
export function createRoutes(app: FastifyInstance, deps: ConsoleDeps): Routes {
  const tokens = createFormTokens(deps);
  // The error page has the search box and the menu if the visitor is signed in.
  const visits = new WeakMap<FastifyRequest, Visit>();
  const errorHandler = createAnswerError(deps, (request) => visits.get(request) ?? null);
  const visitBy = async (actor: Actor, request: FastifyRequest): Promise<Visit> => {
    const session = deps.sessionOf(request);
    const visit: Visit = {
      actor,
      projects: (await listProjects.run(deps, actor, { isArchived: null })).data,
      path: request.url.split('?', 1)[0] ?? '/',
      token: (form) => tokens.issue(session, form),
    };
    visits.set(request, visit);
    return visit;
  };
  const add = (method: 'GET' | 'POST', path: string, action: ActionName, work: Work) => {
    app.route({
      ...{ method, url: path, schema: { hide: true }, bodyLimit: MAX_FORM_BYTES, config: { action } },
      errorHandler,
      handler: async (request, reply) => {
        if (method === 'POST') checkOrigin(request, deps.consoleUrl());
        const actor = await deps.findActor(request);
        if (actor === null) return askToSignIn(deps, request, reply);
        if (!isAllowed(actor, action)) throw new Forbidden(action);
        const session = deps.sessionOf(request);
        const visit = await visitBy(actor, request);
        const own = { take: (form: string, token: string | undefined) => tokens.take(session, form, token) };
        const answer = await work({ visit, request, reply, tokens: own });
        if ('sent' in answer) return answer.sent;
        if ('goTo' in answer) return reply.headers(HEADERS).redirect(answer.goTo, 303);
        return sendPage(request, reply, visit, answer);
      },
    });
  };
  return {
    get: (path, action, names, work) =>
      add('GET', path, action, (asked) => work({ ...asked, query: readQuery(asked.request, names) })),
    post: (path, action, work) => {
      if ('stepUp' in ACTIONS[action]) throw new Error(`${action} requires a form that asks for a second factor`);
      add('POST', path, action, work);
    },
    form: (path, action, work) => add('POST', path, action, work),
    notFound: (page) => {
      app.get('/*', { schema: { hide: true }, errorHandler }, async (request, reply) => {
        if (request.url.startsWith('/admin/')) return reply.callNotFound();
        const actor = await deps.findActor(request);
        return sendPage(request, reply, actor && (await visitBy(actor, request)), page(request.url));
      });
    },
  };
}

/**
 * After signing in, people continue where they were. A form keeps its input, but never submits itself. Proofs of identity aren't kept,
 * because each is for one session.
 */
async function askToSignIn(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { method, url } = request;
  const { token: _, code: _code, passkey: _passkey, ...kept } = method === 'GET' ? {} : readPostedForm(request, null);
  if (Object.keys(kept).some((name) => name !== 'project')) {
    const passkey = await requestSignIn(deps.people());
    return sendPage(
      request,
      reply,
      null,
      signInPage({ passkey, next: url, kept, login: '', problem: null, status: 401 }),
    );
  }
  const next = method === 'GET' ? url : pageBefore(request, deps.consoleUrl());
  return reply.headers(HEADERS).redirect(next === '/' ? '/sign-in' : `/sign-in?${new URLSearchParams({ next })}`, 303);
}

/** Returns the console page whose button was pressed. */
function pageBefore({ headers }: FastifyRequest, consoleUrl: string): string {
  const page = parseUrl(headers.referer ?? '');
  return page !== null && page.origin === new URL(consoleUrl).origin ? page.pathname + page.search : '/';
}

/** Runs an admin API operation for the visitor. */
export async function performFor<Input extends TSchema, Wanted, Outcome>(
  deps: OperationDeps,
  { actor }: Visit,
  operation: LocalOperation<Input, Wanted, Outcome>,
  given: Given<Static<Input>>,
): Promise<Outcome> {
  return perform(operation, deps, actor, operation.read(given, deps.now()));
}

const FILE_TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json; charset=utf-8' } as const;

/** Answers with a file that isn't cached. Its name ends in its type. */
export function sendFile({ reply }: Asked, name: string, content: string | Readable): Answer {
  reply.type(FILE_TYPES[name.endsWith('.csv') ? 'csv' : 'json']).headers({
    'Content-Disposition': `attachment; filename="${name}"`,
    'Cache-Control': 'no-store',
  });
  return { sent: reply.send(content) };
}

export function sendRows<Row>(asked: Asked, name: string, rows: ExportedRows<Row>): Answer {
  return sendFile(asked, name, Readable.from(givingWay(writeRows(name.endsWith('.csv') ? 'csv' : 'json', rows))));
}
