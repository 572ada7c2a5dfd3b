import type { ComparedBalancesView } from '../../operator/subjects/balances.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { ltr, money, number, outside, table } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';

type Compared = ComparedBalancesView['data'][number];

/** What the chain says of a page of addresses now. */
export function comparePage(
  visit: Visit,
  project: ListedProjectView,
  { view, after }: { view: ComparedBalancesView; after: string | undefined },
): Page {
  const { data, skipped, node } = view;
  const differ = data.filter(({ status }) => status === 'differs').length;
  const early = data.filter(({ status }) => status === 'too-early').length;
  return {
    title: 'Compared with the chain',
    about: project,
    main: html`${renderVerdict({ same: data.length - differ - early, differ, early })}
${data.length === 0 ? null : html`<section class="card flush" aria-label="Addresses">${table('What each address holds', COLUMNS, data)}</section>`}
${node === null ? null : html`<p class="hint">As ${outside(node, 100)} says.</p>`}${skipped.length === 0 ? null : html`<p class="hint">${number(skipped.length)} were compared less than a minute ago, and were not asked about again.</p>`}
<p><a class="button" href="${urlTo(visit, '/addresses', project, { after })}">Addresses</a></p>`,
  };
}

function renderVerdict({ same, differ, early }: { same: number; differ: number; early: number }): Html {
  if (differ > 0) {
    return html`<p class="notice" role="alert"><strong>${number(differ)} differ.</strong> The alarm balance-differs has the blocks to look at: see <a href="/chain">Chain</a>.</p>`;
  }
  const left = early === 0 ? null : html` Of ${number(early)} nothing can be said yet: try again in half a minute.`;
  return html`<p class="good" role="status">${same === 0 ? null : html`${number(same)} hold what the ledger says.`}${left}</p>`;
}

const COLUMNS = [
  ['Address', ({ address }: Compared) => html`<bdi class="mono">${address}</bdi>`],
  [
    'Is',
    ({ status }: Compared) => {
      const [name, look] = LOOKS[status];
      return html`<span class="badge" data-state="${look}">${name}</span>`;
    },
  ],
  [
    'In the ledger',
    (row: Compared) =>
      row.status === 'differs' ? money(row.ledger) : row.status === 'good' ? money(row.balance) : '–',
    'number',
  ],
  [
    'On the chain',
    (row: Compared) => (row.status === 'differs' ? money(row.chain) : row.status === 'good' ? money(row.balance) : '–'),
    'number',
  ],
  [
    'Why',
    (row: Compared) =>
      row.status === 'too-early'
        ? outside(row.reason, 200)
        : row.status === 'differs'
          ? html`blocks ${ltr(number(row.from))} to ${ltr(number(row.to))}`
          : '–',
  ],
] as const;

const LOOKS: Record<Compared['status'], readonly [string, string]> = {
  good: ['Same', 'PAID'],
  differs: ['Differs', 'CONFIRMING'],
  'too-early': ['Not yet', 'EXPIRED'],
};
