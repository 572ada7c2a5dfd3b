import { Type } from '../../runtime/type.ts';
import { Line, ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { disableAdapter } from './disable-adapter.ts';
import { enableAdapter } from './enable-adapter.ts';
import { listAdapters } from './list-adapters.ts';
import { readAdapter } from './read-adapter.ts';
import { AdapterListView, DisabledAdapterView, EnabledAdapterView } from './views.ts';

export const listAdaptersOperation = operation({
  action: 'listAdapters',
  summary: 'The adapters of a project, by which shops order that speak another system’s API',
  ...{ method: 'GET', path: '/adapters', input: Type.Object({ projectId: ProjectId }), output: AdapterListView },
  read: ({ projectId }) => ({ projectId }),
  run: listAdapters,
});

export const enableAdapterOperation = operation({
  action: 'enableAdapter',
  summary: 'Let shops order by another system’s API, and show the secret, once; or change the rate or its source',
  ...{ method: 'POST', path: '/adapters', output: EnabledAdapterView },
  input: Type.Object({
    ...{ projectId: ProjectId, kind: Type.String(), rate: Line, currency: Line, secret: Line },
    ...{ rateUrl: Line, ratePath: Line, rateTimePath: Line, rateMin: Line, rateMax: Line, rateMaxAge: Line },
    confirmRate: Line,
  }),
  read: ({ projectId, ...given }) => ({ ...readAdapter(given), projectId }),
  run: enableAdapter,
});

export const disableAdapterOperation = operation({
  action: 'disableAdapter',
  summary: 'Let an adapter take no more orders, for ever',
  ...{ method: 'POST', path: '/adapters/:adapterId/disable', output: DisabledAdapterView },
  input: Type.Object({ adapterId: Type.String({ description: 'whe_…' }) }),
  read: ({ adapterId }) => ({ adapterId }),
  run: disableAdapter,
});
