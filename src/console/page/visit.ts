import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { keyMode } from '../../domain/network.ts';
import { ACTIONS, type ActionName } from '../../operator/actions.ts';
import type { Actor } from '../../operator/actor.ts';
import { clip } from '../../operator/input/problems.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';

/** A request of a person who is signed in. `projects`: those that the person may see, the archived ones last. */
export type Visit = {
  actor: Actor;
  projects: readonly ListedProjectView[];
  /** The path, which links that only change the query keep. */
  path: string;
  /** A token for a form of this session. */
  token(form: string): string;
};

/** The console's refusal of what the person's role may not. */
export class Forbidden extends Error {
  override readonly name = 'Forbidden';
  readonly action: ActionName;

  constructor(action: ActionName) {
    super(`your role does not allow this: ${action} requires the role ${ACTIONS[action].role}`);
    this.action = action;
  }
}

/**
 * The project that a page is about: the one that is asked for, else the first in use that takes real money, else the first. `null`: there is none
 * yet. One that the person may not see is as one that does not exist. Errors: `NOT_FOUND`.
 */
export function chooseProject({ projects }: Visit, asked: string | undefined): ListedProjectView | null {
  if (asked === undefined)
    return usedOf(projects).find(({ network }) => keyMode(network) === 'live') ?? projects[0] ?? null;
  const found = projects.find(({ projectId }) => projectId === asked);
  if (found !== undefined) return found;
  throw new AppError('NOT_FOUND', `there is no project ${clip(asked)} that you may see`);
}

/** The projects that are not archived. */
export function usedOf(projects: Visit['projects']): ListedProjectView[] {
  return projects.filter(({ archivedAt }) => archivedAt === null);
}

/** The same where nothing can be done without one. */
export function needProject(visit: Visit, asked: string | undefined): ListedProjectView {
  const project = chooseProject(visit, asked);
  if (project !== null) return project;
  throw new AppError('NOT_FOUND', say`there is no project yet: create one with "${{ command: 'project create' }}"`);
}

/** A URL of the console with what is not `undefined`. The project stands in it only where there are several. */
export function urlTo(
  { projects }: Visit,
  path: string,
  project: Pick<ListedProjectView, 'projectId'> | null,
  query: Record<string, string | undefined> = {},
): string {
  const all = { project: projects.length > 1 ? project?.projectId : undefined, ...query };
  const entries = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`;
}
