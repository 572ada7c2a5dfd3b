import { AppError } from '../../../core/domain/errors.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { AdapterView } from '../../operator/subjects/adapters.ts';
import type { DeliveryListView, DeliveryView } from '../../operator/subjects/deliveries.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type ListedEndpointView, type ShownEndpointView, showEndpoint } from '../../operator/subjects/webhooks.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import {
  type Badge,
  badge,
  type Column,
  duration,
  facts,
  live,
  liveNone,
  liveRows,
  ltr,
  number,
  outside,
  pager,
  table,
  tabs,
  time,
} from '../page/pieces.ts';
import type { Asked } from '../page/routes.ts';
import { needProject, pathPart, urlTo, type Visit } from '../page/visit.ts';

/** Answers the question: do my webhooks arrive? */
export function webhooksPage(
  visit: Visit,
  project: ListedProjectView,
  data: readonly ListedEndpointView[],
  adapters: readonly AdapterView[],
): Page {
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
}

/** Shows each adapter's rate. */
const RATES: readonly Column<AdapterView>[] = [
  ['Adapter', ({ adapterId, kind }) => html`<a class="row" href="/webhooks/${adapterId}">${kind}</a>`],
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
      html`<a class="row" href="/webhooks/${endpointId}">${outside(url, 70)}</a>${description === '' ? null : html` <small class="hint">${outside(description)}</small>`}`,
  ],
  ['State', stateBadge],
  ['Undelivered', undelivered, 'number'],
  ['Last attempt', ({ lastAttempt }) => attemptOf(lastAttempt)],
];

function undelivered({ undelivered, isUndeliveredMore }: ListedEndpointView): string {
  return `${number(undelivered)}${isUndeliveredMore ? '+' : ''}`;
}

function attemptOf(attempt: ListedEndpointView['lastAttempt']): Html | string {
  if (attempt === null) return 'none yet';
  const { attemptedAt, status, error, webPage } = attempt;
  const returned = status === null ? 'not sent' : `returned ${status}`;
  const answer = webPage === null ? returned : html`returned ${status}, the web page “${outside(webPage, 80)}”`;
  return html`${time(attemptedAt)} <small class="hint">${error === null ? answer : outside(error, 60)}</small>`;
}

type Shown = {
  endpoint: ShownEndpointView;
  list: DeliveryListView;
  state: DeliveryState;
  isFirst: boolean;
  now: number;
};

export const DELIVERY_STATES = ['all', 'failing', 'dead', 'pending', 'delivered'] as const;
type DeliveryState = (typeof DELIVERY_STATES)[number];
const TABS: Record<DeliveryState, string> = {
  all: 'All',
  failing: 'Failing',
  dead: 'Given up',
  pending: 'Waiting',
  delivered: 'Delivered',
};

/** Shows one endpoint with the result of each event there. */
export function endpointPage(visit: Visit, project: ListedProjectView, shown: Shown): Page {
  const { endpoint, list, state, isFirst, now } = shown;
  const urlOf = (of: DeliveryState, before?: string) =>
    urlTo(visit, `/webhooks/${endpoint.endpointId}`, project, { status: of === 'all' ? undefined : of, before });
  const older = list.nextBefore && urlOf(state, list.nextBefore);
  return {
    title: new URL(endpoint.url).host,
    about: project,
    beside: live('state', stateBadge(endpoint)),
    main: html`
${live('trouble', html`${renderTrouble(endpoint)}`, { isSpoken: true })}
${live('day', renderDay(endpoint, now))}
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
${pager({ older, text: 'Older events', newest: isFirst ? null : urlOf(state) })}`,
  };
}

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
<div class="tile"><dt>Delivered</dt><dd>${share}</dd><dd class="hint">${of}</dd></div>
<div class="tile"><dt>Undelivered</dt><dd>${undelivered(endpoint as ListedEndpointView)}</dd><dd class="hint">${oldestUndelivered === null ? 'nothing is waiting' : `oldest: ${duration(now - Date.parse(oldestUndelivered))}`}</dd></div>
<div class="tile"><dt>Given up</dt><dd>${number(day.dead)}</dd><dd class="hint">${of}</dd></div></dl></section>`;
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

export const deliveryBadge = ({ status }: Pick<DeliveryView, 'status'>) => badge(...DELIVERED[status]);

const DELIVERIES: readonly Column<DeliveryView>[] = [
  ['Event', ({ eventId, type }) => html`<a class="row" href="/events/${eventId}">${type}</a>`],
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

export type FoundEndpoint = Awaited<ReturnType<typeof findEndpoint>>;

/** Finds an endpoint that the visitor may see. Throws `NOT_FOUND`, also for a malformed id. */
export async function findEndpoint(deps: ConsoleDeps, { visit, request }: Asked) {
  const endpointId = pathPart(request, 'endpointId');
  const endpoint = await showEndpoint.run(deps, visit.actor, { endpointId }).catch(asUnknown);
  return { ...endpoint, project: needProject(visit, endpoint.projectId) };
}

/** Reports a malformed id as not found. */
export function asUnknown(error: unknown): never {
  if (error instanceof AppError && error.code === 'INVALID_ARGUMENT') throw new AppError('NOT_FOUND', error.text);
  throw error;
}
