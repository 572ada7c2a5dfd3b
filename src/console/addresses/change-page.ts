import { isAllowed } from '../../operator/authorize.ts';
import type { AddressChangeView } from '../../operator/subjects/address-changes.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { facts, number, outside, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';

const STATES: Record<AddressChangeView['state'], readonly [name: string, look: string]> = {
  waiting: ['Waits', 'CONFIRMING'],
  applied: ['Added', 'PAID'],
  withdrawn: ['Withdrawn', 'EXPIRED'],
  failed: ['Failed', 'EXPIRED'],
};

/** An addition that waits, or has ended. `refusal`: why the visitor may not confirm it. */
export function changePage(
  visit: Visit,
  project: ListedProjectView,
  { change, refusal, said }: { change: AddressChangeView; refusal: string | null; said: Html | null },
): Page {
  const [name, look] = STATES[change.state];
  return {
    title: 'Addresses that wait',
    about: project,
    beside: html`<span class="badge" data-state="${look}">${name}</span>`,
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
<section class="card" aria-labelledby="facts"><h2 id="facts">Who wants this</h2>${renderFacts(change)}</section>
<section class="card" aria-labelledby="which"><h2 id="which">${number(change.addresses.length)} ${change.addresses.length === 1 ? 'address' : 'addresses'}</h2>${renderChanged(change)}</section>
${change.state === 'waiting' ? renderActions(visit, change, refusal) : null}
<p><a href="${urlTo(visit, '/addresses', project)}">Addresses</a></p>`,
  };
}

function renderFacts(change: AddressChangeView): Html {
  const { proposedBy, origin, proposedAt, dueAt, state, policy, endedAt, endedBy, reason } = change;
  return facts([
    ['Proposed by', html`${outside(proposedBy.name, 100)} (${proposedBy.kind === 'admin' ? 'admin key' : 'console'})`],
    ['From', origin === null ? null : outside(origin, 60)],
    ['At', html`${time(proposedAt)} UTC`],
    ['Policy', policy],
    ['Added by itself at', state === 'waiting' ? html`${time(dueAt)} UTC, unless somebody withdraws it` : null],
    ['Ended', endedAt === null ? null : html`${time(endedAt)} UTC, by ${outside(endedBy ?? '', 100)}`],
    ['Why not', reason === null ? null : outside(reason, 1000)],
  ]);
}

/** Each whole, because somebody compares them with a wallet. */
export function renderChanged({ addresses, derivationIndexes }: AddressChangeView): Html {
  const items = addresses.map((address, position) => {
    const index = derivationIndexes?.[position];
    return html`<li><bdi class="mono">${address}</bdi>${index === undefined ? null : html` <small class="hint">#${index + 1} of an account key</small>`}</li>`;
  });
  return html`<ul>${items}</ul>`;
}

function renderActions(visit: Visit, { changeId }: AddressChangeView, refusal: string | null): Html {
  const mayConfirm = refusal === null && isAllowed(visit.actor, 'confirmAddressChange');
  const confirm = mayConfirm
    ? html`<a class="button" href="/addresses/changes/${changeId}/confirm">They are ours: add them now</a>`
    : null;
  const withdraw = isAllowed(visit.actor, 'withdrawAddressChange')
    ? html`<a class="button quiet" href="/addresses/changes/${changeId}/withdraw">Withdraw</a>`
    : null;
  return html`<section class="card form" aria-labelledby="do"><h2 id="do">Is each of them in your wallet?</h2><p>If you do not know them, withdraw this and find out who proposed it: a session or an admin key may be in other hands.</p>
<div class="actions">${confirm}${withdraw}</div>${refusal === null ? null : html`<p class="hint">You cannot confirm it: <bdi>${refusal}</bdi>.</p>`}</section>`;
}
