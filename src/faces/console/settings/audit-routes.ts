import { DONE, describeRecorded } from '../../../core/domain/recorded-action.ts';
import { ACTIONS, type Rule } from '../../operator/actions.ts';
import {
  type AuditEntryView,
  type AuditListView,
  exportAuditOperation,
  listAudit,
  verifyAudit,
} from '../../operator/subjects/audit.ts';
import { type Html, html } from '../../web/html.ts';
import { describeMistake } from '../page/layout.ts';
import {
  alert,
  type Column,
  copyButton,
  field,
  ltr,
  number,
  outside,
  pager,
  select,
  table,
  time,
} from '../page/pieces.ts';
import { type ConsoleDeps, performFor, type Routes, sendRows } from '../page/routes.ts';
import { type Fields, urlTo } from '../page/visit.ts';

/** Adds the pages for the audit log, its verification, and its export. */
export function addAuditRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/settings/audit', 'listAudit', ['project', 'before', ...AUDIT_FILTERS], async ({ visit, query }) => {
    const { project: _, before, ...filters } = query;
    let [problem, found]: [Html | null, AuditListView] = [null, { data: [], next: null }];
    try {
      found = await performFor(deps, visit, listAudit, { ...filters, before });
    } catch (error) {
      problem = describeMistake(error, { action: 'Action', subject: 'On', by: 'By' });
    }
    const { data, next } = found;
    const isFiltered = Object.keys(filters).length > 0;
    const urlOf = (path: string, query: Fields = {}) => urlTo(visit, path, null, { ...filters, ...query });
    return {
      title: 'Audit log',
      problem,
      beside: html`<a class="button quiet" href="/settings/audit/verification">Verify the log</a>`,
      main: html`
<section class="card filters" aria-label="Filters"><form action="/settings/audit">${select('action', 'Action', CHOICES, filters.action)}${field('subject', 'On', filters.subject, html` maxlength="200"`)}${field('by', 'By', filters.by, html` maxlength="200"`)}<div class="actions"><button>Filter</button>${isFiltered ? html`<a href="/settings/audit">All</a>` : null}</div></form></section>
${
  data.length === 0
    ? html`<section class="card empty"><h2>No matching entries</h2><p>Every change that a person makes is recorded here, whether in the console, with a command or with an admin key.</p></section>`
    : html`<section class="card flush" aria-label="Entries">${table('Actions by people, newest first', COLUMNS, data)}</section>`
}
${pager(
  {
    older: next === null ? null : urlOf('/settings/audit', { before: String(next) }),
    text: 'Older entries',
    newest: before === undefined ? null : urlOf('/settings/audit'),
  },
  html`<a href="${urlOf('/settings/audit.csv')}">Download as CSV</a><a href="${urlOf('/settings/audit.json')}">as JSON</a>`,
)}`,
    };
  });
  for (const format of ['csv', 'json'])
    get(`/settings/audit.${format}`, 'exportAudit', ['project', ...AUDIT_FILTERS], async (asked) => {
      const { project: _, ...filters } = asked.query;
      const given = { ...filters, format, output: undefined } as never;
      return sendRows(asked, `audit.${format}`, await performFor(deps, asked.visit, exportAuditOperation, given));
    });
  get('/settings/audit/verification', 'verifyAudit', ['project', 'head'], async ({ visit, query }) => {
    const { good, entries, head, problem } = await performFor(deps, visit, verifyAudit, query);
    const newest = head === null ? null : `${head.seq}:${head.hash}`;
    return {
      title: 'Verify the audit log',
      beside: html`<a href="/settings/audit">Audit log</a>`,
      main: html`${
        good
          ? html`<p class="good" role="status">The log is intact: ${number(entries)} ${entries === 1 ? 'entry' : 'entries'}${query.head !== undefined ? ', and it has not been rewritten since you kept that head' : null}.</p>`
          : alert(
              html`<p>The log was changed. ${outside(problem?.message ?? '', 300)}.</p><p>The ${number(entries)} entries before that are unchanged.</p>`,
            )
      }
<section class="card form"><p>Each entry contains the hash of the previous entry. The owner of the tables could rewrite the whole log; only a head that you keep elsewhere would reveal that.${newest === null ? null : html` This is the newest head:`}</p>
${newest === null ? null : html`<pre>${ltr(newest)}</pre><div class="actions">${copyButton(newest, 'Copy the head')}</div>`}
<form action="/settings/audit/verification"><div>${field('head', 'Head that you kept', undefined, html` maxlength="100" spellcheck="false" required`, 'Format: number, colon, hash.')}</div><div class="actions"><button>Compare</button></div></form></section>`,
    };
  });
}

const AUDIT_FILTERS = ['action', 'subject', 'by'] as const;
const RULES: readonly Rule[] = Object.values(ACTIONS);
const RECORDED = new Set([...Object.keys(DONE), ...RULES.flatMap(({ records = [] }) => records)]);
const CHOICES = [['', 'any'], ...[...RECORDED].sort().map((action) => [action, action] as const)] as const;

const COLUMNS: readonly Column<AuditEntryView>[] = [
  ['No.', ({ seq }) => number(seq)],
  ['When', ({ at }) => time(at)],
  [
    'Who',
    ({ actor: { kind, name }, origin }) =>
      html`${outside(name, 100)} <small class="hint">${KINDS[kind] ?? kind}${origin === null ? null : html`, ${outside(origin)}`}</small>`,
  ],
  [
    'Action',
    ({ action, subject, sound }) =>
      html`${sound ? null : html`<strong>Changed after it was sealed: this action may be forged.</strong><br>`}${describeRecorded(action)} <small class="hint">${action}</small><br>${linkTo(subject)}`,
  ],
  ['Detail', renderDetail],
];

const KINDS: Readonly<Record<string, string>> = {
  cli: 'command',
  console: 'console',
  admin: 'admin key',
  service: 'the service',
};

const PLACES: readonly (readonly [RegExp, string])[] = [
  [/^inv_/, '/invoices/'],
  [/^trf_/, '/unmatched/'],
  [/^usr_/, '/settings/people/'],
];

function linkTo(subject: string): Html {
  const place = PLACES.find(([begins]) => begins.test(subject))?.[1];
  return place === undefined
    ? outside(subject, 200)
    : html`<a href="${place}${encodeURIComponent(subject)}">${outside(subject, 200)}</a>`;
}

/** Shows an entry's parts in words, and its hash. */
function renderDetail({ detail, projectId, requestId, hash }: AuditEntryView): Html {
  const parts = Object.entries(detail as object).filter(([, value]) => value !== null && value !== '');
  const shown = parts.map(
    ([name, value]) => html`${outside(spaced(name), 60)}: ${outside(textOf(value), MAX_PART)}<br>`,
  );
  return html`${shown}<details><summary>More<span class="unseen"> of this entry</span></summary><dl><dt>Project</dt><dd>${projectId === null ? 'none' : outside(projectId)}</dd><dt>Request</dt><dd>${requestId === null ? 'none' : outside(requestId)}</dd><dt>Hash</dt><dd class="mono">${outside(hash)}</dd></dl></details>`;
}

const MAX_PART = 200;

/** `endedSessions` → `ended sessions`. */
const spaced = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
    ? value.join(', ')
    : JSON.stringify(value);
}
