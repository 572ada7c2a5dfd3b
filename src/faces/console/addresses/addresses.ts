import { AppError, conflict } from '../../../core/domain/errors.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { keepNewest } from '../../../core/runtime/keep-newest.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { type AddressChangeView, listAddressChanges } from '../../operator/subjects/address-changes.ts';
import {
  type BalanceView,
  type ComparedBalancesView,
  compareBalances,
  listBalances,
} from '../../operator/subjects/balances.ts';
import {
  type AddressCapacityView,
  type AmountCapacityView,
  type CapacityOfAmountView,
  type CapacityView,
  showCapacity,
  showCapacityOfAmount,
} from '../../operator/subjects/capacity.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import { describeMistake, type Page } from '../page/layout.ts';
import {
  type Badge,
  badge,
  type Column,
  field,
  keepProject,
  live,
  ltr,
  money,
  number,
  outside,
  pager,
  rowLink,
  table,
  tile,
  time,
} from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { needProject, pathPart, readPostedForm, urlTo, type Visit } from '../page/visit.ts';
import { addAddingForm, addDerivingForms } from './adding.ts';
import { addChangeRoutes, addSwitchingForms } from './changes.ts';

/** Adds the address list with its capacity, the comparison with the chain, and the forms that change addresses. */
export function addAddressRoutes(routes: Routes, deps: ConsoleDeps): void {
  const measure = createMeasure(deps);
  // Answers two questions: how long will the addresses last, and are they mine?
  routes.get('/addresses', 'listBalances', ['project', 'after', 'amount', 'done'], async ({ visit, query }) => {
    const { after, amount, done } = query;
    const project = needProject(visit, query.project);
    const { projectId, network } = project;
    const balances = await performFor(deps, visit, listBalances, { projectId, after });
    const capacity = after === undefined ? await measure(visit, project) : null;
    const { data: changes } = await performFor(deps, visit, listAddressChanges, { projectId });
    let [ofAmount, problem]: [CapacityOfAmountView | null, Html | null] = [null, null];
    try {
      if (amount !== undefined)
        ofAmount = await performFor(deps, visit, showCapacityOfAmount, { projectId, amount: amount.trim() });
    } catch (error) {
      problem = describeMistake(error);
    }
    const canCompare = deps.networks.includes(network) && balances.data.length > 0;
    const isFirst = after === undefined;
    const urlOf = (query: { after?: string }) => urlTo(visit, '/addresses', project, query);
    const older = balances.next === null ? null : urlOf({ after: String(balances.next) });
    const pages = { older, text: 'More addresses', newest: isFirst ? null : urlOf({}), newestText: 'First page' };
    const list =
      balances.data.length === 0
        ? renderNone(isFirst)
        : html`<section class="card flush" aria-label="Addresses">${table('Addresses, by position', columnsOf(visit, project, balances.data), balances.data)}</section>`;
    return {
      title: 'Addresses',
      about: project,
      said: SAID[done ?? ''] ?? null,
      problem,
      main: html`
${renderActions(visit, project)}${live('additions', html`${renderWaiting(changes)}`, { isSpoken: true })}
${renderCapacity(visit, project, { capacity, ofAmount, amount })}
${live('address-list', list)}
${pager(pages, canCompare ? renderCompare(visit, project, after) : html``)}
${isFirst ? renderEnded(changes) : null}`,
    };
  });
  let isComparing = false;
  routes.post('/addresses/compare/:projectId/:after', 'compareBalances', async (asked) => {
    // A comparison queries nodes for up to half a minute, and their requests are limited.
    if (isComparing) throw conflict`addresses are already being compared with the chain: try again in a minute`;
    isComparing = true;
    try {
      return await compare(deps, asked);
    } finally {
      isComparing = false;
    }
  });
  addAddingForm(routes, deps);
  addDerivingForms(routes, deps);
  addChangeRoutes(routes, deps);
  addSwitchingForms(routes, deps);
}

const SAID: Readonly<Record<string, Html>> = {
  retired: html`The address is retired: new invoices no longer use it.`,
  active: html`The address is in use again.`,
};

const MEASURED_MS = 60_000;
const MAX_MEASURED = 1000;

/**
 * Measuring reads up to 100,000 invoices. The forecast in days doesn't change within a minute, unless the set of addresses in use changes.
 */
function createMeasure(deps: ConsoleDeps) {
  const measured = new Map<string, { at: UnixMs; view: CapacityView }>();
  return async (visit: Visit, { projectId, policy, activeAddresses }: ListedProjectView): Promise<CapacityView> => {
    const key = [projectId, policy, activeAddresses[policy]].join(' ');
    const at = deps.now();
    const known = measured.get(key);
    if (known !== undefined && at >= known.at && at - known.at < MEASURED_MS) return known.view;
    const view = await performFor(deps, visit, showCapacity, { projectId });
    keepNewest(measured, key, { at, view }, MAX_MEASURED);
    return view;
  };
}

/** Compares a page of addresses with the chain, and shows the result. */
async function compare(deps: ConsoleDeps, { visit, request, tokens }: Asked): Promise<Page> {
  const after = pathPart(request, 'after');
  const project = needProject(visit, pathPart(request, 'projectId'));
  const taken = tokens.take(visit.path, readPostedForm(request, ['token']).token);
  if (taken.kind === 'refused') throw new AppError('CONFLICT', taken.reason);
  const { projectId } = project;
  const { data, skipped, node } = await performFor(deps, visit, compareBalances, { projectId, after });
  const differ = data.filter(({ status }) => status === 'differs').length;
  const early = data.filter(({ status }) => status === 'too-early').length;
  return {
    title: 'Compared with the chain',
    about: project,
    main: html`${renderVerdict({ same: data.length - differ - early, differ, early })}
${data.length === 0 ? null : html`<section class="card flush" aria-label="Addresses">${table('Balance of each address', COMPARED, data)}</section>`}
${node === null ? null : html`<p class="hint">Balances according to ${outside(node, 100)}.</p>`}${skipped.length === 0 ? null : html`<p class="hint">${number(skipped.length)} were compared less than a minute ago, so they were not checked again.</p>`}
<p><a class="button" href="${urlTo(visit, '/addresses', project, { after })}">Addresses</a></p>`,
  };
}

function renderActions(visit: Visit, project: ListedProjectView): Html | null {
  if (!isAllowed(visit.actor, 'addAddresses')) return null;
  return html`<div class="actions"><a class="button" href="${urlTo(visit, '/addresses/add', project)}">Add addresses</a><a class="button quiet" href="${urlTo(visit, '/addresses/derive', project)}">Derive from an account key</a></div>`;
}

/** Pending addresses come first, because an attacker may be trying to add one of their own. */
function renderWaiting(changes: readonly AddressChangeView[]): Html | null {
  const waiting = changes.filter(({ state }) => state === 'waiting');
  if (waiting.length === 0) return null;
  const items = waiting.map(({ changeId, addresses, policy, proposedBy, proposedAt, dueAt }) => {
    const [first = ''] = addresses;
    const more = addresses.length - 1;
    return html`<li data-rank="1"><span class="rank">Pending</span><div><p><bdi class="mono">${first}</bdi>${more === 0 ? null : html` and ${number(more)} more`}, policy ${policy}, proposed by ${outside(proposedBy.name, 100)} (${proposedBy.kind === 'admin' ? 'admin key' : 'console'}) at ${time(proposedAt)}. Added at ${time(dueAt)} UTC.</p><a class="button" href="/addresses/changes/${changeId}">Details</a></div></li>`;
  });
  return html`<section class="card" aria-labelledby="waiting"><h2 id="waiting">These addresses are not in use yet. Did one of you propose them?</h2><ul class="concerns">${items}</ul></section>`;
}

function renderEnded(changes: readonly AddressChangeView[]): Html | null {
  const ended = changes.filter(({ state }) => state !== 'waiting');
  if (ended.length === 0) return null;
  return html`<details class="card"><summary>Earlier additions</summary>${table('Earlier additions, newest first', ENDED, ended)}</details>`;
}

const STATES: Record<AddressChangeView['state'], string> = {
  waiting: 'Waiting',
  applied: 'Added',
  withdrawn: 'Withdrawn',
  failed: 'Failed',
};

const ENDED: readonly Column<AddressChangeView>[] = [
  ['Proposed', ({ changeId, proposedAt }) => html`<a href="/addresses/changes/${changeId}">${time(proposedAt)}</a>`],
  ['By', ({ proposedBy }) => outside(proposedBy.name, 60)],
  ['Addresses', ({ addresses }) => number(addresses.length), 'number'],
  ['Result', ({ state }) => STATES[state]],
  ['By', ({ endedBy }) => (endedBy === null ? '–' : outside(endedBy, 60))],
];

function renderNone(isFirst: boolean): Html {
  if (!isFirst) return html`<section class="card empty"><h2>No more addresses</h2></section>`;
  return html`<section class="card empty"><h2>No address yet</h2><p>Payers send money straight to your own wallet, and Quittance never needs a private key. Copy addresses from your wallet and add them, or derive them from an account's public key. You need one address to create <a href="/invoices">invoices</a>.</p></section>`;
}

function columnsOf(
  visit: Visit,
  project: ListedProjectView,
  rows: readonly BalanceView[],
): readonly Column<BalanceView>[] {
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
  return mayRetire ? [...columns, ['Actions', act]] : columns;
}

const SIGNED: Column<BalanceView> = [
  'Signed',
  ({ isSigned }) => (isSigned ? badge('Signed', 'PAID') : badge('Not signed', 'CONFIRMING')),
];

const COLUMNS: readonly Column<BalanceView>[] = [
  [
    'Address',
    ({ address, position, derivationIndex }) =>
      html`${rowLink(`/find?q=${address}`, html`<bdi class="mono">${address}</bdi>`)} <small class="hint">${number(position)}${derivationIndex === null ? null : html`, derived #${derivationIndex + 1}`}</small>`,
  ],
  ['State', ({ status, policy }) => html`${badge(...LIFE[status])} <small class="hint">${policy}</small>`],
  ['Ledger balance', ({ ledger }) => (ledger === null ? '–' : money(ledger)), 'number'],
  [
    'Last compared',
    ({ chain }) =>
      chain === null
        ? html`<span class="hint">never</span>`
        : html`${chain.isSame ? badge('Same', 'PAID') : badge('Different', 'CONFIRMING')} ${chain.isSame ? money(chain.balance) : html`${money(chain.balance)} on the chain, ${money(chain.ledger)} in the ledger`} <br><small class="hint">at block ${ltr(number(chain.block))},</small> <small class="hint">${time(chain.checkedAt)}</small>`,
  ],
];

const LIFE: Record<BalanceView['status'], Badge> = {
  active: ['In use', 'PAID'],
  retired: ['Retired', 'EXPIRED'],
  blocked: ['Retired permanently', 'EXPIRED'],
  frozen: ['Frozen by Tether', 'CONFIRMING'],
  unfrozen: ['No longer frozen', 'EXPIRED'],
};

/** One click is enough, because this only queries nodes and replaces the recorded comparison. */
function renderCompare(visit: Visit, { projectId }: ListedProjectView, after = '0'): Html {
  if (!isAllowed(visit.actor, 'compareBalances')) return html``;
  return oneClick(visit, `/addresses/compare/${projectId}/${after}`, 'Compare with the chain');
}

/** `capacity` is only on the first page. `ofAmount` is the capacity for the requested amount. */
type ShownCapacity = {
  capacity: CapacityView | null;
  ofAmount: CapacityOfAmountView | null;
  amount: string | undefined;
};

/** Shows how long the addresses will last for the amounts in use. */
function renderCapacity(visit: Visit, project: ListedProjectView, { capacity, ofAmount, amount }: ShownCapacity) {
  if (capacity === null) return null;
  const { daysLeft, freeShare, activeAddresses, policy, maxSurcharge, low, amounts } = capacity;
  const rows = amounts.slice(0, MAX_AMOUNTS);
  const verdict =
    activeAddresses === 0
      ? html`<p class="notice">No address with the policy ${policy} is in use, so no invoice can be created.</p>`
      : low
        ? html`<p class="notice">Payable amounts are running out: add addresses.</p>`
        : null;
  const more =
    amounts.length > rows.length
      ? html`<p class="hint">This table shows the ${rows.length} most urgent of ${amounts.length} amounts requested in the last 30 days.</p>`
      : null;
  return html`<section aria-labelledby="capacity"><h2 id="capacity" class="unseen">Capacity</h2>${live(
    'capacities',
    html`${verdict}<dl class="tiles">${tile('First amount runs out in', daysLeft === null ? '–' : `${number(daysLeft)} days`, 'at the current rate')}
${tile('Free for the scarcest amount', freeShare === null ? '–' : `${percent(freeShare)} %`, freeShare === null ? 'no invoices in 30 days' : 'of its payable amounts')}
${tile('Addresses in use', number(activeAddresses), policy === 'exact' ? 'policy exact' : `policy ${policy}, surcharge below ${maxSurcharge} USDT`)}</dl>`,
  )}
<details class="card filters"${amount === undefined ? null : html` open`}><summary>By amount</summary>${rows.length === 0 ? null : table('Amounts in use, most urgent first', AMOUNTS, rows)}${more}
<form action="/addresses" method="get">${keepProject(visit, project)}${field('amount', 'Check one amount', amount, html` inputmode="decimal" dir="ltr"`)}<div class="actions"><button class="quiet">Show</button></div></form>${ofAmount === null ? null : renderOfAmount(ofAmount)}</details></section>`;
}

/** No one reads more addresses than this on a page. The command shows all of them. */
const MAX_AMOUNTS = 12;
const MAX_ADDRESSES = 25;

function renderOfAmount(found: CapacityOfAmountView): Html {
  const { amount, free, total, perDay7, daysLeft, addresses } = found;
  const days =
    daysLeft === null
      ? 'no invoice used this amount in the last 30 days'
      : `${number(Math.floor(daysLeft))} days are left`;
  const scarce = addresses.toSorted((a, b) => a.free - b.free || a.position - b.position).slice(0, MAX_ADDRESSES);
  const more =
    addresses.length > scarce.length
      ? html`<p class="hint">This table shows the ${scarce.length} addresses (of ${number(addresses.length)}) with the fewest free amounts.</p>`
      : null;
  return html`<p>For ${ltr(amount)} USDT, ${number(free)} of ${number(total)} payable amounts are free; ${perDay7.toFixed(1)} are used per day, and ${days}.</p>${scarce.length === 0 ? null : table('Free amounts by address', FREE, scarce)}${more}`;
}

const AMOUNTS: readonly Column<AmountCapacityView>[] = [
  ['USDT', ({ amount }) => ltr(amount)],
  ['Free', ({ free, total }) => `${number(free)} of ${number(total)}`, 'number'],
  ['A day', ({ perDay7 }) => perDay7.toFixed(1), 'number'],
  [
    'Days left',
    ({ daysLeft, low }) => {
      const shown = daysLeft === null ? '–' : number(Math.floor(daysLeft));
      return low ? badge(`${shown}, low`, 'CONFIRMING') : shown;
    },
    'number',
  ],
];

const FREE: readonly Column<AddressCapacityView>[] = [
  ['Position', ({ position }) => number(position)],
  ['Address', ({ address }) => html`<bdi class="mono">${address}</bdi>`],
  ['Free', ({ free, total }) => `${number(free)} of ${number(total)}`, 'number'],
];

/** Rounds down so that 100 is shown only if everything is free. */
const percent = (share: number) => (Math.floor(share * 1000) / 10).toFixed(1);

type Compared = ComparedBalancesView['data'][number];

function renderVerdict({ same, differ, early }: { same: number; differ: number; early: number }): Html {
  if (differ > 0) {
    return html`<p class="notice" role="alert"><strong>${number(differ)} differ.</strong> The balance-differs alarm shows the blocks to check: see <a href="/chain">Chain</a>.</p>`;
  }
  const left =
    early === 0 ? null : html` ${number(early)} of the addresses cannot be compared yet: try again in half a minute.`;
  return html`<p class="good" role="status">${same === 0 ? null : html`${number(same)} match the ledger.`}${left}</p>`;
}

const COMPARED: readonly Column<Compared>[] = [
  ['Address', ({ address }) => html`<bdi class="mono">${address}</bdi>`],
  ['Result', ({ status }) => badge(...LOOKS[status])],
  [
    'In the ledger',
    (row) => (row.status === 'differs' ? money(row.ledger) : row.status === 'good' ? money(row.balance) : '–'),
    'number',
  ],
  [
    'On the chain',
    (row) => (row.status === 'differs' ? money(row.chain) : row.status === 'good' ? money(row.balance) : '–'),
    'number',
  ],
  [
    'Why',
    (row) =>
      row.status === 'too-early'
        ? outside(row.reason, 200)
        : row.status === 'differs'
          ? html`blocks ${ltr(number(row.from))} to ${ltr(number(row.to))}`
          : '–',
  ],
];

const LOOKS: Record<Compared['status'], Badge> = {
  good: ['Same', 'PAID'],
  differs: ['Differs', 'CONFIRMING'],
  'too-early': ['Not yet', 'EXPIRED'],
};
