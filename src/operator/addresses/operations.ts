import type { FieldProblem } from '../../domain/errors.ts';
import { parseAmount } from '../../domain/money.ts';
import { POLICIES } from '../../domain/policy.ts';
import { Type } from '../../runtime/type.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { Flag, Line, ProjectId } from '../input/given.ts';
import { readNote } from '../input/read-note.ts';
import { operation } from '../operation.ts';
import { type AddDeps, addAddresses } from './add-addresses.ts';
import type { AddressEntry } from './csv.ts';
import { listAddresses, readPosition } from './list-addresses.ts';
import { readCandidates, refusedAddresses } from './read-candidates.ts';
import { activateAddresses, retireAddresses } from './retire-addresses.ts';
import { showCapacity, showCapacityOfAmount } from './show-capacity.ts';
import {
  AddedAddressesView,
  AddressListView,
  CapacityOfAmountView,
  CapacityView,
  ProposedAddressesView,
  SwitchedAddressesView,
} from './views.ts';

const Entries = Type.Array(
  Type.Object({
    text: Type.String({ description: 'T…' }),
    place: Type.String({ description: 'What messages call it, such as "line 3"' }),
  }),
);

export const listAddressesOperation = operation({
  action: 'listAddresses',
  summary: 'The addresses of a project, with their policy and status',
  ...{ method: 'GET', path: '/addresses', output: AddressListView },
  input: Type.Object({ projectId: ProjectId, after: Line }),
  read: ({ projectId, after }) => ({ projectId, after: readPosition(after) }),
  run: listAddresses,
});

export const showCapacityOperation = operation({
  action: 'showCapacity',
  summary: 'How many payable amounts are free, and how long they last, of the amounts in use',
  ...{ method: 'GET', path: '/capacity', input: Type.Object({ projectId: ProjectId }), output: CapacityView },
  read: ({ projectId }) => ({ projectId }),
  run: showCapacity,
});

export const showCapacityOfAmountOperation = operation({
  action: 'showCapacityOfAmount',
  summary: 'The same of one amount, on each address',
  ...{ method: 'GET', path: '/capacity/:amount', output: CapacityOfAmountView },
  input: Type.Object({ projectId: ProjectId, amount: Type.String() }),
  read: ({ projectId, amount: text }) => {
    const amount = parseAmount(text);
    if (amount.kind === 'ok') return { projectId, amount: amount.amountMicro };
    const reason = `${clip(text)} ${amount.reason}: give USDT as an invoice asks for it, for example 25.00`;
    throw new FieldError('amount', reason);
  },
  run: showCapacityOfAmount,
});

export const addAddressesOperation = operation({
  action: 'addAddresses',
  summary:
    'Add addresses, all of them or, if one is wrong, none. Where the project has an address already, and not all of them are signed, they wait for an owner who confirms them in the console, or for a day',
  ...{ method: 'POST', path: '/addresses', output: Type.Union([AddedAddressesView, ProposedAddressesView]) },
  input: Type.Object({
    ...{ projectId: ProjectId, entries: Entries, policy: Type.Optional(Type.Enum(POLICIES)), isFresh: Flag },
    isChecked: Type.Optional(Type.Boolean({ description: 'Whether nodes are asked of them; so unless it says false' })),
  }),
  read: ({ projectId, entries, policy, isFresh = false, isChecked = true }) => {
    return { projectId, entries, policy, isFresh, isChecked };
  },
  run: async (deps, actor, { isChecked, ...input }) => {
    const withNodes: AddDeps['withNodes'] = (network) => async (ask) => {
      const { withNodes } = await deps.nodes();
      return withNodes(network, ({ pool }) => ask(pool));
    };
    return addAddresses({ ...deps, withNodes: isChecked ? withNodes : null }, actor, input);
  },
});

const Switched = Type.Object({ projectId: ProjectId, entries: Entries, note: Line });
type Switching = { projectId: string | undefined; entries: AddressEntry[]; note: string | undefined };

function readSwitched({ projectId, entries, note }: Switching) {
  const problems: FieldProblem[] = [];
  const text = readNote(note, problems);
  const { good: addresses, problems: wrong } = readCandidates(entries, []);
  problems.push(...wrong);
  if (problems.length > 0) throw refusedAddresses('no address was changed', problems);
  return { projectId, addresses, note: text || null };
}

export const retireAddressesOperation = operation({
  action: 'retireAddresses',
  summary: 'Give addresses no new invoices; payments to them are watched for ever',
  ...{ method: 'POST', path: '/addresses/retire', input: Switched, output: SwitchedAddressesView },
  read: ({ projectId, entries, note }) => readSwitched({ projectId, entries, note }),
  run: retireAddresses,
});

export const activateAddressesOperation = operation({
  action: 'activateAddresses',
  summary: 'Give addresses new invoices again that were retired or frozen',
  ...{ method: 'POST', path: '/addresses/activate', input: Switched, output: SwitchedAddressesView },
  read: ({ projectId, entries, note }) => readSwitched({ projectId, entries, note }),
  run: activateAddresses,
});
