import { isAllowed } from '../../operator/authorize.ts';
import type { AddressChangeView } from '../../operator/subjects/address-changes.ts';
import type { BalanceListView, BalanceView } from '../../operator/subjects/balances.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { alert, live, ltr, money, number, outside, table, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { renderCapacity, type ShownCapacity } from './capacity.ts';

type Shown = ShownCapacity & {
  problem: Html | null;
  balances: BalanceListView;
  changes: readonly AddressChangeView[];
  said: Html | null;
  isFirst: boolean;
  /** Whether nodes of the network can be asked here. */
  canCompare: boolean;
  after: string | undefined;
};

/** How long will they last, and are they mine? */
export function addressesPage(visit: Visit, project: ListedProjectView, shown: Shown): Page {
  const { balances, changes, said, problem, isFirst } = shown;
  const next =
    balances.next === null
      ? null
      : html`<a class="button quiet" rel="next" href="${urlTo(visit, '/addresses', project, { after: String(balances.next) })}">Further addresses</a>`;
  const list =
    balances.data.length === 0
      ? renderNone(isFirst)
      : html`<section class="card flush" aria-label="Addresses">${table('Addresses, by position', columnsOf(visit, project, balances.data), balances.data)}</section>`;
  return {
    title: 'Addresses',
    about: project,
    ...(problem === null ? {} : { status: 400 }),
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}${problem === null ? null : alert(problem)}
${renderActions(visit, project)}${live('additions', html`${renderWaiting(changes)}`, { isSpoken: true })}
${renderCapacity(visit, project, shown)}
${live('address-list', list)}
<div class="pager">${next}${isFirst ? null : html`<a href="${urlTo(visit, '/addresses', project)}">First page</a>`}${renderCompare(visit, project, shown)}</div>
${isFirst ? renderEnded(changes) : null}`,
  };
}

function renderActions(visit: Visit, project: ListedProjectView): Html | null {
  if (!isAllowed(visit.actor, 'addAddresses')) return null;
  return html`<div class="actions"><a class="button" href="${urlTo(visit, '/addresses/add', project)}">Add addresses</a><a class="button quiet" href="${urlTo(visit, '/addresses/derive', project)}">Derive from an account key</a></div>`;
}

/** What is not in the pool yet stands above everything: somebody may want to put an address of theirs there. */
function renderWaiting(changes: readonly AddressChangeView[]): Html | null {
  const waiting = changes.filter(({ state }) => state === 'waiting');
  if (waiting.length === 0) return null;
  const items = waiting.map(({ changeId, addresses, policy, proposedBy, proposedAt, dueAt }) => {
    const [first = ''] = addresses;
    const more = addresses.length - 1;
    return html`<li data-rank="1"><span class="rank">Waits</span><div><p><bdi class="mono">${first}</bdi>${more === 0 ? null : html` and ${number(more)} more`}, policy ${policy}, proposed by ${outside(proposedBy.name, 100)} (${proposedBy.kind === 'admin' ? 'admin key' : 'console'}) at ${time(proposedAt)}. Added at ${time(dueAt)} UTC.</p><a class="button" href="/addresses/changes/${changeId}">Look at it</a></div></li>`;
  });
  return html`<section class="card" aria-labelledby="waiting"><h2 id="waiting">Not yet in use: did one of you propose it?</h2><ul class="concerns">${items}</ul></section>`;
}

function renderEnded(changes: readonly AddressChangeView[]): Html | null {
  const ended = changes.filter(({ state }) => state !== 'waiting');
  if (ended.length === 0) return null;
  return html`<details class="card"><summary>What waited before</summary>${table('Additions that waited before, the newest first', ENDED, ended)}</details>`;
}

const STATES: Record<AddressChangeView['state'], string> = {
  waiting: 'Waits',
  applied: 'Added',
  withdrawn: 'Withdrawn',
  failed: 'Failed',
};

const ENDED = [
  [
    'Proposed',
    ({ changeId, proposedAt }: AddressChangeView) =>
      html`<a href="/addresses/changes/${changeId}">${time(proposedAt)}</a>`,
  ],
  ['By', ({ proposedBy }: AddressChangeView) => outside(proposedBy.name, 60)],
  ['Addresses', ({ addresses }: AddressChangeView) => number(addresses.length), 'number'],
  ['Became', ({ state }: AddressChangeView) => STATES[state]],
  ['By', ({ endedBy }: AddressChangeView) => (endedBy === null ? '–' : outside(endedBy, 60))],
] as const;

function renderNone(isFirst: boolean): Html {
  if (!isFirst) return html`<section class="card empty"><h2>No further address</h2></section>`;
  return html`<section class="card empty"><h2>No address yet</h2><p>Payers send straight to addresses of your own wallet, and Quittance needs no key. Copy some out of the wallet and add them, or have them derived from the public key of an account. <a href="/invoices">Invoices</a> can be made from the first one on.</p></section>`;
}

type Column = readonly [name: string, cell: (row: BalanceView) => Html | string, kind?: 'number'];

function columnsOf(visit: Visit, project: ListedProjectView, rows: readonly BalanceView[]): readonly Column[] {
  const [mayRetire, mayActivate] = [
    isAllowed(visit.actor, 'retireAddresses'),
    isAllowed(visit.actor, 'activateAddresses'),
  ];
  const act = ({ address, status }: BalanceView) => {
    const to = (what: string, label: string) =>
      html`<a href="${urlTo(visit, `/addresses/${address}/${what}`, project)}" aria-label="${label} ${address}">${label}</a>`;
    if (status === 'active' && mayRetire) return to('retire', 'Retire');
    return (status === 'retired' || status === 'unfrozen') && mayActivate ? to('activate', 'Use again') : '–';
  };
  const columns = rows.some(({ isSigned }) => isSigned !== null) ? [...COLUMNS, SIGNED] : COLUMNS;
  return mayRetire ? [...columns, ['Do', act]] : columns;
}

const SIGNED: Column = [
  'Signed',
  ({ isSigned }) =>
    html`<span class="badge" data-state="${isSigned ? 'PAID' : 'CONFIRMING'}">${isSigned ? 'Signed' : 'Not signed'}</span>`,
];

const COLUMNS: readonly Column[] = [
  [
    'Address',
    ({ address, position, derivationIndex }) =>
      html`<a class="row" href="/find?q=${address}"><bdi class="mono">${address}</bdi></a> <small class="hint">${number(position)}${derivationIndex === null ? null : html`, derived #${derivationIndex + 1}`}</small>`,
  ],
  ['State', ({ status, policy }) => html`${renderStatus(status)} <small class="hint">${policy}</small>`],
  ['In the ledger now', ({ ledger }) => (ledger === null ? '–' : money(ledger)), 'number'],
  [
    'Last compared',
    ({ chain }) =>
      chain === null
        ? html`<span class="hint">never</span>`
        : html`<span class="badge" data-state="${chain.isSame ? 'PAID' : 'CONFIRMING'}">${chain.isSame ? 'Same' : 'Differed'}</span> ${chain.isSame ? money(chain.balance) : html`${money(chain.balance)} on the chain, ${money(chain.ledger)} in the ledger`} <br><small class="hint">at block ${ltr(number(chain.block))},</small> <small class="hint">${time(chain.checkedAt)}</small>`,
  ],
];

const LIFE: Record<BalanceView['status'], readonly [string, string]> = {
  active: ['In use', 'PAID'],
  retired: ['Retired', 'EXPIRED'],
  blocked: ['Retired for good', 'EXPIRED'],
  frozen: ['Frozen by Tether', 'CONFIRMING'],
  unfrozen: ['Not frozen any more', 'EXPIRED'],
};

function renderStatus(status: BalanceView['status']): Html {
  const [name, look] = LIFE[status];
  return html`<span class="badge" data-state="${look}">${name}</span>`;
}

/** One click: it asks nodes, and changes nothing but what was compared when. */
function renderCompare(visit: Visit, project: ListedProjectView, { balances, canCompare, after }: Shown): Html | null {
  if (!canCompare || balances.data.length === 0 || !isAllowed(visit.actor, 'compareBalances')) return null;
  const path = `/addresses/compare/${project.projectId}/${after ?? '0'}`;
  return oneClick(visit, path, 'Compare these with the chain');
}
