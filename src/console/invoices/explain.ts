import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import type { AskDeps } from '../../operator/explain/ask-chain.ts';
import { explainSubject } from '../../operator/explain/explain-subject.ts';
import type { Explanation } from '../../operator/explain/explanation.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import type { Visit } from '../page/visit.ts';

/** Where no network can be asked, none is. */
const askNobody = (log: ConsoleDeps['log']): AskDeps => ({
  ...{ networks: [], log, describeForPayer: () => '' },
  withNodes: () => Promise.reject(new Error('no network is configured, so none can be asked')),
});

/**
 * Explains a text to a person: from one project, or from all that the person may see. What stands in another is as unknown. Errors:
 * `NOT_FOUND`, `INVALID_ARGUMENT`.
 */
export async function explainTo(
  deps: ConsoleDeps,
  { actor, projects }: Visit,
  { text, projectId }: { text: string; projectId: string | undefined },
): Promise<Explanation> {
  const asking = { ...deps, ...(deps.ask ?? askNobody(deps.log)) };
  if (projectId !== undefined || actor.projects === null) return explainSubject(asking, actor, { text, projectId });
  const isSeen = (id: string) => projects.some((project) => project.projectId === id);
  const own = actor.projects.map((id) => encodeId('prj', id)).filter(isSeen);
  let unknown: Explanation | Error = new AppError('NOT_FOUND', 'you may see no project');
  for (const each of own) {
    const found = await explainSubject(asking, actor, { text, projectId: each }).catch(ifNotFound);
    if (!(found instanceof Error) && found.isUnknown !== true) return found;
    unknown = found;
  }
  if (unknown instanceof Error) throw unknown;
  return unknown;
}

function ifNotFound(error: unknown): AppError {
  if (error instanceof AppError && error.code === 'NOT_FOUND') return error;
  throw error;
}
