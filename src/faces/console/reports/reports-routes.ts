import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import {
  dayOf,
  type ReportPeriod,
  type ReportSums,
  type ReportView,
  readReportPeriod,
  showReport,
  writeReport,
} from '../../operator/subjects/reports.ts';
import { type Html, html } from '../../web/html.ts';
import { describeMistake } from '../page/layout.ts';
import {
  type Column,
  facts,
  field,
  keepProject,
  live,
  ltr,
  many,
  money,
  number,
  rowLink,
  table,
  tile,
} from '../page/pieces.ts';
import { type ConsoleDeps, type Routes, sendFile } from '../page/routes.ts';
import { type Fields, needProject, urlTo, type Visit } from '../page/visit.ts';

/** The time limit for a page, which someone is waiting for. */
const PAGE_PATIENCE_MS = 3000;
/** The time limit for a file, which may take longer but must stay below the general statement timeout. */
const FILE_PATIENCE_MS = 15_000;

/** Adds the bookkeeping figures, as a page and as downloads. */
export function addReportRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/reports', 'showReport', ['project', ...PERIOD], async ({ visit, query: { project: asked, ...given } }) => {
    const project = needProject(visit, asked);
    let [period, shown, problem]: [ReportPeriod | null, Shown | null, Html | null] = [null, null, null];
    try {
      period = readReportPeriod(given, deps.now());
      const input = { projectId: project.projectId, period, patienceMs: PAGE_PATIENCE_MS };
      const report = await showReport.run(deps, visit.actor, input);
      shown = { report, isNow: period.to >= dayOf(deps.now()) };
    } catch (error) {
      problem = describeMistake(error);
    }
    return {
      title: 'Reports',
      about: project,
      problem,
      main: html`${renderPeriod(visit, project, period ?? given)}${shown === null ? null : live('report', renderReport(visit, project, shown))}${period !== null && shown === null ? TOO_LONG : null}${period === null ? null : renderFiles(visit, project, period)}`,
    };
  });
  const files = { csv: writeReport, json: (report: ReportView) => `${JSON.stringify(report, null, 2)}\n` };
  for (const [kind, write] of Object.entries(files))
    get(`/reports.${kind}`, 'showReport', ['project', ...PERIOD], async (asked) => {
      const { project, ...given } = asked.query;
      const { projectId } = needProject(asked.visit, project);
      const period = readReportPeriod(given, deps.now());
      const wanted = { projectId, period, patienceMs: FILE_PATIENCE_MS };
      const report = await showReport.run(deps, asked.visit.actor, wanted);
      return sendFile(asked, `report-${projectId}-${period.from}-${period.to}.${kind}`, write(report));
    });
}

const PERIOD = ['from', 'to'] as const;
type Given = Fields<(typeof PERIOD)[number]>;
/** `isNow` means that the report includes today, so its balance is the current one. */
type Shown = { report: ReportView; isNow: boolean };

/** A hint that is shown only if computing the sums took too long. */
const TOO_LONG = html`<p class="hint">Downloads have a longer time limit than this page:</p>`;

function renderPeriod(visit: Visit, project: ListedProjectView, { from, to }: Given): Html {
  return html`<section class="card filters" aria-label="Report days"><form action="/reports" method="get">${keepProject(visit, project)}
${field('from', 'From day', from, html` type="date"`)}
${field('to', 'To day', to, html` type="date"`)}
<div class="actions"><button>Show</button></div></form></section>`;
}

function renderReport(visit: Visit, project: ListedProjectView, { report, isNow }: Shown): Html {
  const { days, total } = report;
  const { paid, requested, received, tails, late, duplicate, unmatched, out } = total;
  const tiles = [
    tile('Requested', money(requested), `by ${many(paid, 'paid invoice')}`),
    tile('Received', money(received), html`tails ${money(tails)}, late ${money(late.amount)}`),
    tile('Duplicate', money(duplicate.amount), many(duplicate.count, 'transfer')),
    tile('Unmatched', money(unmatched.amount), many(unmatched.count, 'transfer')),
    tile('Out', money(out.amount), many(out.count, 'transfer')),
  ];
  return html`<dl class="tiles">${tiles}</dl>${days.length === 0 ? NOTHING : renderDays(visit, project, report)}${renderBalance(report, isNow)}`;
}

const NOTHING = html`<section class="card empty"><h2>No transfers on these days</h2><p>Transfers appear on their day (UTC) when their blocks are irreversible.</p></section>`;

/** More rows would exceed 30 kB, and no one reads that far. */
const MAX_DAYS = 100;

/** Shows the days, the months if there are several, and the total. */
function renderDays(visit: Visit, project: ListedProjectView, { days, months, total }: ReportView): Html {
  const isLong = days.length > MAX_DAYS;
  const linkTo = (month: string) => {
    const ofMonth = { from: `${month}-01`, to: lastDayOf(month) };
    return rowLink(urlTo(visit, '/reports', project, ofMonth), ltr(month));
  };
  const rows: Row[] = [
    ...(isLong ? [] : days.map(({ day, ...sums }) => ({ name: ltr(day), ...sums }))),
    ...(months.length === 1 ? [] : months.map(({ month, ...sums }) => ({ name: linkTo(month), ...sums }))),
    { name: html`<strong>Sum</strong>`, ...total },
  ];
  const hint = isLong
    ? html`<p class="hint">Long periods are shown by month. To see all days, open a month or download the CSV.</p>`
    : null;
  return html`${hint}<section class="card flush tight" aria-label="Days">${table('Days, with totals at the end', COLUMNS, rows)}</section>`;
}

function lastDayOf(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
}

type Row = ReportSums & { name: Html };

const small = (text: Html | string) => html`<br><small>${text}</small>`;

/** Shows a sum with the number of its transfers, or a dash. */
function counted({ count, amount }: ReportSums['out']): Html {
  return count === 0 ? html`<span class="hint">–</span>` : html`${money(amount)}${small(many(count, 'transfer'))}`;
}

const COLUMNS: readonly Column<Row>[] = [
  ['Day (UTC)', ({ name }) => name],
  ['Requested', ({ requested, paid }) => html`${money(requested)}${small(many(paid, 'invoice'))}`, 'number'],
  [
    'Received',
    ({ received, tails, late }) =>
      html`${money(received)}${small(html`tails ${money(tails)}`)}${late.count === 0 ? null : small(html`late ${money(late.amount)} (${number(late.count)})`)}`,
    'number',
  ],
  ['Duplicate', ({ duplicate }) => counted(duplicate), 'number'],
  ['Unmatched', ({ unmatched }) => counted(unmatched), 'number'],
  ['Out', ({ out }) => counted(out), 'number'],
];

function renderBalance({ from, to, balance }: ReportView, isNow: boolean): Html {
  const { start, came, left, end, uncompared } = balance;
  const [is, it] = isNow
    ? ['This is the current balance of your addresses in the ledger', 'it']
    : ['This is the balance of your addresses in the ledger on that day', 'today’s balance'];
  const unknown =
    uncompared === 0
      ? null
      : html`<p class="notice">${many(uncompared, 'address has', 'addresses have')} never been compared with the chain, so the balance does not include money received before you added them. The service compares them automatically. To compare them now, use “Compare with the chain” on the <a href="/addresses">Addresses</a> page.</p>`;
  return html`<section class="card" aria-labelledby="balance"><h2 id="balance">Balance</h2>${facts([
    [`Before ${from}`, amountOf(start)],
    ['+ received', amountOf(came)],
    ['− sent', amountOf(left)],
    [isNow ? 'Now' : `At the end of ${to}`, html`<strong>${amountOf(end)}</strong>`],
  ])}<p class="hint">${is}. To compare ${it} with the chain, address by address, use “Compare with the chain” on the <a href="/addresses">Addresses</a> page.</p>${unknown}</section>`;
}

const amountOf = (amount: string) => html`${money(amount)} USDT`;

function renderFiles(visit: Visit, project: ListedProjectView, period: ReportPeriod): Html {
  const [csv, json] = [urlTo(visit, '/reports.csv', project, period), urlTo(visit, '/reports.json', project, period)];
  return html`<div class="pager"><a href="${csv}" download>CSV</a><a href="${json}" download>JSON</a></div>`;
}
