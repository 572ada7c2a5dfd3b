import { Type } from '../../runtime/type.ts';
import { FieldError } from '../input/field-error.ts';
import { Flag, Line, Period, ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { listRequests, readRequestFilter } from './list-requests.ts';
import { readRequestId } from './read-request-id.ts';
import { showRequest } from './show-request.ts';
import { RequestListView, ShownRequestView } from './views.ts';

export const listRequestsOperation = operation({
  action: 'listRequests',
  summary: 'What shops asked of the API in the last 30 days, the newest first',
  ...{ method: 'GET', path: '/requests', output: RequestListView },
  input: Type.Object({
    ...{ projectId: ProjectId, isKeyless: Flag, status: Line, key: Line, externalId: Line },
    ...{ ...Period, before: Line, limit: Line },
  }),
  read: ({ projectId, isKeyless = false, limit = '50', ...given }) => {
    if (isKeyless && projectId !== undefined)
      throw new FieldError('isKeyless', 'is of no project: leave one of them out');
    return { ...readRequestFilter({ ...given, limit }), projectId, isKeyless };
  },
  run: listRequests,
});

export const showRequestOperation = operation({
  action: 'showRequest',
  summary: 'What became of a request of the last 30 days',
  ...{ method: 'GET', path: '/requests/:requestId', output: ShownRequestView },
  input: Type.Object({ requestId: Type.String() }),
  read: ({ requestId }) => ({ requestId: readRequestId(requestId) }),
  run: showRequest,
});
