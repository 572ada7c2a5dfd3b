import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Sql } from '../../store/db/database.ts';
import { type Actor, ROLES, type Role } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { fieldProblem } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { selectProject } from '../select-project.ts';

export type Rights = { role: Role; projects: string[] | null };

const LOGIN = /^[a-z0-9][a-z0-9._+@-]{0,99}$/;
/** A login as the database has it; the empty text, which nobody has, for what can be none. */
export function loginOf(text: string): string {
  const login = text.trim().toLowerCase();
  return LOGIN.test(login) ? login : '';
}

/** The bound of the schema. */
const MAX_PROJECTS = 1000;

/** Reads who is to be invited, with all problems at once. `projectIds`: `prj_…`, all where there are none. Errors: `INVALID_ARGUMENT`. */
export function readNewPerson(input: {
  login: string;
  name?: string | undefined;
  role: string;
  projectIds?: readonly string[] | undefined;
}): Rights & { login: string; name: string } {
  const problems: FieldProblem[] = [];
  const login = loginOf(input.login);
  if (login === '') {
    const reason = `is ${clip(input.login)}: write an e-mail address or a short name, of the letters a to z, digits and . _ + @ -`;
    problems.push({ subject: 'login', message: `the login ${reason}` });
  }
  const name = (input.name ?? login).trim();
  const problem = nameProblem(name);
  if (problem !== null && login !== '') problems.push(fieldProblem('name', problem));
  const rights = readParts(input, problems);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'nobody was invited', { problems });
  return { login, name, ...rights };
}

/** What a person may do from now on; without `projects` it keeps those that it has. */
export type NewRights = { role: Role; projects?: string[] | null };

/** Reads what a person may do from now on. Errors: `INVALID_ARGUMENT`. */
export function readRights(input: {
  role: string;
  projectIds?: readonly string[] | undefined;
  allProjects?: boolean | undefined;
}): NewRights {
  const problems: FieldProblem[] = [];
  const { role, projects } = readParts(input, problems);
  if (input.allProjects === true && projects !== null) {
    problems.push(fieldProblem('allProjects', say`cannot be given together with ${{ field: 'projectId' }}`));
  }
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the role was not changed', { problems });
  return projects === null && input.allProjects !== true ? { role } : { role, projects };
}

function readParts(
  { role: asked, projectIds = [] }: { role: string; projectIds?: readonly string[] | undefined },
  problems: FieldProblem[],
): Rights {
  const role = ROLES.find((each) => each === asked);
  if (role === undefined) problems.push(fieldProblem('role', `is ${clip(asked)}: choose ${ROLES.join(', ')}`));
  const projects = [...new Set(projectIds.map((each) => each.trim()))].flatMap((projectId) => {
    const uuid = decodeId('prj', projectId);
    if (uuid === null) problems.push(fieldProblem('projectId', `is ${clip(projectId)}, which is not a project id`));
    return uuid ?? [];
  });
  if (projects.length > MAX_PROJECTS) problems.push(fieldProblem('projectId', `takes at most ${MAX_PROJECTS}`));
  if (role === 'owner' && projectIds.length > 0) {
    problems.push(fieldProblem('projectId', 'cannot be given for an owner, who has all projects'));
  }
  return { role: role ?? 'viewer', projects: projects.length === 0 ? null : projects };
}

/** Errors: `NOT_FOUND`. */
export async function refuseUnknownProjects(db: Sql, actor: Actor, projects: readonly string[] | null): Promise<void> {
  for (const id of projects ?? []) await selectProject(db, actor, encodeId('prj', id));
}
