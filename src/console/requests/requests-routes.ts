import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import { readChoice } from '../../operator/input/read-choice.ts';
import { listRequests, readRequestFilter } from '../../operator/requests/list-requests.ts';
import { findRequestId } from '../../operator/requests/read-request-id.ts';
import { showRequest } from '../../operator/requests/show-request.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject } from '../page/visit.ts';
import { FILTERS, PAGE_SIZE, requestPage, requestsPage } from './requests-page.ts';

/** What shops asked of the API, and one request. */
export function addRequestRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/requests', 'listRequests', (asked) => list(deps, asked));
  get('/requests/:requestId', 'showRequest', (asked) => show(deps, asked));
}

async function list(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const { project: asked, before, ...filters } = readQuery(request, ['project', 'before', ...FILTERS]);
  const project = needProject(visit, asked);
  const isFirst = before === undefined;
  try {
    const { whose, ...fields } = filters;
    const isKeyless = readChoice('whose', whose, ['nobody']) !== null;
    const filter = readRequestFilter({ ...fields, ...(isFirst ? {} : { before }), limit: PAGE_SIZE });
    const wanted = { ...filter, isKeyless, projectId: isKeyless ? undefined : project.projectId };
    const found = await listRequests(deps, visit.actor, wanted);
    return requestsPage(visit, project, { filters, list: found, problem: null, isFirst });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return requestsPage(visit, project, { filters, list: null, problem: describeProblem(error), isFirst });
  }
}

async function show(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  readQuery(request, []);
  const { requestId = '' } = request.params as { requestId?: string };
  const id = findRequestId(requestId);
  if (id === null) throw new AppError('NOT_FOUND', `there is no request ${clip(requestId)} that you may see`);
  const shown = await showRequest(deps, visit.actor, { requestId: id });
  return requestPage(visit, shown.projectId === null ? null : needProject(visit, shown.projectId), shown);
}
