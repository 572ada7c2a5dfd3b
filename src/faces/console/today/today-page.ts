import { asSum } from '../../../core/domain/money.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type ConcernView, MAX_SHARED, showToday, type TodayView } from '../../operator/today/show-today.ts';
import { type Html, html } from '../../web/html.ts';
import { MARK, type Page } from '../page/layout.ts';
import {
  badge,
  type Column,
  duration,
  live,
  ltr,
  many,
  money,
  number,
  outside,
  table,
  tile,
  time,
} from '../page/pieces.ts';
import type { ConsoleDeps, Routes } from '../page/routes.ts';
import { chooseProject, urlTo, type Visit } from '../page/visit.ts';
import { renderKept, renderText } from '../page/words.ts';

/** Adds the page that answers two questions: is all well, and which tasks are mine? */
export function addTodayRoute(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/', 'showToday', ['project'], async ({ visit, query }) => {
    const project = chooseProject(visit, query.project);
    if (project === null) return emptyPage(visit);
    const view = await showToday(deps, visit.actor, project);
    // As soon as there are any figures, the page shows them instead of the remaining setup steps.
    const isNew = view.setUp.some(({ step, isDone }) => step === 'payment' && !isDone);
    const isSetUp = view.setUp.every(({ isDone }) => isDone);
    return {
      title: 'Today',
      about: project,
      beside: html`<p class="asof" id="asof" data-live>As of ${asOf(view.asOf)} UTC <a href="${urlTo(visit, '/', project)}">Refresh</a></p>`,
      main: html`${live('concerns', renderConcerns(visit, project, view), { isSpoken: true })}
${live('figures', html`${isNew ? renderSetUp(visit, project, view) : null}${renderFigures(view)}${isNew || isSetUp ? null : renderSetUp(visit, project, view)}`)}
${live('chain-line', renderChain(visit, project, view))}`,
    };
  });
}

/** Returns the page that is shown before the first project exists, or to a person who may not see any project. */
function emptyPage({ actor }: Visit): Page {
  const [title, how] = isAllowed(actor, 'createProject')
    ? [
        'There is no project yet',
        html`<p><a class="button" href="/settings/projects/new">Create the first project</a></p>`,
      ]
    : [
        'No projects are visible to you',
        html`<p>Ask an owner with access to all projects to create a project, or to give you access.</p>`,
      ];
  return {
    title: 'Welcome',
    main: html`<section class="card"><h2>${title}</h2>
<p>A project is one shop on one network, with its own addresses, keys and invoices.</p>
${how}</section>`,
  };
}

const asOf = (iso: string) => html`<time datetime="${iso}">${iso.slice(11, 19)}</time>`;

function renderConcerns(visit: Visit, project: ListedProjectView, { concerns, asOf: now }: TodayView): Html {
  if (concerns.length === 0) {
    return html`<section class="card well" aria-labelledby="needs"><h2 id="needs">All is well</h2><p>There are no open alarms, every webhook endpoint responds, and every transfer is matched to an invoice.</p></section>`;
  }
  const items = concerns.map((concern) => renderConcern(visit, project, concern, now));
  return html`<section class="card" aria-labelledby="needs"><h2 id="needs">${concerns.length === 1 ? 'One item needs attention' : `${concerns.length} items need attention`}</h2><ul class="concerns">${items}</ul></section>`;
}

const RANKS: Readonly<Record<number, string>> = { 1: 'Urgent', 2: 'To do', 3: 'Soon' };

function renderConcern(visit: Visit, project: ListedProjectView, concern: ConcernView, now: string): Html {
  const { rank, about, code, subject, text, since, next } = concern;
  const age =
    since === null ? null : html` <span class="hint">for ${duration(Date.parse(now) - Date.parse(since))}</span>`;
  const named =
    about === 'alarm'
      ? html`<strong>${code}</strong>${subject === '' ? null : html` ${outside(subject, 70)}`}: `
      : null;
  const step =
    about === 'money'
      ? html`<a class="button" href="${urlTo(visit, '/unmatched', project)}">Decide</a>`
      : html`<p class="hint">${renderText(next)}</p>`;
  return html`<li data-rank="${rank}"><span class="rank">${RANKS[rank] ?? 'Soon'}</span><div><p>${named}${renderKept(text, 600)}${age}</p>${step}</div></li>`;
}

type Step = TodayView['setUp'][number]['step'];
/** A link to a page for an action. */
type Way = { action: ActionName; path: string; label: string };

const to = (action: ActionName, path: string, label: string): Way => ({ action, path, label });

const STEPS: Record<Step, readonly [title: string, way: Way | null, hint?: Html]> = {
  address: ['Add an address from your wallet', to('addAddresses', '/addresses/add', 'Add addresses')],
  key: ['Create an API key for your shop', to('createKey', '/settings/keys/new', 'Create API key')],
  webhook: ['Add a webhook for payment notifications', to('addEndpoint', '/webhooks/add', 'Add a webhook')],
  payment: [
    'Receive the first payment',
    to('createInvoiceByHand', '/invoices/new', 'Create invoice'),
    html`<p class="hint">Pay the invoice from another wallet.</p>`,
  ],
  notifications: ['Set up alarm notifications', to('addChannel', '/settings/notifications', 'Add a channel')],
  backup: ['Make the first backup', to('showSystem', '/settings/system', 'Backups')],
  attestation: [
    'Sign your addresses',
    null,
    html`<p class="hint">Do this from the command line, with a signing key that you do not store on the server: see docs/guides/signed-addresses.md.</p>`,
  ],
};

const OPEN = html`<svg aria-hidden="true" width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"><circle cx="12" cy="12" r="10"/></svg>`;

function renderSetUp(visit: Visit, project: ListedProjectView, { setUp }: TodayView): Html {
  const next = setUp.find(({ isDone }) => !isDone);
  const items = setUp.map(({ step, isDone }) => {
    const [title, way, hint = null] = STEPS[step];
    const how = step === next?.step ? html`${way && renderWay(visit, project, way)}${hint}` : null;
    const mark = isDone ? MARK : OPEN;
    return html`<li${isDone ? html` class="done"` : null}>${mark}<div><span class="unseen">${isDone ? 'Done: ' : 'To do: '}</span>${title}${how}</div></li>`;
  });
  const done = setUp.filter(({ isDone }) => isDone).length;
  return html`<section class="card" aria-labelledby="setup"><h2 id="setup">Set up: ${done} of ${setUp.length} steps</h2><ol class="steps">${items}</ol></section>`;
}

function renderWay(visit: Visit, project: ListedProjectView, { action, path, label }: Way): Html {
  if (isAllowed(visit.actor, action)) return html`<p><a href="${urlTo(visit, path, project)}">${label}</a></p>`;
  return html`<p class="hint">Ask ${ACTIONS[action].role === 'owner' ? 'an owner' : 'an operator or an owner'} to do this: your role does not allow it.</p>`;
}

function renderFigures({ figures }: TodayView): Html {
  if (figures === null) {
    return html`<section class="card"><h2>Paid</h2><p class="notice">The figures took too long to calculate, so they are not shown. The list of items above is complete.</p></section>`;
  }
  const { today, days7, days30, share, medianMs, timed, days } = figures;
  const percent = share.decided === 0 ? '–' : `${Math.round((share.paid / share.decided) * 100)} %`;
  const sums = (
    [
      ['today', today],
      ['in 7 days', days7],
      ['in 30 days', days30],
    ] as const
  ).map(([when, { count, amount }]) => tile(`USDT paid ${when}`, money(amount), many(count, 'payment')));
  return html`<section aria-labelledby="paid"><h2 id="paid" class="unseen">Paid</h2><dl class="tiles">${sums}
${tile('Paid rate', percent, `of ${number(share.decided)} that ended${share.isSample ? `, among the newest ${number(MAX_SHARED)}` : ' in 30 days'}`)}
${tile('Typical time to payment', medianMs === null ? '–' : duration(medianMs), medianMs === null ? 'from invoice creation to PAID' : `of ${timed.isSample ? 'the newest ' : ''}${many(timed.count, 'payment')}${timed.isSample ? '' : ' in 30 days'}, from invoice creation to PAID`)}</dl></section>
<section class="card" aria-labelledby="days"><h2 id="days">Paid per day</h2>${renderDays(days)}</section>`;
}

function renderChain(visit: Visit, project: ListedProjectView, { chain, asOf: now }: TodayView): Html {
  const { network, head, headAt, recorded, nodes, goodNodes, why } = chain;
  if (head === null || headAt === null) {
    return html`<section class="card" aria-labelledby="chain"><h2 id="chain">Chain</h2><p>${network} has not been scanned yet${why === null ? null : html`: ${renderKept(why, 300)}`}.</p></section>`;
  }
  const age = duration(Date.parse(now) - Date.parse(headAt));
  const state = why === null ? badge('Up to date', 'PAID') : badge('Behind', 'CONFIRMING');
  const reason = why === null ? null : html`<p>${renderKept(why, 300)}</p>`;
  const closer = isAllowed(visit.actor, 'showStatus')
    ? html`<p><a href="${urlTo(visit, '/chain', project)}">Details</a></p>`
    : null;
  return html`<section class="card" aria-labelledby="chain"><h2 id="chain">Chain</h2><p>${state} ${network}, block ${ltr(number(head))} from ${time(headAt)} (${age} old); irreversible and recorded up to ${ltr(recorded === null ? '–' : number(recorded))}; ${goodNodes} of ${nodes} ${nodes === 1 ? 'node responds' : 'nodes respond'}.</p>${reason}${closer}</section>`;
}

type Days = NonNullable<TodayView['figures']>['days'];

const WIDTH = 600;
const HEIGHT = 120;
const GAP = 4;
/** This minimum makes every day with a payment visible. */
const LEAST = 3;

/** Shows each day's payments as bars, and again as a table. Needs neither script nor style. */
function renderDays(days: Days): Html {
  const micro = days.map(({ amount }) => BigInt(amount.replace('.', '')));
  const most = micro.reduce((top, each) => (each > top ? each : top), 1n);
  const step = WIDTH / days.length;
  const bars = days.map(({ day, count, amount }, index) => {
    const share = Number(((micro[index] ?? 0n) * 1000n) / most) / 1000;
    const height = count === 0 ? 1 : Math.max(LEAST, Math.round(share * HEIGHT));
    const [x, y] = [Math.round(index * step * 10) / 10, HEIGHT - height];
    const look = count === 0 ? 'none' : index === days.length - 1 ? 'now' : 'bar-of-day';
    return html`<rect class="${look}" x="${x}" y="${y}" width="${step - GAP}" height="${height}" rx="2"><title>${day}: ${number(count)} paid, ${asSum(amount)} USDT</title></rect>`;
  });
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? ''];
  const rows = days.filter(({ count }) => count > 0).toReversed();
  const columns: Column<Days[number]>[] = [
    ['Day (UTC)', ({ day }) => ltr(day)],
    ['Paid', ({ count }) => number(count), 'number'],
    ['USDT', ({ amount }) => money(amount), 'number'],
  ];
  const shown =
    rows.length === 0 ? html`<p class="hint">No payments on these days.</p>` : table('Payments by day', columns, rows);
  return html`<svg class="chart" role="img" aria-label="USDT paid on each of the last ${days.length} days; the table below has the figures" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">${bars}</svg>
<p class="axis hint"><span>${first}</span><span>${last}</span></p>
<details><summary>As a table</summary>${shown}</details>`;
}
