import type { ReplayedPeriodView } from '../../operator/subjects/delivery-replay.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, field, number, select, time } from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import type { Visit } from '../page/visit.ts';

export const REPLAY_FIELDS = ['from', 'to', 'status'] as const;
type Filled = Fields<(typeof REPLAY_FIELDS)[number]>;

/** What may be sent again, in the words of who has to choose. */
const CHOICES = [
  ['', 'what was given up or never sent'],
  ['dead', 'what was given up, however long ago'],
  ['missing', 'what was never sent, however long ago'],
  ['failing', 'what waits after a failure'],
  ['all', 'everything, what was delivered too'],
] as const;

type Shown = { url: string; filled: Filled; found: ReplayedPeriodView | null; problem: Html | null };

/** Which events are sent again: the number comes first. */
export function replayPage(visit: Visit, project: ListedProjectView, { url, filled, found, problem }: Shown): Page {
  return {
    title: 'Send events again',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`<section class="card form">${problem === null ? null : alert(problem)}<p>To <bdi>${url}</bdi>. A receiver takes an event that it knows once.</p>
<form method="get" action="${visit.path}">
${field('from', 'From', filled.from, html` dir="ltr" required`, 'A day (2026-09-01), or a moment with its zone (2026-09-01T12:00:00Z).')}
${field('to', 'To (optional)', filled.to, html` dir="ltr"`, 'Left out: until now.')}
${select('status', 'Which', CHOICES, filled.status)}
<div class="actions"><button${found === null ? null : html` class="quiet"`}>How many are these?</button></div></form></section>
${found === null ? null : renderFound(visit, filled, found)}`,
  };
}

function renderFound(visit: Visit, filled: Filled, { found, from, until }: ReplayedPeriodView): Html {
  if (found.total === 0)
    return html`<section class="card empty"><h2>Nothing to send again</h2><p>No such event between ${time(from)} and ${time(until)} UTC.</p></section>`;
  const parts = [
    [found.missing, 'never planned for it'],
    [found.dead, 'given up'],
    [found.pending, 'waiting'],
    [found.delivered, 'delivered before'],
  ] as const;
  const said = parts.flatMap(([count, what]) => (count === 0 ? [] : [`${number(count)} ${what}`]));
  const kept = REPLAY_FIELDS.flatMap((name) =>
    filled[name] === undefined ? [] : [html`<input type="hidden" name="${name}" value="${filled[name]}">`],
  );
  return html`<section class="card" aria-labelledby="found"><h2 id="found">${number(found.total)} ${found.total === 1 ? 'event' : 'events'}</h2><p>${said.join(', ')}; between ${time(from)} and ${time(until)} UTC. They go out in their order.</p>
<form method="post" action="${visit.path}"><input type="hidden" name="token" value="${visit.token(visit.path)}">${kept}<div class="actions"><button>Send ${number(found.total)} again</button></div></form></section>`;
}
