import { Type } from '../../runtime/type.ts';
import { ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { listAddressChanges, showAddressChange } from './list-changes.ts';
import { AddressChangeListView, AddressChangeView } from './views.ts';
import { withdrawAddressChange } from './withdraw-change.ts';

const ChangeId = Type.Object({ changeId: Type.String({ description: 'chg_…' }) });

export const listAddressChangesOperation = operation({
  action: 'listAddressChanges',
  summary: 'The additions of addresses that wait for another owner or for their time, and the newest that ended',
  ...{ method: 'GET', path: '/address-changes', output: AddressChangeListView },
  input: Type.Object({ projectId: ProjectId }),
  read: ({ projectId }) => ({ projectId }),
  run: listAddressChanges,
});

export const showAddressChangeOperation = operation({
  action: 'showAddressChange',
  summary: 'One of them',
  ...{ method: 'GET', path: '/address-changes/:changeId', input: ChangeId, output: AddressChangeView },
  read: ({ changeId }) => ({ changeId }),
  run: showAddressChange,
});

export const withdrawAddressChangeOperation = operation({
  action: 'withdrawAddressChange',
  summary: 'Withdraw one that waits: its addresses are not added',
  ...{ method: 'POST', path: '/address-changes/:changeId/withdraw', input: ChangeId, output: AddressChangeView },
  read: ({ changeId }) => ({ changeId }),
  run: withdrawAddressChange,
});
