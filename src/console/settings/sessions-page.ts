import type { SessionView } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import type { Visit } from '../page/visit.ts';
import { sessionTable } from './session-table.ts';

/** Who is signed in, since when and from where? */
export function sessionsPage(
  visit: Visit,
  sessions: readonly SessionView[],
  { own, said }: { own: string | null; said: Html | null },
): Page {
  const end = (sessionId: string) => `/settings/sessions/${sessionId}/end`;
  return {
    title: 'Sessions',
    beside: html`<a href="/settings/people">People</a>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
${
  sessions.length === 0
    ? html`<section class="card empty"><h2>Nobody is signed in</h2><p>You came by the link of the sandbox, which makes no session.</p></section>`
    : html`<section class="card flush" aria-label="Sessions">${sessionTable(visit, sessions, { own, end, of: 'people' })}</section>`
}
<p class="hint">A session ends 12 hours after its last use, and 7 days after its start. One that is ended here is refused with its next click. If you do not know one, end it, and make a new link for that person: the session is gone, but not what it was opened with.</p>`,
  };
}
