import { AppError } from '../../domain/errors.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { perform } from '../../operator/operation.ts';
import { listAdapters } from '../../operator/subjects/adapters.ts';
import { listDeliveries, showDelivery } from '../../operator/subjects/deliveries.ts';
import { replayEvents, replayPeriod } from '../../operator/subjects/delivery-replay.ts';
import { enableEndpoint, testEndpoint } from '../../operator/subjects/webhook-sending.ts';
import { listEndpoints } from '../../operator/subjects/webhooks.ts';
import { html } from '../../web/html.ts';
import { addClick } from '../forms/add-click.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { number } from '../page/pieces.ts';
import { type Fields, readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject } from '../page/visit.ts';
import { eventPage, testedPage } from './event-page.ts';
import { asUnknown, findEndpoint } from './find-endpoint.ts';
import { REPLAY_FIELDS, replayPage } from './replay-page.ts';
import { addWebhookForms } from './webhook-forms.ts';
import { DELIVERY_STATES, endpointPage, webhooksPage } from './webhooks-page.ts';

/** Rows of a page. */
const PAGE_SIZE = '25';

/** Endpoints, what became of each event, and what can be done about it. */
export function addWebhookRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get, post } = routes;
  get('/webhooks', 'listEndpoints', async ({ visit, request }) => {
    const project = needProject(visit, readQuery(request, ['project']).project);
    const endpoints = await listEndpoints.run(deps, visit.actor, project);
    const adapters = await listAdapters.run(deps, visit.actor, project);
    const enabled = adapters.data.filter(({ disabledAt }) => disabledAt === null);
    return webhooksPage(visit, project, endpoints.data, enabled);
  });
  addWebhookForms(routes, deps);
  get('/webhooks/:endpointId', 'showEndpoint', (asked) => show(deps, asked));
  addClick(routes, '/webhooks/:endpointId/test', 'testEndpoint', async (asked) => {
    const { endpointId, project } = await findEndpoint(deps, asked);
    const { view, url } = await testEndpoint.run(deps, asked.visit.actor, { endpointId });
    return testedPage(project, url, view);
  });
  addClick(routes, '/webhooks/:endpointId/enable', 'enableEndpoint', async (asked) => {
    const { endpointId } = await findEndpoint(deps, asked);
    const { hastened, missed, isMissedMore } = await enableEndpoint.run(deps, asked.visit.actor, { endpointId });
    const query = new URLSearchParams({ enabled: String(hastened), missed: `${missed}${isMissedMore ? '+' : ''}` });
    return `/webhooks/${endpointId}?${query}`;
  });
  get('/webhooks/:endpointId/replay', 'replayPeriod', (asked) => askReplay(deps, asked));
  post('/webhooks/:endpointId/replay', 'replayPeriod', (asked) => replay(deps, asked));
  get('/events/:eventId', 'showDelivery', async (asked) => {
    const { sent } = readQuery(asked.request, ['sent']);
    const said = sent === undefined ? null : html`The event is sent again.`;
    return eventPage(asked.visit, ...(await findEvent(deps, asked, said)));
  });
  addClick(routes, '/events/:eventId/replay', 'replayEvents', async (asked) => {
    const [, { event }] = await findEvent(deps, asked, null);
    const wanted = replayEvents.read({ events: [event.eventId], isConfirmed: true }, deps.now());
    await perform(replayEvents, deps, asked.visit.actor, wanted);
    return `/events/${event.eventId}?sent=1`;
  });
}

async function findEvent(deps: ConsoleDeps, { visit, request }: Asked, said: ReturnType<typeof html> | null) {
  const { eventId = '' } = request.params as { eventId?: string };
  const { view } = await showDelivery.run(deps, visit.actor, { eventId }).catch(asUnknown);
  return [needProject(visit, view.projectId), { event: view, said }] as const;
}

async function show(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { visit, request } = asked;
  const query = readQuery(request, ['project', 'status', 'before', 'enabled', 'missed', 'replayed']);
  const { project, ...endpoint } = await findEndpoint(deps, asked);
  const state = readChoice('status', query.status, DELIVERY_STATES) ?? 'all';
  const status = state === 'all' ? undefined : state;
  const { endpointId } = endpoint;
  const wanted = listDeliveries.read(
    { endpoint: endpointId, status, before: query.before, limit: PAGE_SIZE },
    deps.now(),
  );
  const { view } = await perform(listDeliveries, deps, visit.actor, wanted);
  const isFirst = query.before === undefined;
  return endpointPage(visit, project, { endpoint, list: view, state, said: saidOf(query), isFirst, now: deps.now() });
}

function saidOf({ enabled, missed, replayed }: Fields) {
  if (replayed !== undefined) return html`${counted(replayed)} sent again, as fast as the receiver takes them.`;
  if (enabled === undefined) return null;
  return html`It is enabled${enabled === '0' ? null : html`, and ${counted(enabled)} that waited go out now`}.${missed === undefined || missed === '0' ? null : html` ${missed} happened while it was disabled: “Send events again” sends those.`}`;
}

/** A number that stands in the address, where anybody may have written something else. */
const counted = (text: string) => (/^\d{1,9}$/.test(text) ? number(Number(text)) : 'some');

async function askReplay(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { visit, request } = asked;
  const { project: _, ...filled } = readQuery(request, ['project', ...REPLAY_FIELDS]);
  const { project, url, endpointId, failingSince, disabledAt } = await findEndpoint(deps, asked);
  if (filled.from === undefined) {
    const since = disabledAt ?? failingSince ?? new Date(deps.now() - DAY_MS).toISOString();
    return replayPage(visit, project, { url, filled: { from: since }, found: null, problem: null });
  }
  try {
    const { view } = await perform(
      replayPeriod,
      deps,
      visit.actor,
      readReplay(deps, endpointId, filled, { isDryRun: true }),
    );
    return replayPage(visit, project, { url, filled, found: view, problem: null });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return replayPage(visit, project, {
      url,
      filled,
      found: null,
      problem: describeProblem(error, { status: 'Which' }),
    });
  }
}

const DAY_MS = 86_400_000;

function readReplay({ now }: ConsoleDeps, endpoint: string, filled: Fields, how: { isDryRun: boolean }) {
  const { from = '', to, status } = filled;
  return replayPeriod.read(
    { endpoint, from, to, status: status === undefined ? status : [status], ...how, isConfirmed: true },
    now(),
  );
}

async function replay(deps: ConsoleDeps, asked: Asked): Promise<Answer> {
  const { visit, request, tokens } = asked;
  const { token, ...filled } = readForm(request, ['token', ...REPLAY_FIELDS]);
  const { project, url, endpointId } = await findEndpoint(deps, asked);
  const taken = tokens.take(visit.path, token);
  if (taken.kind === 'refused')
    return {
      ...replayPage(visit, project, { url, filled, found: null, problem: html`<p>${taken.reason}.</p>` }),
      status: 409,
    };
  const { view } = await perform(
    replayPeriod,
    deps,
    visit.actor,
    readReplay(deps, endpointId, filled, { isDryRun: false }),
  );
  return { goTo: `/webhooks/${endpointId}?replayed=${view.found.total}` };
}
