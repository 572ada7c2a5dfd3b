import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import {
  type AddressView,
  activateAddresses,
  retireAddresses,
  type SwitchedAddressesView,
  showAddress,
} from '../../operator/subjects/addresses.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { FormField } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { number } from '../page/pieces.ts';
import type { Fields } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { needProject, urlTo, type Visit } from '../page/visit.ts';
import { endingField, readEnding } from './endings.ts';

type Subject = { project: ListedProjectView; address: AddressView };
type Switched = { view: SwitchedAddressesView };

const NOTE: FormField = {
  ...{ kind: 'line', name: 'note', label: 'Note (optional)', more: html` maxlength="2000"` },
  hint: 'Kept with your name in the audit log.',
};

const ENDING = endingField('ending', 'Its last six characters', 'Type them from your wallet, not from this page.');

/** Taking an address out of use, and into use again. */
export function addSwitchingForms(routes: Routes, deps: ConsoleDeps): void {
  const given = ({ note }: Fields, { project, address }: Subject) => {
    const { projectId } = project;
    return { projectId, entries: [{ text: address.address, place: 'the address' }], note };
  };
  const common = {
    find: (asked: Asked, project: string | undefined) => find(deps, asked, project),
    done: (visit: Visit, { project }: Subject, { view }: Switched) => ({
      goTo: urlTo(visit, '/addresses', project, { done: view.status }),
    }),
  };
  addForm(routes, deps, {
    ...{ ...common, ...byOperation(deps, retireAddresses, given), path: '/addresses/:address/retire' },
    show: (visit, { project, address }) => ({
      ...{ title: 'Retire an address', about: project, button: 'Retire it', fields: [NOTE] },
      consequence: renderRetiring(address),
      back: urlTo(visit, '/addresses', project),
    }),
  });
  addForm(routes, deps, {
    ...common,
    ...byOperation(deps, activateAddresses, (filled: Fields, subject: Subject) => {
      readEnding('ending', filled['ending'], subject.address.address);
      return given(filled, subject);
    }),
    ...{ path: '/addresses/:address/activate' },
    show: (visit, { project, address }) => ({
      ...{ title: 'Use an address again', about: project, button: 'Use it again', fields: [ENDING, NOTE] },
      consequence: html`${renderAddress(address)}<p>It takes new invoices of the policy ${address.policy} again. Is it still in your wallet? Money that goes to an address you lost is lost.</p>`,
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
    ? html`<p class="notice">It is the last one in use of the policy ${policy}: until there is another, every new invoice is refused.</p>`
    : null;
  return html`${renderAddress(address)}<p>${open} payable, 0 new. It is watched for ever: what comes to it is recorded, and late payments still pay.</p>${last}`;
}

/** An address of a project that the visitor may see. Any other is as unknown. Errors: `NOT_FOUND`. */
async function find(deps: ConsoleDeps, { visit, request }: Asked, asked: string | undefined): Promise<Subject> {
  const { address: text = '' } = request.params as { address?: string };
  const project = needProject(visit, asked);
  const { projectId } = project;
  const address = await showAddress.run(deps, visit.actor, { projectId, address: text }).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'NOT_FOUND') throw error;
    throw new AppError('NOT_FOUND', `there is no address ${clip(text)} that you may see`);
  });
  return { project, address };
}
