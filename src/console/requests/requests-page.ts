import type { ListedProjectView } from '../../operator/projects/views.ts';
import type { RequestListView, RequestView, ShownRequestView } from '../../operator/requests/views.ts';
import { type Html, html } from '../../web/html.ts';
import { PROBLEMS } from '../../web/problem.ts';
import type { Page } from '../page/layout.ts';
import {
  alert,
  copyButton,
  facts,
  field,
  liveNone,
  liveRows,
  ltr,
  number,
  outside,
  select,
  table,
} from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import { urlTo, type Visit } from '../page/visit.ts';

/** `whose`: those of the project, or those of `nobody`, which came without a valid key. */
export const FILTERS = ['status', 'externalId', 'key', 'from', 'to', 'whose'] as const;
type Filters = Fields<(typeof FILTERS)[number]>;
type Listed = { filters: Filters; list: RequestListView | null; problem: Html | null; isFirst: boolean };

/** What did the shop ask, and what was it told? `problem`: why the filters were refused; `list` is `null` then. */
export function requestsPage(visit: Visit, project: ListedProjectView, { list, problem, ...asked }: Listed): Page {
  return {
    title: 'Requests',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`${problem === null ? null : alert(problem)}${renderFilters(visit, project, asked.filters)}${list === null ? null : renderList(visit, project, list, asked)}`,
  };
}

const ANSWERS = [
  ['', 'any'],
  ['2xx', 'done (2xx)'],
  ['4xx', 'refused (4xx)'],
  ['5xx', 'failed (5xx)'],
] as const;
const WHOSE = [
  ['', 'of this project'],
  ['nobody', 'without a valid key'],
] as const;

function renderFilters(visit: Visit, project: ListedProjectView, filters: Filters): Html {
  const { actor, projects } = visit;
  const kept = projects.length > 1 ? html`<input type="hidden" name="project" value="${project.projectId}">` : null;
  const isOpen = Object.keys(filters).length > 0;
  return html`<details class="card filters"${isOpen ? html` open` : null}><summary>Filter</summary><form action="/requests" method="get">${kept}
${select('status', 'Answer', ANSWERS, filters.status)}
${field('externalId', 'Order id', filters.externalId)}
${field('key', 'Key', filters.key, html` dir="ltr" placeholder="key_…"`)}
${field('from', 'From day', filters.from, html` type="date"`)}
${field('to', 'To day', filters.to, html` type="date"`)}
${actor.projects === null ? select('whose', 'Whose', WHOSE, filters.whose) : null}
<div class="actions"><button>Show</button>${isOpen ? html`<a href="${urlTo(visit, '/requests', project)}">Show all</a>` : null}</div></form></details>`;
}

/** Rows of a page. */
export const PAGE_SIZE = '50';

function renderList(
  visit: Visit,
  project: ListedProjectView,
  { data, looked, nextBefore }: RequestListView,
  { filters, isFirst }: Pick<Listed, 'filters' | 'isFirst'>,
): Html {
  const next = nextBefore === null ? null : urlTo(visit, '/requests', project, { ...filters, before: nextBefore });
  if (data.length === 0 && next === null) return liveNone(renderNone(Object.keys(filters).length > 0 || !isFirst));
  const rows =
    data.length === 0
      ? html`<p>None of these ${number(looked)} requests fits.</p>`
      : table('Requests, the newest first', COLUMNS, data);
  const more =
    next === null
      ? null
      : html`<a class="button quiet" rel="next" href="${next}">${data.length < Number(PAGE_SIZE) ? `Look further: ${number(looked)} were looked through` : 'Older requests'}</a>`;
  return html`${liveRows('Requests', html`${rows}`)}
<div class="pager">${more}${isFirst ? null : html`<a href="${urlTo(visit, '/requests', project, filters)}">Newest</a>`}</div>`;
}

const COLUMNS = [
  [
    'Time',
    ({ requestId, time }: RequestView) =>
      html`<a class="row" href="/requests/${requestId}">${moment(time, 'second')}</a>`,
  ],
  ['Asked', (request: RequestView) => asked(request)],
  ['Answer', (request: RequestView) => html`${badge(request)} ${request.code}`],
  ['Order', ({ externalId }: RequestView) => (externalId === null ? '–' : outside(externalId, 40))],
  ['ms', ({ tookMs }: RequestView) => number(tookMs), 'number'],
] as const;

function renderNone(isFiltered: boolean): Html {
  if (isFiltered) {
    return html`<section class="card empty"><h2>No request fits</h2><p>Take a filter away, or find one by the box at the top: it takes the id that each answer has in its header <code>X-Request-Id</code>, and each error as <code>requestId</code>.</p></section>`;
  }
  return html`<section class="card empty"><h2>No request yet</h2><p>What your shop asks of the API shows here a second or two later, for 30 days: when, with which key, about which order, and how it ended. Never what was sent.</p></section>`;
}

/** Support asks to the second, or closer. */
function moment(iso: string, to: 'second' | 'millisecond'): Html {
  const shown = iso.slice(0, to === 'second' ? 19 : 23).replace('T', ' ');
  return html`<time datetime="${iso}">${shown}</time>`;
}

function asked({ method, route }: RequestView): Html {
  return html`<code>${ltr(method)} ${route === null ? 'no such URL' : ltr(route)}</code>`;
}

/** In the colours of other states: what failed asks for somebody. */
function badge({ status }: RequestView): Html {
  const state = status >= 500 ? 'CONFIRMING' : status >= 400 ? 'EXPIRED' : 'PAID';
  return html`<span class="badge" data-state="${state}">${status}</span>`;
}

/** One request, with every field in words. `project` is `null` where no valid key came with it. */
export function requestPage(visit: Visit, project: ListedProjectView | null, shown: ShownRequestView): Page {
  const { requestId, key, externalId, invoiceId, tookMs } = shown;
  const problem = problemOf(shown.code);
  const order = externalId === null ? null : { externalId };
  return {
    title: 'Request',
    about: project,
    main: html`<section class="card" aria-label="Request">${facts([
      ['Request', html`${ltr(requestId)} ${copyButton(requestId, 'Copy the id of the request')}`],
      ['Came', html`${moment(shown.time, 'millisecond')} UTC`],
      ['Asked', asked(shown)],
      ['Answer', html`${badge(shown)} ${shown.code ?? (shown.status < 400 ? 'done' : null)}`],
      ['What it means', problem && html`${problem.title}.`],
      ['What the shop can do', problem && withCode(problem.advice)],
      ['Took', `${number(tookMs)} ms`],
      [
        'Key',
        key === null
          ? 'none that is valid'
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
            ? 'none has this order id'
            : html`<a href="/invoices/${invoiceId}">${ltr(invoiceId)}</a>`),
      ],
    ])}<p class="hint">Bodies, queries and headers are not kept.</p></section>
<div class="pager"><a href="${urlTo(visit, '/requests', project)}">All requests</a></div>`,
  };
}

/** What stands between `…` is a name. */
function withCode(text: string): Html {
  const parts = text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
  return html`${parts}`;
}

/** A later release may have written it. */
function problemOf(code: string | null): { title: string; advice: string } | null {
  const known: Readonly<Record<string, { title: string; advice: string }>> = PROBLEMS;
  return code === null || !Object.hasOwn(known, code) ? null : (known[code] ?? null);
}
