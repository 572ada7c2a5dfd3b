import { shorten } from '../../operator/input/problems.ts';
import { readChoice } from '../../operator/input/readers.ts';
import {
  describeErrors,
  findRequestId,
  listRequests,
  type RequestView,
  showRequest,
} from '../../operator/subjects/requests.ts';
import { type Html, html } from '../../web/html.ts';
import { PROBLEMS } from '../../web/problem.ts';
import { addList, by } from '../page/add-list.ts';
import { badge, type Column, copyButton, facts, ltr, number, outside, rowLink } from '../page/pieces.ts';
import { type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { needProject, noSuch, pathPart, urlTo } from '../page/visit.ts';

/** Adds the list of the shops' API requests, and the page for one request. */
export function addRequestRoutes(routes: Routes, deps: ConsoleDeps): void {
  // Answers the question: what did the shop request, and how did Quittance answer?
  addList(routes, {
    ...{
      path: '/requests',
      action: 'listRequests',
      title: 'Requests',
      noun: 'requests',
      pageSize: 50,
      columns: COLUMNS,
    },
    filters: [
      by.choice('status', 'Response', Object.keys(ANSWERS), (each) => ANSWERS[each as AnswerClass]),
      by.line('externalId', 'Order id'),
      by.line('key', 'Key', html` dir="ltr" placeholder="key_…"`),
      ...by.days,
      { name: 'whose', label: 'Whose', options: WHOSE, isShown: ({ actor }) => actor.projects === null },
    ],
    find: async (visit, { projectId }, { whose, ...fields }, before) => {
      const isKeyless = readChoice('whose', whose, ['nobody']) !== null;
      const given = { ...fields, before, limit: '50', isKeyless, projectId: isKeyless ? undefined : projectId };
      const found = await performFor(deps, visit, listRequests, given as never);
      return { ...found, next: found.nextBefore };
    },
    none: (_visit, _project, isFiltered) =>
      isFiltered
        ? html`<section class="card empty"><h2>No matching requests</h2><p>Remove a filter, or use the search box at the top with the id from the <code>X-Request-Id</code> response header or the <code>requestId</code> field of an error.</p></section>`
        : html`<section class="card empty"><h2>No requests yet</h2><p>API requests from your shop appear here after a second or two, with their time, key, order and result. Quittance keeps them for 30 days. Values are never stored.</p></section>`,
  });
  routes.get('/requests/:requestId', 'showRequest', [], async ({ visit, request }) => {
    const requestId = pathPart(request, 'requestId');
    const id = findRequestId(requestId);
    if (id === null) throw noSuch('request', requestId);
    const shown = await performFor(deps, visit, showRequest, { requestId: id });
    // A request without a valid key belongs to no project.
    const project = shown.projectId === null ? null : needProject(visit, shown.projectId);
    const { key, externalId, invoiceId, tookMs } = shown;
    const problem = problemOf(shown.code);
    const order = externalId === null ? null : { externalId };
    return {
      title: 'Request',
      about: project,
      main: html`<section class="card" aria-label="Request">${facts([
        ['Request', html`${ltr(shown.requestId)} ${copyButton(shown.requestId, 'Copy the request id')}`],
        ['Received', html`${moment(shown.time, 'millisecond')} UTC`],
        ['Request', asked(shown)],
        ['Response', html`${statusBadge(shown)} ${shown.code ?? (shown.status < 400 ? 'done' : null)}`],
        ['Meaning', problem && html`${problem.title}.`],
        ['What the shop can do', problem && withCode(problem.advice)],
        ['Refused', describeErrors(shown) || null],
        ['Body', shown.body && html`<code>${ltr(shown.body)}</code>`],
        ['Duration', `${number(tookMs)} ms`],
        [
          'Key',
          key === null
            ? 'no valid key'
            : html`<bdi>${key.name}</bdi> <a href="${urlTo(visit, '/requests', project, { key: key.keyId })}">${ltr(key.keyId)}</a>`,
        ],
        [
          'Order',
          order && html`<a href="${urlTo(visit, '/requests', project, order)}">${outside(order.externalId, 200)}</a>`,
        ],
        [
          'Invoice',
          order &&
            (invoiceId === null
              ? 'no invoice with this order id'
              : html`<a href="/invoices/${invoiceId}">${ltr(invoiceId)}</a>`),
        ],
      ])}<p class="hint">Values in bodies, queries and headers are not stored.</p></section>
<div class="pager"><a href="${urlTo(visit, '/requests', project)}">All requests</a></div>`,
    };
  });
}

const ANSWERS = { '2xx': 'done (2xx)', '4xx': 'refused (4xx)', '5xx': 'failed (5xx)' } as const;
type AnswerClass = keyof typeof ANSWERS;

const WHOSE = [
  ['', 'of this project'],
  ['nobody', 'without a valid key'],
] as const;

const COLUMNS: readonly Column<RequestView>[] = [
  ['Time', ({ requestId, time }) => rowLink(`/requests/${requestId}`, moment(time, 'second'))],
  ['Request', (request) => asked(request)],
  ['Response', (request) => html`${statusBadge(request)} ${request.code} ${shorten(describeErrors(request), 60)}`],
  ['Order', ({ externalId }) => (externalId === null ? '–' : outside(externalId, 40))],
  ['ms', ({ tookMs }) => number(tookMs), 'number'],
];

/** Support staff need the time to the second or millisecond. */
function moment(iso: string, to: 'second' | 'millisecond'): Html {
  const shown = iso.slice(0, to === 'second' ? 19 : 23).replace('T', ' ');
  return html`<time datetime="${iso}">${shown}</time>`;
}

function asked({ method, route }: RequestView): Html {
  return html`<code>${ltr(method)} ${route === null ? 'no such URL' : ltr(route)}</code>`;
}

/** Uses the colours of statuses, in which failures stand out. */
const statusBadge = ({ status }: RequestView) =>
  badge(status, status >= 500 ? 'CONFIRMING' : status >= 400 ? 'EXPIRED' : 'PAID');

/** Text between backticks is a name. */
function withCode(text: string): Html {
  const parts = text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
  return html`${parts}`;
}

/** Returns `null` for a code that this release doesn't know, because a later one may have written it. */
const problemOf = (code: string | null) =>
  code !== null && Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code as keyof typeof PROBLEMS] : null;
