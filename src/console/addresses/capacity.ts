import type {
  AddressCapacityView,
  AmountCapacityView,
  CapacityOfAmountView,
  CapacityView,
} from '../../operator/subjects/capacity.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { field, live, ltr, number, table } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';

/** `capacity`: on the first page. `ofAmount`: of the amount that was asked for. */
export type ShownCapacity = {
  capacity: CapacityView | null;
  ofAmount: CapacityOfAmountView | null;
  amount: string | undefined;
};

/** How long the addresses last, by the amounts in use. */
export function renderCapacity(
  visit: Visit,
  project: ListedProjectView,
  { capacity, ofAmount, amount }: ShownCapacity,
): Html | null {
  if (capacity === null) return null;
  const { daysLeft, freeShare, activeAddresses, policy, maxSurcharge, low, amounts } = capacity;
  const rows = amounts.slice(0, MAX_AMOUNTS);
  const verdict =
    activeAddresses === 0
      ? html`<p class="notice">No address of the policy ${policy} is in use: no invoice can be created.</p>`
      : low
        ? html`<p class="notice">Payable amounts run out: add addresses.</p>`
        : null;
  const more =
    amounts.length > rows.length
      ? html`<p class="hint">The most urgent ${rows.length} of ${amounts.length} amounts that were asked for in 30 days.</p>`
      : null;
  return html`<section aria-labelledby="capacity"><h2 id="capacity" class="unseen">How long they last</h2>${live(
    'capacities',
    html`${verdict}<dl class="tiles"><div class="tile"><dt>The first amount is gone in</dt><dd>${daysLeft === null ? '–' : `${number(daysLeft)} days`}</dd><dd class="hint">at the rate of the last days</dd></div>
<div class="tile"><dt>Free of the scarcest amount</dt><dd>${freeShare === null ? '–' : `${percent(freeShare)} %`}</dd><dd class="hint">${freeShare === null ? 'nothing was asked for in 30 days' : 'of its payable amounts'}</dd></div>
<div class="tile"><dt>Addresses in use</dt><dd>${number(activeAddresses)}</dd><dd class="hint">${policy === 'exact' ? 'policy exact' : `policy ${policy}, of less than ${maxSurcharge} USDT`}</dd></div></dl>`,
  )}
<details class="card filters"${amount === undefined ? null : html` open`}><summary>By amount</summary>${rows.length === 0 ? null : table('Amounts in use, the most urgent first', AMOUNTS, rows)}${more}
<form action="/addresses" method="get">${hiddenProject(visit, project)}${field('amount', 'How long for one amount', amount, html` inputmode="decimal" dir="ltr"`)}<div class="actions"><button class="quiet">Show</button></div></form>${ofAmount === null ? null : renderOfAmount(ofAmount)}</details></section>`;
}

/** More would not be read; the command shows all. */
const MAX_AMOUNTS = 12;
const MAX_ADDRESSES = 25;

function renderOfAmount(found: CapacityOfAmountView): Html {
  const { amount, free, total, perDay7, daysLeft, addresses } = found;
  const days = daysLeft === null ? 'it was not used in 30 days' : `${number(Math.floor(daysLeft))} days are left`;
  const scarce = addresses.toSorted((a, b) => a.free - b.free || a.position - b.position).slice(0, MAX_ADDRESSES);
  const more =
    addresses.length > scarce.length
      ? html`<p class="hint">The scarcest ${scarce.length} of ${number(addresses.length)} addresses.</p>`
      : null;
  return html`<p>Of ${ltr(amount)} USDT ${number(free)} of ${number(total)} payable amounts are free; ${perDay7.toFixed(1)} are used a day, and ${days}.</p>${scarce.length === 0 ? null : table('What is free on each address', FREE, scarce)}${more}`;
}

const AMOUNTS = [
  ['USDT', ({ amount }: AmountCapacityView) => ltr(amount)],
  ['Free', ({ free, total }: AmountCapacityView) => `${number(free)} of ${number(total)}`, 'number'],
  ['A day', ({ perDay7 }: AmountCapacityView) => perDay7.toFixed(1), 'number'],
  [
    'Days left',
    ({ daysLeft, low }: AmountCapacityView) => {
      const shown = daysLeft === null ? '–' : number(Math.floor(daysLeft));
      return low ? html`<span class="badge" data-state="CONFIRMING">${shown}, low</span>` : shown;
    },
    'number',
  ],
] as const;

const FREE = [
  ['Position', ({ position }: AddressCapacityView) => number(position)],
  ['Address', ({ address }: AddressCapacityView) => html`<bdi class="mono">${address}</bdi>`],
  ['Free', ({ free, total }: AddressCapacityView) => `${number(free)} of ${number(total)}`, 'number'],
] as const;

/** Rounded down, so that what is not all free is never shown as 100. */
const percent = (share: number) => (Math.floor(share * 1000) / 10).toFixed(1);

function hiddenProject({ projects }: Visit, { projectId }: ListedProjectView): Html | null {
  return projects.length > 1 ? html`<input type="hidden" name="project" value="${projectId}">` : null;
}
