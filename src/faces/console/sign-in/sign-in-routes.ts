import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notFound, usageError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { toIso } from '../../../core/domain/time.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import type { Actor } from '../../operator/actor.ts';
import { INVITATION_PATH } from '../../operator/subjects/people.ts';
import { endOwnSession, type From, findSession, personActor, type Session } from '../../operator/subjects/sessions.ts';
import {
  type OpenInvitation,
  openInvitation,
  type Redemption,
  redeemInvitation,
  requestSignIn,
  requestStepUp,
  type SignIn,
  type SignInDeps,
  startSession,
  stepUp,
} from '../../operator/subjects/sign-in.ts';
import { clientOf } from '../../web/client-address.ts';
import { type Html, html } from '../../web/html.ts';
import { renderQr } from '../../web/render-qr.ts';
import { createAnswerError, describeMistake, HEADERS, type Page, sendPage } from '../page/layout.ts';
import { ltr, time } from '../page/pieces.ts';
import { checkOrigin, KEPT, resumePage, type StepUp, signInPage } from '../page/routes.ts';
import { type Fields, parsePasskey, pathPart, readPostedForm, readQuery } from '../page/visit.ts';

/**
 * The name of the session cookie. Over HTTPS, the `__Host-` prefix prevents other hosts in the domain from setting or reading it. Without
 * HTTPS, which is allowed only on this machine, browsers refuse a cookie with that prefix.
 */
const nameAt = (consoleUrl: string) => (isSecure(consoleUrl) ? '__Host-quittance' : 'quittance');
const isSecure = (consoleUrl: string) => consoleUrl.startsWith('https:');

/**
 * Returns the token in a request. Two different tokens count as none, because a browser sends one and an attacker must have added the
 * other.
 */
function readSessionToken({ headers }: Pick<FastifyRequest, 'headers'>, consoleUrl: string): string | null {
  const name = `${nameAt(consoleUrl)}=`;
  const found = (headers.cookie ?? '').split(';').flatMap((part) => {
    const text = part.trim();
    return text.startsWith(name) ? [text.slice(name.length)] : [];
  });
  return new Set(found).size === 1 ? (found[0] ?? null) : null;
}

/** Gives the browser a new session's token; `null` removes it. */
function writeSessionToken(reply: FastifyReply, consoleUrl: string, token: string | null): void {
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(consoleUrl) ? '; Secure' : ''}`;
  const value = token === null ? '; Max-Age=0' : token;
  reply.header('Set-Cookie', `${nameAt(consoleUrl)}=${value}; ${attributes}`.replace('=; Max-Age', '=; Max-Age'));
}

type SignInRouteDeps = {
  /** The console's own origin is known once it listens. */
  people(): SignInDeps;
  consoleUrl(): string;
  log: Logger;
  /** Part of the link that a sandbox prints. Anyone who has it is the owner. */
  sandboxToken?: string;
};

type Deps = Pick<SignInRouteDeps, 'people' | 'consoleUrl' | 'sandboxToken'>;

/** Finds out who sent a request. */
export function createSessions({ people, consoleUrl, sandboxToken }: Deps) {
  const tokenOf = (request: FastifyRequest) => readSessionToken(request, consoleUrl());
  const find = async (request: FastifyRequest): Promise<Session | null> => {
    const token = tokenOf(request);
    return token === null ? null : findSession(people(), token);
  };
  const isSandbox = (token: string | null) =>
    token !== null && sandboxToken !== undefined && isSame(token, sandboxToken);
  return {
    find,
    /** Returns the person behind a request. Anyone with the link that a sandbox prints is its owner. */
    findActor: async (request: FastifyRequest): Promise<Actor | null> => {
      const token = tokenOf(request);
      const from = fromOf(request);
      if (isSandbox(token)) return { ...SANDBOX, ...from };
      const session = await find(request);
      return session && personActor(session.person, from);
    },
    /** Returns how the person can prove their identity again; `null` for a sandbox's owner, who can't. */
    stepUp: async (request: FastifyRequest): Promise<StepUp | null> => {
      if (isSandbox(tokenOf(request))) return null;
      const session = await find(request);
      if (session === null) throw usageError`your session has ended: sign in again`;
      const actor = personActor(session.person, fromOf(request));
      return {
        isRecent: session.steppedUpUntil !== null,
        ask: (action) => requestStepUp(people(), session, action),
        take: async (action, proof) => (await stepUp(people(), actor, { session, action, proof })) !== null,
      };
    },
    /** Identifies the session. Only the browser and this process know the token. */
    sessionOf: (request: FastifyRequest): string => tokenOf(request) ?? '',
  };
}

const SANDBOX = { kind: 'console', name: 'sandbox', role: 'owner', id: null, projects: null } as const;

function fromOf(request: FastifyRequest): From & { requestId: string } {
  const { ip, network } = clientOf(request);
  return { origin: ip, network, userAgent: request.headers['user-agent'] ?? null, requestId: request.id };
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

type Work = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Adds the pages that need no session, because they start and end one. */
export function addSignInRoutes(app: FastifyInstance, deps: SignInRouteDeps): void {
  const { consoleUrl, people, sandboxToken } = deps;
  const sessions = createSessions(deps);
  const errorHandler = createAnswerError({ log: deps.log, now: () => people().now() }, () => null);
  const add = (method: 'GET' | 'POST', url: string, work: Work) =>
    app.route({
      ...{ method, url, schema: { hide: true }, bodyLimit: MAX_BODY_BYTES },
      errorHandler,
      handler: (request, reply) => {
        if (method === 'POST') checkOrigin(request, consoleUrl());
        return work(request, reply);
      },
    });
  const begin = (reply: FastifyReply, token: string) => writeSessionToken(reply, consoleUrl(), token);
  const goTo = (reply: FastifyReply, path: string) => reply.headers(HEADERS).redirect(path, 303);

  add('GET', '/sign-in', async (request, reply) => {
    const { next } = readQuery(request, ['next']);
    const passkey = await requestSignIn(people());
    return sendPage(request, reply, null, signInPage({ passkey, next: ownPath(next), kept: null, ...NOTHING_SAID }));
  });
  add('POST', '/sign-in', async (request, reply) => {
    const form = readPostedForm(request, null);
    const kept = keptIn(form);
    const outcome = await startSession(people(), fromOf(request), readSignIn(form));
    const next = ownPath(form['next']);
    if (outcome.kind === 'started') {
      begin(reply, outcome.token);
      return kept === null ? goTo(reply, next) : sendPage(request, reply, null, resumePage(next, kept));
    }
    const isLimited = outcome.kind === 'limited';
    if (isLimited) reply.header('Retry-After', outcome.retryAfterSeconds);
    const problem = isLimited
      ? `Too many attempts: wait ${outcome.retryAfterSeconds} s, then try again.`
      : 'Sign-in failed. Check the login, the password and the code; each code works only once.';
    const said = { problem, login: form['login'] ?? '', status: isLimited ? 429 : 401 };
    return sendPage(request, reply, null, signInPage({ passkey: await requestSignIn(people()), next, kept, ...said }));
  });
  add('POST', '/sign-out', async (request, reply) => {
    const session = await sessions.find(request);
    if (session !== null) {
      const actor = personActor(session.person, fromOf(request));
      await endOwnSession.run(people(), actor, { sessionId: encodeId('ses', session.id) });
    }
    writeSessionToken(reply, consoleUrl(), null);
    return goTo(reply, '/sign-in');
  });
  addInvitationRoutes(add, deps, begin);
  if (sandboxToken === undefined) return;
  add('GET', '/sandbox/:token', async (request, reply) => {
    const token = pathPart(request, 'token');
    if (!isSame(token, sandboxToken))
      throw notFound`this link does not belong to the running sandbox: use the link that the sandbox printed when it started`;
    begin(reply, sandboxToken);
    return goTo(reply, '/');
  });
}

/** The console's largest form, with a password and a passkey. */
const MAX_BODY_BYTES = 80 * 1024;

/** Returns the input of the form that the person returns to after signing in. */
function keptIn(form: Fields): Fields | null {
  const kept = Object.entries(form).flatMap(([name, value]) =>
    name.startsWith(KEPT) ? [[name.slice(KEPT.length), value] as const] : [],
  );
  return kept.length === 0 ? null : Object.fromEntries(kept);
}

const NOTHING_SAID = { problem: null, login: '', status: 200 };

function addInvitationRoutes(
  add: (method: 'GET' | 'POST', url: string, work: Work) => void,
  { people }: SignInRouteDeps,
  begin: (reply: FastifyReply, token: string) => void,
): void {
  const show = async (request: FastifyRequest, reply: FastifyReply, problem: Html | null) => {
    const token = pathPart(request, 'token');
    const invitation = await openInvitation(people(), token);
    if (invitation === null)
      throw notFound`this invitation is no longer valid: it was used, is older than 15 minutes, or was replaced by a newer invitation. Ask for a new link`;
    const page = invitationPage(invitation, `${INVITATION_PATH}${token}`);
    return sendPage(request, reply, null, { ...page, problem });
  };
  add('GET', `${INVITATION_PATH}:token`, (request, reply) => show(request, reply, null));
  add('POST', `${INVITATION_PATH}:token`, async (request, reply) => {
    const token = pathPart(request, 'token');
    const form = readPostedForm(request, ['password', 'code', 'passkey', 'name', 'login']);
    try {
      const redeemed = await redeemInvitation(people(), fromOf(request), token, readRedemption(form));
      begin(reply, redeemed.token);
      const { recoveryCodes } = redeemed;
      if (recoveryCodes.length === 0) return reply.headers(HEADERS).redirect('/', 303);
      return sendPage(request, reply, null, recoveryCodesPage(recoveryCodes));
    } catch (error) {
      return show(request, reply, describeMistake(error));
    }
  });
}

function readSignIn({ passkey, login = '', password = '', code = '' }: Fields): SignIn {
  return passkey === undefined ? { login, password, code: code.trim() } : { passkey: parsePasskey(passkey) };
}

function readRedemption({ passkey, name = '', password = '', code = '' }: Fields): Redemption {
  return passkey === undefined ? { password, code: code.trim() } : { passkey: parsePasskey(passkey), name };
}

/** Allows only console paths, so that no link to the sign-in page leads to another site, in the characters that a header may have. */
function ownPath(next: string | undefined): string {
  return next !== undefined && /^\/(?![/\\])[!-[\]-~]*$/.test(next) ? next : '/';
}

/** The page where an invited person chooses how to sign in. Opening it doesn't use up the invitation. */
function invitationPage({ person, kind, expiresAt, passkey, totp }: OpenInvitation, path: string): Page {
  const what =
    kind === 'invite'
      ? html`You are invited as <strong>${person.role}</strong>.`
      : html`Set up your sign-in again. Your previous sign-in methods no longer work.`;
  return {
    title: kind === 'invite' ? `Welcome, ${person.name}` : `Hello, ${person.name}`,
    main: html`
<p>${what} Your login is ${ltr(person.login)}. This link works only once, and expires at ${time(toIso(expiresAt))} UTC.</p>
${passkey === null ? null : renderPasskey(passkey, path)}
<form method="post" action="${path}" class="card fields">
<h2>A password and an authenticator app</h2>
<div class="scan">${renderQr(totp.uri, 'QR code for your authenticator app')}<p class="hint">Scan this with your app, or enter the key: <code>${ltr(totp.secret.replace(/(.{4})(?=.)/g, '$1 '))}</code></p></div>
<input type="hidden" name="login" value="${person.login}" autocomplete="username">
<div><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="new-password" minlength="12" maxlength="1000" aria-describedby="password-hint" required><p class="hint" id="password-hint">At least 12 characters; several random words work well.</p></div>
<div><label for="code">Code shown by the app</label><input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="6" required></div>
<p><button>Set up</button></p>
</form>`,
  };
}

function renderPasskey(options: object, path: string): Html {
  return html`<form method="post" action="${path}" class="card fields" data-passkey="create" data-options="${JSON.stringify(options)}" hidden>
<h2>A passkey</h2>
<p class="hint">Use your fingerprint, face or PIN on this device, or a security key. There is nothing to remember, and a fake page cannot steal a passkey.</p>
<input type="hidden" name="passkey">
<div><label for="name">Passkey name</label><input id="name" name="name" value="This device" maxlength="100" autocomplete="off" required></div>
<p><button>Create passkey</button></p>
</form>`;
}

/** Shows the recovery codes, which can't be shown again. */
function recoveryCodesPage(codes: readonly string[]): Page {
  return {
    title: 'Save these recovery codes',
    main: html`<section class="card"><p>Each code signs you in once, together with your password, if you lose the app. Quittance will not show the codes again: print them, or store them with your passwords.</p>
<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<p><a class="button" href="/">I have saved the codes</a></p></section>`,
  };
}
