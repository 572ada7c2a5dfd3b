import { endOtherSessions, endOwnSession, listOwnSessions } from '../../operator/subjects/sessions.ts';
import { listOwnPasskeys } from '../../operator/subjects/sign-in.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick } from '../forms/add-click.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { mePage, nobodyPage, OTHERS_PATH } from './me-page.ts';
import { ownSessionOf } from './own-session.ts';
import { addPasskeyForms } from './passkey-forms.ts';

/** What everybody has: an account of one's own. */
export function addMeRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/me', 'listOwnSessions', async ({ visit, request }) => {
    const { done } = readQuery(request, ['project', 'done']);
    const session = await deps.findSession(request);
    if (session === null) return visit.actor.id === null ? nobodyPage() : { goTo: '/sign-in' };
    const { data: passkeys } = await listOwnPasskeys.run(deps, visit.actor, {});
    const { data: sessions } = await listOwnSessions.run(deps, visit.actor, {});
    return mePage(visit, { session, passkeys, sessions, said: SAID.get(done ?? '') ?? null });
  });
  addPasskeyForms(routes, deps);
  addClick(routes, OTHERS_PATH, 'endOtherSessions', async ({ visit, request }) => {
    const keep = (await ownSessionOf(deps, request)) ?? '';
    await endOtherSessions.run(deps, visit.actor, { keep });
    return '/settings/me?done=others-ended';
  });
  addClick(routes, '/settings/me/sessions/:sessionId/end', 'endOwnSession', async ({ visit, request }) => {
    const { sessionId = '' } = request.params as { sessionId?: string };
    await endOwnSession.run(deps, visit.actor, { sessionId });
    return '/settings/me?done=session-ended';
  });
}

const SAID: ReadonlyMap<string, Html> = new Map([
  ['passkey-added', html`The passkey is yours: it signs you in from now on.`],
  ['passkey-removed', html`The passkey is removed.`],
  ['session-ended', html`The session is ended.`],
  ['others-ended', html`You are signed out everywhere else.`],
]);
