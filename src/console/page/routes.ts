import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseUrl } from '../../domain/url.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { listProjects } from '../../operator/subjects/projects.ts';
import { requestSignIn } from '../../operator/subjects/sign-in.ts';
import { checkOrigin } from './check-origin.ts';
import type { ConsoleDeps } from './console-deps.ts';
import { createFormTokens, type FormTokens } from './form-tokens.ts';
import type { Page } from './layout.ts';
import { readForm } from './read-fields.ts';
import { HEADERS, sendPage } from './send-page.ts';
import { createAnswerError } from './show-error.ts';
import { signInPage } from './sign-in-page.ts';
import { Forbidden, type Visit } from './visit.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a route of the console is for. */
    action?: ActionName;
  }
}

/** A page, a way elsewhere, or what the handler has sent by itself. */
export type Answer = Page | { goTo: string } | { sent: FastifyReply };
export type Asked = { visit: Visit; request: FastifyRequest; reply: FastifyReply; tokens: SessionTokens };
type SessionTokens = { take(form: string, token: string | undefined): ReturnType<FormTokens['take']> };
type Work = (asked: Asked) => Promise<Answer>;

/** `post` takes no action for which people prove again who they are: such a one has a form, which asks. */
export type Routes = {
  get(path: string, action: ActionName, work: Work): void;
  post(path: string, action: ActionName, work: Work): void;
  form(path: string, action: ActionName, work: Work): void;
  /** Any other page below the console's root. A person who is signed in keeps the search box and the menu. */
  notFound(page: (url: string) => Page): void;
};

/** A note of 2,000 characters takes twelve bytes each in a form, at most. */
const MAX_FORM_BYTES = 64 * 1024;

/** Routes for people who are signed in and whose role may do what a route is for. Every error is answered with a page. */
export function createRoutes(app: FastifyInstance, deps: ConsoleDeps): Routes {
  const tokens = createFormTokens(deps);
  // An error page keeps the search box and the menu for anyone who is signed in.
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
    get: (path, action, work) => add('GET', path, action, work),
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
 * After the sign-in people continue where they were. A form keeps its entries through it, and is never sent by itself. Proofs
 * are not kept, because each is for one session.
 */
async function askToSignIn(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { method, url } = request;
  const { token: _, code: _code, passkey: _passkey, ...kept } = method === 'GET' ? {} : readForm(request, null);
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

/** The page of the console whose button was pressed. */
function pageBefore({ headers }: FastifyRequest, consoleUrl: string): string {
  const page = parseUrl(headers.referer ?? '');
  return page !== null && page.origin === new URL(consoleUrl).origin ? page.pathname + page.search : '/';
}
