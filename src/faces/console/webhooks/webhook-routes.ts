import { AppError } from '../../../core/domain/errors.ts';
import { EVENT_TYPES } from '../../../core/domain/event.ts';
import { DAY_MS } from '../../../core/domain/time.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { readChoice } from '../../operator/input/readers.ts';
import { type AdapterView, listAdapters } from '../../operator/subjects/adapters.ts';
import {
  type AttemptView,
  type DeliveryView,
  listDeliveries,
  type ShownDeliveryView,
  showDelivery,
} from '../../operator/subjects/deliveries.ts';
import { type ReplayedPeriodView, replayEvents, replayPeriod } from '../../operator/subjects/delivery-replay.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import {
  disableEndpoint,
  enableEndpoint,
  rotateSecret,
  type TestedEndpointView,
  testEndpoint,
} from '../../operator/subjects/webhook-sending.ts';
import {
  addEndpoint,
  type ListedEndpointView,
  listEndpoints,
  type ShownEndpointView,
  showEndpoint,
  updateEndpoint,
} from '../../operator/subjects/webhooks.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick, addForm, byOperation, check, choice, type FormField, line, oneClick } from '../forms/form.ts';
import { describeMistake, type Page } from '../page/layout.ts';
import {
  alert,
  type Badge,
  badge,
  type Column,
  copyButton,
  duration,
  facts,
  field,
  hidden,
  live,
  liveNone,
  liveRows,
  ltr,
  many,
  number,
  outside,
  pager,
  rowLink,
  select,
  table,
  tabs,
  tile,
  time,
} from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { type Fields, needProject, pathPart, readPostedForm, urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';

const PAGE_SIZE = '25';

/** Adds the pages for the endpoints, their events' results, and the actions on both. */
export function addWebhookRoutes(routes: Routes, deps: ConsoleDeps): void {
  const { get, post } = routes;
  // Answers the question: do my webhooks arrive?
  get('/webhooks', 'listEndpoints', ['project'], async ({ visit, query }) => {
    const project = needProject(visit, query.project);
    const { data } = await performFor(deps, visit, listEndpoints, project);
    const listed = await performFor(deps, visit, listAdapters, project);
    const adapters = listed.data.filter(({ disabledAt }) => disabledAt === null);
    const add = isAllowed(visit.actor, 'addEndpoint')
      ? html`<a class="button" href="${urlTo(visit, '/webhooks/add', project)}">Add an endpoint</a>`
      : null;
    return {
      title: 'Webhooks',
      about: project,
      beside: data.length === 0 ? null : add,
      main:
        data.length === 0
          ? liveNone(
              html`<section class="card empty"><h2>No endpoints yet</h2><p>An endpoint is a URL in your shop that receives a signed request for each payment. Without an endpoint, your shop has to poll the API or read the event feed.</p>${add === null ? null : html`<p>${add}</p>`}</section>`,
            )
          : html`${liveRows('Endpoints', table('Endpoints, oldest first', ENDPOINTS, data))}${adapters.length === 0 ? null : live('rates', html`<section class="card flush" aria-label="Rates">${table('Adapter rates', RATES, adapters)}</section>`)}`,
    };
  });
  addWebhookForms(routes, deps);
  const shown = ['project', 'status', 'before', 'enabled', 'missed', 'replayed'] as const;
  get('/webhooks/:endpointId', 'showEndpoint', shown, async (asked) => {
    const { visit, query } = asked;
    const { project, ...endpoint } = await findEndpoint(deps, asked);
    const state = readChoice('status', query.status, DELIVERY_STATES) ?? 'all';
    const status = state === 'all' ? undefined : state;
    const given = { endpoint: endpoint.endpointId, status, before: query.before, limit: PAGE_SIZE };
    const { view: list } = await performFor(deps, visit, listDeliveries, given);
    const urlOf = (of: DeliveryState, before?: string) =>
      urlTo(visit, `/webhooks/${endpoint.endpointId}`, project, { status: of === 'all' ? undefined : of, before });
    const older = list.nextBefore && urlOf(state, list.nextBefore);
    return {
      title: new URL(endpoint.url).host,
      about: project,
      said: saidOf(query),
      beside: live('state', stateBadge(endpoint)),
      main: html`
${live('trouble', html`${renderTrouble(endpoint)}`, { isSpoken: true })}
${live('day', renderDay(endpoint, deps.now()))}
${renderActs(visit, endpoint)}
<section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts([
        ['URL', ltr(endpoint.url)],
        ['Description', endpoint.description === '' ? null : outside(endpoint.description, 200)],
        ['Event types', endpoint.eventTypes?.join(', ') ?? 'everything'],
        ['Last attempt', attemptOf(endpoint.lastAttempt)],
        ...endpoint.secrets.map(
          ({ createdAt, endsAt, fingerprint }) =>
            [
              endsAt === null ? 'Secret' : 'Previous secret',
              html`${fingerprint === null ? 'cannot be decrypted with the configured master keys' : html`fingerprint <code>${fingerprint}</code>`} <span class="hint">created ${time(createdAt)}${endsAt === null ? null : html`, in use until ${time(endsAt)} UTC`}</span>`,
            ] as const,
        ),
      ])}<p class="hint">To get the fingerprint of your receiver’s secret: <code>printf %s "$SECRET" | sha256sum | cut -c1-12</code></p></section>
${tabs('Which deliveries', TABS, state, urlOf)}
${liveRows('Deliveries', list.data.length === 0 ? html`<p class="empty">${state === 'all' ? 'No events yet.' : 'None.'}</p>` : table('Events for this endpoint, newest first', DELIVERIES, list.data))}
${pager({ older, text: 'Older events', newest: query.before === undefined ? null : urlOf(state) })}`,
    };
  });
  addClick(routes, '/webhooks/:endpointId/test', 'testEndpoint', async (asked) => {
    const { endpointId, project } = await findEndpoint(deps, asked);
    const { view, url } = await performFor(deps, asked.visit, testEndpoint, { endpointId });
    return testedPage(project, url, view);
  });
  addClick(routes, '/webhooks/:endpointId/enable', 'enableEndpoint', async (asked) => {
    const { endpointId } = await findEndpoint(deps, asked);
    const { hastened, dead, missed, isMissedMore } = await performFor(deps, asked.visit, enableEndpoint, {
      endpointId,
    });
    const query = new URLSearchParams({
      enabled: String(hastened),
      missed: `${dead + missed}${isMissedMore ? '+' : ''}`,
    });
    return `/webhooks/${endpointId}?${query}`;
  });
  get('/webhooks/:endpointId/replay', 'replayPeriod', ['project', ...REPLAY_FIELDS], async (asked) => {
    const { project: _, ...filled } = asked.query;
    const { project, url, failingSince, disabledAt, ...endpoint } = await findEndpoint(deps, asked);
    const shown = { url, filled, found: null, problem: null };
    if (filled.from === undefined) {
      const since = disabledAt ?? failingSince ?? new Date(deps.now() - DAY_MS).toISOString();
      return replayPage(asked.visit, project, { ...shown, filled: { from: since } });
    }
    try {
      const { view } = await performFor(deps, asked.visit, replayPeriod, givenOf(endpoint, filled, true));
      return replayPage(asked.visit, project, { ...shown, found: view });
    } catch (error) {
      return replayPage(asked.visit, project, { ...shown, problem: describeMistake(error, { status: 'Which' }) });
    }
  });
  post('/webhooks/:endpointId/replay', 'replayPeriod', async (asked) => {
    const { visit, request, tokens } = asked;
    const { token, ...filled } = readPostedForm(request, ['token', ...REPLAY_FIELDS]);
    const { project, ...endpoint } = await findEndpoint(deps, asked);
    const taken = tokens.take(visit.path, token);
    if (taken.kind === 'refused') {
      const shown = { url: endpoint.url, filled, found: null, problem: html`<p>${taken.reason}.</p>` };
      return { ...replayPage(visit, project, shown), status: 409 };
    }
    const { view } = await performFor(deps, visit, replayPeriod, givenOf(endpoint, filled, false));
    return { goTo: `/webhooks/${endpoint.endpointId}?replayed=${view.found.total}` };
  });
  get('/events/:eventId', 'showDelivery', ['sent'], async (asked) => {
    const { visit, query } = asked;
    const { project, event } = await findEvent(deps, asked);
    const { eventId, type, createdAt, deliveries } = event;
    const [first] = deliveries;
    const mayReplay = isAllowed(visit.actor, 'replayEvents');
    return {
      title: type,
      about: project,
      said: query.sent === undefined ? null : 'Quittance is sending the event again.',
      beside: mayReplay ? oneClick(visit, `/events/${eventId}/replay`, 'Send again') : null,
      main: html`
<section class="card" aria-labelledby="facts"><h2 id="facts">Details</h2>${facts([
        ['Time', html`${time(createdAt)} UTC`],
        ['Event', ltr(eventId)],
        [
          'Order',
          first?.invoiceId == null
            ? null
            : html`<a href="/invoices/${first.invoiceId}">${outside(first.externalId ?? first.invoiceId)}</a>`,
        ],
      ])}</section>
${live('deliveries', html`${deliveries.length === 0 ? html`<section class="card empty"><p>It was not scheduled for any endpoint.</p></section>` : deliveries.map((each) => renderDelivery(eventId, each))}`)}`,
    };
  });
  addClick(routes, '/events/:eventId/replay', 'replayEvents', async (asked) => {
    const { eventId } = (await findEvent(deps, asked)).event;
    await performFor(deps, asked.visit, replayEvents, { events: [eventId], isConfirmed: true });
    return `/events/${eventId}?sent=1`;
  });
}

async function findEvent(deps: ConsoleDeps, { visit, request }: Asked) {
  const eventId = pathPart(request, 'eventId');
  const { view: event } = await performFor(deps, visit, showDelivery, { eventId }).catch(asUnknown);
  return { project: needProject(visit, event.projectId), event };
}

type FoundEndpoint = Awaited<ReturnType<typeof findEndpoint>>;

/** Finds an endpoint that the visitor may see. Throws `NOT_FOUND`, also for a malformed id. */
async function findEndpoint(deps: ConsoleDeps, { visit, request }: Asked) {
  const endpointId = pathPart(request, 'endpointId');
  const endpoint = await performFor(deps, visit, showEndpoint, { endpointId }).catch(asUnknown);
  return { ...endpoint, project: needProject(visit, endpoint.projectId) };
}

/** Reports a malformed id as not found. */
function asUnknown(error: unknown): never {
  if (error instanceof AppError && error.code === 'INVALID_ARGUMENT') throw new AppError('NOT_FOUND', error.text);
  throw error;
}

function saidOf({ enabled, missed, replayed }: Fields) {
  if (replayed !== undefined)
    return html`Quittance is sending ${counted(replayed)} again, as fast as the receiver accepts them.`;
  if (enabled === undefined) return null;
  return html`The endpoint is enabled${enabled === '0' ? null : html`, and ${counted(enabled)} that were waiting are sent now`}.${missed === undefined || missed === '0' ? null : html` ${missed} more were given up or happened while it was disabled: to send those, use “Send events again”.`}`;
}

/** The number comes from the URL, so it may be anything. */
const counted = (text: string) => (/^\d{1,9}$/.test(text) ? number(Number(text)) : 'some');

function givenOf({ endpointId: endpoint }: { endpointId: string }, filled: Filled, isDryRun: boolean) {
  const { from = '', to, status } = filled;
  return { endpoint, from, to, status: status === undefined ? status : [status], isDryRun, isConfirmed: true };
}

const REPLAY_FIELDS = ['from', 'to', 'status'] as const;
type Filled = Fields<(typeof REPLAY_FIELDS)[number]>;

/** The choices of which events to send again, in words. */
const CHOICES = [
  ['', 'given up or never sent'],
  ['dead', 'only events that were given up, however old'],
  ['missing', 'only events that were never sent, or whose deliveries have been deleted'],
  ['failing', 'waiting after a failure'],
  ['all', 'all events, including delivered events'],
] as const;

type Shown = { url: string; filled: Filled; found: ReplayedPeriodView | null; problem: Html | null };

/** Shows how many events will be sent again before anything else. */
function replayPage(visit: Visit, project: ListedProjectView, { url, filled, found, problem }: Shown): Page {
  return {
    title: 'Send events again',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`<section class="card form">${problem === null ? null : alert(problem)}<p>To <bdi>${url}</bdi>. A receiver should process each event only once.</p>
<form method="get" action="${visit.path}">
${field('from', 'From', filled.from, html` dir="ltr" required`, 'A day (2026-09-01) or a time with its zone (2026-09-01T12:00:00Z).')}
${field('to', 'To (optional)', filled.to, html` dir="ltr"`, 'Default: now.')}
${select('status', 'Which', CHOICES, filled.status)}
<div class="actions"><button${found === null ? null : html` class="quiet"`}>Count events</button></div></form></section>
${found === null ? null : renderFound(visit, filled, found)}`,
  };
}

function renderFound(visit: Visit, filled: Filled, { found, from, until }: ReplayedPeriodView): Html {
  if (found.total === 0)
    return html`<section class="card empty"><h2>Nothing to send again</h2><p>No matching events between ${time(from)} and ${time(until)} UTC.</p></section>`;
  const parts = [
    [found.missing, 'never scheduled for this endpoint'],
    [found.dead, 'given up'],
    [found.pending, 'waiting'],
    [found.delivered, 'delivered before'],
  ] as const;
  const said = parts.flatMap(([count, what]) => (count === 0 ? [] : [`${number(count)} ${what}`]));
  const kept = REPLAY_FIELDS.flatMap((name) => (filled[name] === undefined ? [] : [hidden(name, filled[name])]));
  return html`<section class="card" aria-labelledby="found"><h2 id="found">${many(found.total, 'event')}</h2><p>${said.join(', ')}; between ${time(from)} and ${time(until)} UTC. Quittance sends the events in order.</p>
<form method="post" action="${visit.path}">${hidden('token', visit.token(visit.path))}${kept}<div class="actions"><button>Send ${number(found.total)} again</button></div></form></section>`;
}

function renderDelivery(eventId: string, delivery: ShownDeliveryView): Html {
  const { endpointId, url, attempts, nextAttemptAt, attemptsLeft, diagnosis, isEndpointDisabled } = delivery;
  const next =
    nextAttemptAt === null
      ? null
      : isEndpointDisabled
        ? html`<p class="notice">The event waits until the endpoint is enabled.</p>`
        : html`<p>The next attempt is at ${time(nextAttemptAt)} UTC. Attempts left: ${number(attemptsLeft)}.</p>`;
  return html`<section class="card" aria-labelledby="to-${endpointId}"><h2 id="to-${endpointId}"><a href="/webhooks/${endpointId}">${outside(url, 70)}</a> ${deliveryBadge(delivery)}</h2>
${renderDiagnosis(diagnosis)}${next}
${attempts.length === 0 ? html`<p>No attempt yet.</p>` : table(`Attempts at ${endpointId}, oldest first`, ATTEMPTS, attempts)}
${attempts.length === 0 ? null : html`<details><summary>Request headers</summary>${attempts.map((attempt) => renderHeaders(eventId, url, attempt))}</details>`}</section>`;
}

/**
 * Shows the headers as they were sent. The signature is never stored, because anyone who has it and the body could send the request again.
 */
function renderHeaders(eventId: string, url: string, { attempt, attemptedAt }: AttemptView): Html {
  return html`<h3>Attempt ${attempt}</h3><pre><code>POST ${url}
content-type: application/json
webhook-id: ${eventId}
webhook-timestamp: ${Math.floor(Date.parse(attemptedAt) / 1000)}
webhook-signature: v1,… (one signature for each secret; not stored)
webhook-protocol: v2</code></pre>`;
}

function renderDiagnosis(diagnosis: TestedEndpointView['diagnosis']): Html | null {
  if (diagnosis.length === 0) return null;
  const items = diagnosis.map(
    ({ certainty, problem, fix }) =>
      html`<li><p><strong>${problem}</strong> <small class="hint">${certainty}</small><br>${renderText(fix)}</p></li>`,
  );
  return html`<ol class="causes">${items}</ol>`;
}

const ATTEMPTS: readonly Column<AttemptView>[] = [
  ['Attempt', ({ attempt }) => String(attempt)],
  ['At', ({ attemptedAt }) => time(attemptedAt)],
  ['Duration', ({ latencyMs }) => (latencyMs === null ? '–' : `${number(latencyMs)} ms`), 'number'],
  ['Response', answerOf],
  ['Response body', ({ answer }) => (answer === null || answer === '' ? '–' : outside(answer, 500))],
];

function answerOf({ status, error, webPage }: AttemptView): Html | string {
  if (error !== null) return outside(error, 100);
  return webPage === null ? String(status ?? 'not sent') : html`${status} ${badge('web page', 'CONFIRMING')}`;
}

/** Shows the outcome of a test immediately. */
function testedPage(project: ListedProjectView, url: string, tested: TestedEndpointView): Page {
  const { endpointId, eventId, isDelivered, status, error, latencyMs, dns, tls, answer, diagnosis } = tested;
  return {
    title: isDelivered ? 'The test arrived' : 'The test failed',
    about: project,
    main: html`<section class="card${isDelivered ? ' well' : ''}" aria-label="Result">${isDelivered ? html`<p>The receiver returned ${status} in ${latencyMs} ms.</p>` : renderDiagnosis(diagnosis)}
${facts([
  ['URL', ltr(url)],
  ['Event', html`<a href="/events/${eventId}">${ltr(eventId)}</a>`],
  ['DNS', dns],
  ['TLS', tls],
  ['Response', error === null ? String(status) : outside(error, 300)],
  ['Duration', latencyMs === null ? null : `${number(latencyMs)} ms`],
  ['Response body', answer === null || answer === '' ? null : outside(answer, 500)],
])}<p><a href="/webhooks/${endpointId}">Back to the endpoint</a></p></section>`,
  };
}

/** Adds the forms that change endpoints. All of them except the last one affect payments or the notifications about payments. */
function addWebhookForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, {
    ...byOperation(deps, addEndpoint, (filled, { projectId }: ListedProjectView) => {
      const { url = '', description } = filled;
      return { projectId, url, description, events: eventsOf(filled), secret: undefined };
    }),
    path: '/webhooks/add',
    find: async ({ visit }, project) => needProject(visit, project),
    show: (visit, project) => ({
      ...{ title: 'Add an endpoint', about: project },
      consequence: html`<p>The endpoint receives all new events. Its signing secret is shown only once.</p>`,
      fields: targetFields(null),
      ...{ button: 'Add', back: urlTo(visit, '/webhooks', project) },
    }),
    done: (_visit, project, { endpointId, secret }) => ({
      ...{ title: 'Endpoint added', about: project },
      main: secretShown(secret, html`<a class="button" href="/webhooks/${endpointId}">Continue: send a test</a>`),
    }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, updateEndpoint, (filled, { endpointId }: FoundEndpoint) => {
      const { url = '', description = '' } = filled;
      return { endpointId, url, description, events: eventsOf(filled) ?? ['all'] };
    }),
    path: '/webhooks/:endpointId/change',
    find: (asked) => findEndpoint(deps, asked),
    show: (_visit, endpoint) => ({
      ...{ title: 'Change the endpoint', about: endpoint.project },
      consequence: html`<p>${undelivered(endpoint)} to the new URL. The event types apply to new events.</p>`,
      fields: targetFields(endpoint),
      ...{ button: 'Save', back: `/webhooks/${endpoint.endpointId}` },
    }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, rotateSecret, ({ overlap }, { endpointId }: FoundEndpoint) => {
      return { endpointId, overlap, secret: undefined, isKeyLost: undefined };
    }),
    path: '/webhooks/:endpointId/rotate',
    find: (asked) => findEndpoint(deps, asked),
    show: (_visit, endpoint) => ({
      ...{ title: 'New secret', about: endpoint.project },
      consequence: html`<p>For <bdi>${endpoint.url}</bdi>. The new secret is shown only once. Webhooks are also signed with the current secret (fingerprint <code>${endpoint.secrets[0]?.fingerprint ?? '–'}</code>) for the time that you choose: update the receiver before this time ends.</p>`,
      fields: [choice('overlap', 'Sign with both for', OVERLAPS, '24h')],
      ...{ button: 'Create new secret', back: `/webhooks/${endpoint.endpointId}` },
    }),
    done: (_visit, { endpointId, project }, { view: { secret, formerSecretEndsAt } }) => ({
      ...{ title: 'New secret', about: project },
      main: secretShown(
        secret,
        html`<p>Webhooks are also signed with the previous secret until ${time(formerSecretEndsAt)} UTC.</p><a class="button" href="/webhooks/${endpointId}">Back to the endpoint</a>`,
      ),
    }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, disableEndpoint, ({ reason }, { endpointId }: FoundEndpoint) => {
      return { endpointId, reason };
    }),
    path: '/webhooks/:endpointId/disable',
    find: (asked) => findEndpoint(deps, asked),
    show: (_visit, endpoint) => ({
      ...{ title: 'Disable the endpoint', about: endpoint.project },
      consequence: html`<p><bdi>${endpoint.url}</bdi> receives nothing until you enable the endpoint again. ${undelivered(endpoint)} later. New events are not scheduled for this endpoint, but you can send them later.</p>`,
      fields: [line('reason', 'Reason (optional)', { more: html` maxlength="200"` })],
      ...{ button: 'Disable', back: `/webhooks/${endpoint.endpointId}` },
    }),
  });
}

const OVERLAPS = [
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['0', 'not at all: the current secret ends now'],
] as const;

function targetFields(endpoint: ShownEndpointView | null): FormField[] {
  const types: readonly string[] = endpoint?.eventTypes ?? EVENT_TYPES;
  return [
    line('url', 'URL', {
      ...{ value: endpoint?.url, more: html` dir="ltr" maxlength="2000" required` },
      hint: 'An https:// URL that this server can reach. Quittance stores a token in the URL, and shows it to everyone who can see this page.',
    }),
    line('description', 'Description (optional)', {
      ...{ value: endpoint?.description, more: html` maxlength="200"` },
    }),
    ...EVENT_TYPES.map((type) => check(type, `Send ${type}`, { isOn: types.includes(type) })),
  ];
}

/** Choosing all types means every type, including those of later releases. */
function eventsOf(filled: Fields): string[] | undefined {
  const chosen = EVENT_TYPES.filter((type) => filled[type] !== undefined);
  return chosen.length === EVENT_TYPES.length ? ['all'] : [...chosen, ''];
}

function undelivered({ undelivered: count, isUndeliveredMore }: ShownEndpointView): string {
  if (count === 0) return 'There are no undelivered events; new events go';
  return `${number(count)}${isUndeliveredMore ? '+' : ''} undelivered ${count === 1 ? 'event goes' : 'events go'}`;
}

/** Shows a secret that can't be shown again. */
function secretShown(secret: string | null, next: Html): Page['main'] {
  return html`<section class="card form"><p>This is the signing secret. Copy it now, because it will not be shown again. The receiver needs it to verify each webhook.</p>
<p class="link">${secret === null ? outside('the secret that you entered') : html`<code>${ltr(secret)}</code>`}</p>${secret === null ? null : copyButton(secret, 'Copy the secret')}
<div class="actions">${next}</div></section>`;
}

/** Shows each adapter's rate. */
const RATES: readonly Column<AdapterView>[] = [
  ['Adapter', ({ adapterId, kind }) => rowLink(`/webhooks/${adapterId}`, kind)],
  ['1 USDT costs', ({ rate, currency }) => ltr(`${rate} ${currency}`)],
  ['Source', ({ rateSource }) => (rateSource === null ? 'fixed' : outside(rateSource.origin))],
  ['Age', ({ rateSource }) => (rateSource === null ? '' : ageOf(rateSource))],
];

function ageOf({ ageSeconds, isTooOld }: NonNullable<AdapterView['rateSource']>): Html | string {
  const age = duration(ageSeconds * 1000);
  return isTooOld ? badge(`Too old: ${age}`, 'EXPIRED') : age;
}

const STATES: Readonly<Record<ListedEndpointView['status'], Badge>> = {
  active: ['Responding', 'PAID'],
  failing: ['Failing', 'CONFIRMING'],
  paused: ['Fails, rests', 'CONFIRMING'],
  disabled: ['Disabled', 'EXPIRED'],
};

function stateBadge({ status, lastAttempt }: Pick<ListedEndpointView, 'status' | 'lastAttempt'>): Html {
  const isPage = status === 'active' && lastAttempt != null && lastAttempt.webPage !== null;
  return isPage ? badge('Web page responds', 'CONFIRMING') : badge(...STATES[status]);
}

const ENDPOINTS: readonly Column<ListedEndpointView>[] = [
  [
    'URL',
    ({ endpointId, url, description }) =>
      html`${rowLink(`/webhooks/${endpointId}`, outside(url, 70))}${description === '' ? null : html` <small class="hint">${outside(description)}</small>`}`,
  ],
  ['State', stateBadge],
  ['Undelivered', countUndelivered, 'number'],
  ['Last attempt', ({ lastAttempt }) => attemptOf(lastAttempt)],
];

function countUndelivered({
  undelivered,
  isUndeliveredMore,
}: Pick<ListedEndpointView, 'undelivered' | 'isUndeliveredMore'>): string {
  return `${number(undelivered)}${isUndeliveredMore ? '+' : ''}`;
}

function attemptOf(attempt: ListedEndpointView['lastAttempt']): Html | string {
  if (attempt === null) return 'none yet';
  const { attemptedAt, status, error, webPage } = attempt;
  const returned = status === null ? 'not sent' : `returned ${status}`;
  const answer = webPage === null ? returned : html`returned ${status}, the web page “${outside(webPage, 80)}”`;
  return html`${time(attemptedAt)} <small class="hint">${error === null ? answer : outside(error, 60)}</small>`;
}

const DELIVERY_STATES = ['all', 'failing', 'dead', 'pending', 'delivered'] as const;
type DeliveryState = (typeof DELIVERY_STATES)[number];
const TABS: Record<DeliveryState, string> = {
  all: 'All',
  failing: 'Failing',
  dead: 'Given up',
  pending: 'Waiting',
  delivered: 'Delivered',
};

function renderTrouble(endpoint: ShownEndpointView): Html | null {
  const { status, failingSince, pausedUntil, disabledReason, lastAttempt } = endpoint;
  if (status === 'active') {
    if (lastAttempt === null || lastAttempt.webPage === null) return null;
    return html`<p class="notice">The response to the last event was a web page, “${outside(lastAttempt.webPage, 80)}”. The event counts as delivered because the status was ${lastAttempt.status}, but your receiver probably never saw it. To find out what to do, send a test.</p>`;
  }
  if (status === 'disabled')
    return html`<p class="notice">Quittance sends nothing to this endpoint, because it is disabled: ${outside(disabledReason ?? 'no reason was given', 300)}. Test the endpoint, then enable it: Quittance sends waiting events immediately.</p>`;
  const since = failingSince === null ? null : html` since ${time(failingSince)} UTC`;
  return html`<p class="notice">Deliveries are failing${since}. ${pausedUntil === null ? 'Quittance keeps retrying at increasing intervals.' : html`The next attempt is at ${time(pausedUntil)} UTC.`} To find the cause, send a test.</p>`;
}

function renderDay({ day, oldestUndelivered, ...endpoint }: ShownEndpointView, now: number): Html {
  const share =
    day.looked === 0 ? '–' : `${((day.delivered / day.looked) * 100).toFixed(day.delivered === day.looked ? 0 : 1)} %`;
  const of = `of ${day.isSample ? 'the newest ' : ''}${number(day.looked)} in 24 hours`;
  return html`<section aria-label="Health"><dl class="tiles">
${tile('Delivered', share, of)}
${tile('Undelivered', countUndelivered(endpoint), oldestUndelivered === null ? 'nothing is waiting' : `oldest: ${duration(now - Date.parse(oldestUndelivered))}`)}
${tile('Given up', number(day.dead), of)}</dl></section>`;
}

function renderActs(visit: Visit, { endpointId, status }: ShownEndpointView): Html {
  const may = (action: Parameters<typeof isAllowed>[1], act: Html) => (isAllowed(visit.actor, action) ? [act] : []);
  const path = `/webhooks/${endpointId}`;
  const link = (to: string, text: string) => html`<a class="button quiet" href="${path}/${to}">${text}</a>`;
  return html`<div class="actions">${[
    ...may('testEndpoint', oneClick(visit, `${path}/test`, 'Send a test')),
    ...(status === 'active' ? [] : may('enableEndpoint', oneClick(visit, `${path}/enable`, 'Enable'))),
    ...may('replayPeriod', link('replay', 'Send events again')),
    ...may('rotateSecret', link('rotate', 'New secret')),
    ...may('updateEndpoint', link('change', 'Change')),
    ...(status === 'disabled' ? [] : may('disableEndpoint', link('disable', 'Disable'))),
  ]}</div>`;
}

const DELIVERED: Readonly<Record<DeliveryView['status'], Badge>> = {
  delivered: ['Delivered', 'PAID'],
  pending: ['Waiting', 'CONFIRMING'],
  dead: ['Given up', 'EXPIRED'],
};

const deliveryBadge = ({ status }: Pick<DeliveryView, 'status'>) => badge(...DELIVERED[status]);

const DELIVERIES: readonly Column<DeliveryView>[] = [
  ['Event', ({ eventId, type }) => rowLink(`/events/${eventId}`, type)],
  ['Time', ({ createdAt }) => time(createdAt)],
  [
    'Order',
    ({ invoiceId, externalId }) =>
      invoiceId === null ? '–' : html`<a href="/invoices/${invoiceId}">${outside(externalId ?? invoiceId, 40)}</a>`,
  ],
  ['State', deliveryBadge],
  ['Attempts', ({ attempts }) => number(attempts), 'number'],
  [
    'Result',
    ({ lastStatus, lastError }) =>
      lastError === null ? (lastStatus === null ? '–' : String(lastStatus)) : outside(lastError, 60),
  ],
];
