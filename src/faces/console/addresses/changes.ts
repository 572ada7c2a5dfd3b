import { AppError } from '../../../core/domain/errors.ts';
import { isAllowed } from '../../operator/authorize.ts';
import {
  type AddressChangeView,
  confirmAddressChange,
  showAddressChange,
  withdrawAddressChange,
} from '../../operator/subjects/address-changes.ts';
import {
  type AddressView,
  activateAddresses,
  retireAddresses,
  type SwitchedAddressesView,
  showAddress,
} from '../../operator/subjects/addresses.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation, line } from '../forms/form.ts';
import { type Badge, badge, facts, many, number, outside, time } from '../page/pieces.ts';
import { type Asked, type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { type Fields, needProject, noSuch, pathPart, urlTo, type Visit } from '../page/visit.ts';
import { endingField, readEnding } from './adding.ts';

type Subject = { change: AddressChangeView; refusal: string | null; project: ListedProjectView };

/** Adds the pages for showing, confirming and withdrawing a pending addition. */
export function addChangeRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/addresses/changes/:changeId', 'showAddressChange', ['done'], async (asked) => {
    const { visit, query } = asked;
    const { project, change, refusal } = await find(deps, asked);
    return {
      title: 'Pending addresses',
      about: project,
      beside: badge(...STATES[change.state]),
      said: SAID[query.done ?? ''] ?? null,
      main: html`
<section class="card" aria-labelledby="facts"><h2 id="facts">Proposal</h2>${renderFacts(change)}</section>
<section class="card" aria-labelledby="which"><h2 id="which">${many(change.addresses.length, 'address', 'addresses')}</h2>${renderChanged(change)}</section>
${change.state === 'waiting' ? renderActions(visit, change, refusal) : null}
<p><a href="${urlTo(visit, '/addresses', project)}">Addresses</a></p>`,
    };
  });
  addForm(routes, deps, {
    ...byOperation(deps, confirmAddressChange, ({ ending }, { change, refusal }: Subject) => {
      if (refusal !== null) throw new AppError('CONFLICT', `nothing was added: ${refusal}`);
      readEnding('ending', ending, change.addresses[0]);
      return { changeId: change.changeId };
    }),
    path: '/addresses/changes/:changeId/confirm',
    find: (asked) => find(deps, asked),
    show: (_, { change, project }) => ({
      ...{ title: 'Confirm addresses', about: project, button: 'These are our addresses: add them now' },
      consequence: html`<p>${countOf(change)} added immediately with the policy ${change.policy}, and payers will see them. Money sent to an address that is not yours is lost.</p>${renderChanged(change)}`,
      fields: [endingOf('the first address')],
      back: `/addresses/changes/${change.changeId}`,
    }),
    done: (_, { change }) => ({ goTo: `/addresses/changes/${change.changeId}?done=confirmed` }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, withdrawAddressChange, (_, { change }: Subject) => ({ changeId: change.changeId })),
    path: '/addresses/changes/:changeId/withdraw',
    find: (asked) => find(deps, asked),
    show: (_, { change, project }) => ({
      ...{ title: 'Withdraw addresses', about: project, button: 'Withdraw' },
      consequence: html`<p>${countOf(change)} not added. To add them later, propose them again.</p>${renderChanged(change)}`,
      back: `/addresses/changes/${change.changeId}`,
    }),
    done: (_, { change }) => ({ goTo: `/addresses/changes/${change.changeId}?done=withdrawn` }),
  });
}

const SAID: Readonly<Record<string, string>> = {
  confirmed: 'The addresses were added and are now in use.',
  withdrawn: 'Withdrawn: no addresses were added.',
};

const countOf = ({ addresses }: AddressChangeView) => many(addresses.length, 'address is', 'addresses are');

/** Finds a change that the visitor may see. Hidden projects are reported as not found. Throws `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked): Promise<Subject> {
  const changeId = pathPart(request, 'changeId');
  const unknown = noSuch('change', changeId);
  const { view: change, refusal } = await performFor(deps, visit, showAddressChange, { changeId }).catch(
    (error: unknown) => {
      throw error instanceof AppError && error.code !== 'DATABASE_UNAVAILABLE' ? unknown : error;
    },
  );
  return { change, refusal, project: needProject(visit, change.projectId) };
}

const STATES: Record<AddressChangeView['state'], Badge> = {
  waiting: ['Waiting', 'CONFIRMING'],
  applied: ['Added', 'PAID'],
  withdrawn: ['Withdrawn', 'EXPIRED'],
  failed: ['Failed', 'EXPIRED'],
};

function renderFacts(change: AddressChangeView): Html {
  const { proposedBy, origin, proposedAt, dueAt, state, policy, endedAt, endedBy, reason } = change;
  return facts([
    ['Proposed by', html`${outside(proposedBy.name, 100)} (${proposedBy.kind === 'admin' ? 'admin key' : 'console'})`],
    ['From', origin === null ? null : outside(origin, 60)],
    ['At', html`${time(proposedAt)} UTC`],
    ['Policy', policy],
    [
      'Added automatically at',
      state === 'waiting' ? html`${time(dueAt)} UTC, unless someone withdraws the change` : null,
    ],
    ['Ended', endedAt === null ? null : html`${time(endedAt)} UTC, by ${outside(endedBy ?? '', 100)}`],
    ['Reason', reason === null ? null : outside(reason, 1000)],
  ]);
}

/** Shows addresses in full, because a person compares them with a wallet. */
function renderChanged({ addresses, derivationIndexes }: AddressChangeView): Html {
  const items = addresses.map((address, position) => {
    const index = derivationIndexes?.[position];
    return html`<li><bdi class="mono">${address}</bdi>${index === undefined ? null : html` <small class="hint">#${index + 1} of an account key</small>`}</li>`;
  });
  return html`<ul>${items}</ul>`;
}

function renderActions(visit: Visit, { changeId }: AddressChangeView, refusal: string | null): Html {
  const mayConfirm = refusal === null && isAllowed(visit.actor, 'confirmAddressChange');
  const confirm = mayConfirm
    ? html`<a class="button" href="/addresses/changes/${changeId}/confirm">These are our addresses: add them now</a>`
    : null;
  const withdraw = isAllowed(visit.actor, 'withdrawAddressChange')
    ? html`<a class="button quiet" href="/addresses/changes/${changeId}/withdraw">Withdraw</a>`
    : null;
  return html`<section class="card form" aria-labelledby="do"><h2 id="do">Is each address in your wallet?</h2><p>If you do not recognise the addresses, withdraw this change and find out who proposed it: a session or an admin key may have been stolen.</p>
<div class="actions">${confirm}${withdraw}</div>${refusal === null ? null : html`<p class="hint">You cannot confirm this change: <bdi>${refusal}</bdi>.</p>`}</section>`;
}

type Switching = { project: ListedProjectView; address: AddressView };
type Switched = { view: SwitchedAddressesView };

const NOTE = line('note', 'Note (optional)', {
  more: html` maxlength="2000"`,
  hint: 'Recorded with your name in the audit log.',
});

const endingOf = (address: string) =>
  endingField('ending', `Last six characters of ${address}`, 'Copy them from your wallet, not from this page.');

/** Adds the forms that retire and activate an address. */
export function addSwitchingForms(routes: Routes, deps: ConsoleDeps): void {
  const given = ({ note }: Fields, { project, address }: Switching) => {
    const { projectId } = project;
    return { projectId, entries: [{ text: address.address, place: 'the address' }], note };
  };
  const common = {
    find: (asked: Asked, project: string | undefined) => findAddress(deps, asked, project),
    done: (visit: Visit, { project }: Switching, { view }: Switched) => ({
      goTo: urlTo(visit, '/addresses', project, { done: view.status }),
    }),
  };
  addForm(routes, deps, {
    ...{ ...common, ...byOperation(deps, retireAddresses, given), path: '/addresses/:address/retire' },
    show: (visit, { project, address }) => ({
      ...{ title: 'Retire an address', about: project, button: 'Retire address', fields: [NOTE] },
      consequence: renderRetiring(address),
      back: urlTo(visit, '/addresses', project),
    }),
  });
  addForm(routes, deps, {
    ...common,
    ...byOperation(deps, activateAddresses, (filled: Fields, subject: Switching) => {
      readEnding('ending', filled['ending'], subject.address.address);
      return given(filled, subject);
    }),
    ...{ path: '/addresses/:address/activate' },
    show: (visit, { project, address }) => ({
      ...{
        title: 'Use an address again',
        about: project,
        button: 'Use again',
        fields: [endingOf('the address'), NOTE],
      },
      consequence: html`${renderAddress(address)}<p>New invoices with the policy ${address.policy} can use this address again. Check that it is still in your wallet: money sent to an address that you can no longer access is lost.</p>`,
      back: urlTo(visit, '/addresses', project),
    }),
  });
}

const renderAddress = ({ address }: AddressView) => html`<p><bdi class="mono">${address}</bdi></p>`;

function renderRetiring(address: AddressView): Html {
  const { openInvoices, isOpenInvoicesMore, activeAddresses, projectPolicy, policy, status } = address;
  const open =
    openInvoices === null
      ? 'Its open invoices stay'
      : openInvoices === 1
        ? '1 open invoice stays'
        : `${number(openInvoices)}${isOpenInvoicesMore ? '+' : ''} open invoices stay`;
  const isLast = status === 'active' && policy === projectPolicy && activeAddresses[policy] === 1;
  const last = isLast
    ? html`<p class="notice">This is the last address in use with the policy ${policy}: every new invoice is refused until you add another address.</p>`
    : null;
  return html`${renderAddress(address)}<p>${open} payable, but new invoices no longer use this address. Quittance watches it permanently: it records all transfers to the address, and late payments still count.</p>${last}`;
}

/** Finds an address in a project that the visitor may see. All other addresses are reported as not found. Throws `NOT_FOUND`. */
async function findAddress(
  deps: ConsoleDeps,
  { visit, request }: Asked,
  asked: string | undefined,
): Promise<Switching> {
  const text = pathPart(request, 'address');
  const project = needProject(visit, asked);
  const { projectId } = project;
  const address = await performFor(deps, visit, showAddress, { projectId, address: text }).catch((error: unknown) => {
    throw error instanceof AppError && error.code === 'NOT_FOUND' ? noSuch('address', text) : error;
  });
  return { project, address };
}
