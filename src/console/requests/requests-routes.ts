import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import { perform } from '../../operator/operation.ts';
import { findRequestId, showRequest } from '../../operator/subjects/requests.ts';
import { addList } from '../page/add-list.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { needProject } from '../page/visit.ts';
import { requestPage, requestsList } from './requests-page.ts';

/** What shops asked of the API, and one request. */
export function addRequestRoutes(routes: Routes, deps: ConsoleDeps): void {
  addList(routes, requestsList(deps));
  routes.get('/requests/:requestId', 'showRequest', (asked) => show(deps, asked));
}

async function show(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  readQuery(request, []);
  const { requestId = '' } = request.params as { requestId?: string };
  const id = findRequestId(requestId);
  if (id === null) throw new AppError('NOT_FOUND', `there is no request ${clip(requestId)} that you may see`);
  const shown = await perform(showRequest, deps, visit.actor, { requestId: id });
  return requestPage(visit, shown.projectId === null ? null : needProject(visit, shown.projectId), shown);
}
