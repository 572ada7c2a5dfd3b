import { AppError } from '../../domain/errors.ts';
import { showEndpoint } from '../../operator/subjects/webhooks.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Asked } from '../page/routes.ts';
import { needProject } from '../page/visit.ts';

export type FoundEndpoint = Awaited<ReturnType<typeof findEndpoint>>;

/** An endpoint as the visitor may see it. Errors: `NOT_FOUND`, also for what is no id. */
export async function findEndpoint(deps: ConsoleDeps, { visit, request }: Asked) {
  const { endpointId = '' } = request.params as { endpointId?: string };
  const endpoint = await showEndpoint.run(deps, visit.actor, { endpointId }).catch(asUnknown);
  return { ...endpoint, project: needProject(visit, endpoint.projectId) };
}

/** What is no id is not there. */
export function asUnknown(error: unknown): never {
  if (error instanceof AppError && error.code === 'INVALID_ARGUMENT') throw new AppError('NOT_FOUND', error.text);
  throw error;
}
