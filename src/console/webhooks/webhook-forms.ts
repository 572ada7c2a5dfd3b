import { EVENT_TYPES } from '../../domain/event.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { disableEndpoint, rotateSecret } from '../../operator/subjects/webhook-sending.ts';
import { addEndpoint, type ShownEndpointView, updateEndpoint } from '../../operator/subjects/webhooks.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { FormField } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Page } from '../page/layout.ts';
import { copyButton, ltr, number, outside, time } from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { needProject, urlTo } from '../page/visit.ts';
import { type FoundEndpoint, findEndpoint } from './find-endpoint.ts';

/** What may be changed of an endpoint. All but the last is in the way of money, or of what is told of it. */
export function addWebhookForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, {
    ...byOperation(deps, addEndpoint, (filled, { projectId }: ListedProjectView) => {
      const { url = '', description } = filled;
      return { projectId, url, description, events: eventsOf(filled), secret: undefined };
    }),
    path: '/webhooks/add',
    find: async ({ visit }, project) => needProject(visit, project),
    show: (visit, project) => ({
      ...{ title: 'Add an endpoint', about: project },
      consequence: html`<p>It receives events from now on. Its signing secret is shown only once.</p>`,
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
      consequence: html`<p>${undelivered(endpoint)} to the new URL. The event types apply to events from now on.</p>`,
      fields: targetFields(endpoint),
      ...{ button: 'Save', back: `/webhooks/${endpoint.endpointId}` },
    }),
    done: (_visit, { endpointId }) => ({ goTo: `/webhooks/${endpointId}` }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, rotateSecret, ({ overlap }, { endpointId }: FoundEndpoint) => {
      return { endpointId, overlap, secret: undefined, isKeyLost: undefined };
    }),
    path: '/webhooks/:endpointId/rotate',
    find: (asked) => findEndpoint(deps, asked),
    show: (_visit, endpoint) => ({
      ...{ title: 'New secret', about: endpoint.project },
      consequence: html`<p>For <bdi>${endpoint.url}</bdi>. The new secret is shown only once. The current one, fingerprint <code>${endpoint.secrets[0]?.fingerprint ?? '–'}</code>, also signs until the chosen time is over: update the receiver before then.</p>`,
      fields: [{ name: 'overlap', label: 'Both sign for', kind: 'select', options: OVERLAPS, value: '24h' }],
      ...{ button: 'Create new secret', back: `/webhooks/${endpoint.endpointId}` },
    }),
    done: (_visit, { endpointId, project }, { view: { secret, formerSecretEndsAt } }) => ({
      ...{ title: 'New secret', about: project },
      main: secretShown(
        secret,
        html`<p>The previous secret also signs until ${time(formerSecretEndsAt)} UTC.</p><a class="button" href="/webhooks/${endpointId}">Back to the endpoint</a>`,
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
      consequence: html`<p><bdi>${endpoint.url}</bdi> receives nothing until it is enabled again. ${undelivered(endpoint)} later; events in the meantime are not scheduled for it, but can be sent afterwards.</p>`,
      fields: [{ name: 'reason', label: 'Reason (optional)', kind: 'line', more: html` maxlength="200"` }],
      ...{ button: 'Disable', back: `/webhooks/${endpoint.endpointId}` },
    }),
    done: (_visit, { endpointId }) => ({ goTo: `/webhooks/${endpointId}` }),
  });
}

const OVERLAPS = [
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['0', 'not at all: the current one ends now'],
] as const;

function targetFields(endpoint: ShownEndpointView | null): FormField[] {
  const types = endpoint?.eventTypes ?? null;
  return [
    {
      ...{
        name: 'url',
        label: 'URL',
        kind: 'line',
        value: endpoint?.url,
        more: html` dir="ltr" maxlength="2000" required`,
      },
      hint: 'An https:// address that is reachable from here. A token in the URL is stored, and shown to everyone who can see this page.',
    },
    {
      ...{ name: 'description', label: 'Description (optional)', kind: 'line', value: endpoint?.description },
      more: html` maxlength="200"`,
    },
    ...EVENT_TYPES.map((type): FormField => {
      return {
        name: type,
        label: `Send ${type}`,
        kind: 'check',
        value: types === null || types.includes(type) ? 'yes' : undefined,
      };
    }),
  ];
}

/** All of them are everything, what comes with later releases too. */
function eventsOf(filled: Fields): string[] | undefined {
  const chosen = EVENT_TYPES.filter((type) => filled[type] !== undefined);
  return chosen.length === EVENT_TYPES.length ? ['all'] : [...chosen, ''];
}

function undelivered({ undelivered: count, isUndeliveredMore }: ShownEndpointView): string {
  if (count === 0) return 'Nothing is undelivered; new events go';
  return `${number(count)}${isUndeliveredMore ? '+' : ''} undelivered ${count === 1 ? 'event goes' : 'events go'}`;
}

/** Nobody can show it again. */
function secretShown(secret: string | null, next: Html): Page['main'] {
  return html`<section class="card form"><p>This is the signing secret. Copy it now, because it is not shown again: the receiver needs it to verify each webhook.</p>
<p class="link">${secret === null ? outside('the secret you gave') : html`<code>${ltr(secret)}</code>`}</p>${secret === null ? null : copyButton(secret, 'Copy the secret')}
<div class="actions">${next}</div></section>`;
}
