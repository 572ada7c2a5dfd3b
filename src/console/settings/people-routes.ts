import { listPeople } from '../../operator/subjects/people.ts';
import { endSession, listSessions } from '../../operator/subjects/sessions.ts';
import { html } from '../../web/html.ts';
import { addClick } from '../forms/add-click.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { ownSessionOf } from './own-session.ts';
import { addPeopleForms, findPerson } from './people-forms.ts';
import { peoplePage, personPage } from './people-page.ts';
import { sessionsPage } from './sessions-page.ts';

/** Who may come in, and who is in. */
export function addPeopleRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/people', 'listPeople', async ({ visit, request }) => {
    const { removed } = readQuery(request, ['project', 'removed']);
    const said = removed === undefined ? null : html`The person is removed, and signed out.`;
    return peoplePage(visit, (await listPeople.run(deps, visit.actor, {})).data, { now: deps.now(), said });
  });
  addPeopleForms(routes, deps);
  routes.get('/settings/people/:personId', 'listPeople', async (asked) => {
    const { changed } = readQuery(asked.request, ['project', 'changed']);
    const said = changed === undefined ? null : html`The role is changed, and the person is signed out.`;
    const own = await ownSessionOf(deps, asked.request);
    return personPage(asked.visit, { ...(await findPerson(deps, asked)), own, now: deps.now(), said });
  });
  routes.get('/settings/sessions', 'listSessions', async ({ visit, request }) => {
    const { ended } = readQuery(request, ['project', 'ended']);
    const { data } = await listSessions.run(deps, visit.actor, {});
    const said = ended === undefined ? null : html`The session is ended.`;
    return sessionsPage(visit, data, { own: await ownSessionOf(deps, request), said });
  });
  addClick(routes, '/settings/sessions/:sessionId/end', 'endSession', async ({ visit, request }) => {
    const { sessionId = '' } = request.params as { sessionId?: string };
    await endSession.run(deps, visit.actor, { sessionId });
    return '/settings/sessions?ended=1';
  });
}
