import { AppError } from '../domain/errors.ts';
import { decodeId, encodeId } from '../domain/ids.ts';
import { say } from '../domain/message.ts';
import type { Sql } from '../store/db/database.ts';
import { findProject, listProjects, type Project } from '../store/ledger/projects.ts';
import { type Actor, maySee } from './actor.ts';
import { clip } from './input/clip.ts';

/** The most projects that an error message lists. */
const MAX_LISTED = 10;

/** The project with this `prj_…` id; without an id, the only project in use that there is for this actor. */
export async function selectProject(db: Sql, actor: Actor, projectId: string | undefined): Promise<Project> {
  if (projectId !== undefined) {
    const uuid = decodeId('prj', projectId);
    if (uuid === null) {
      throw new AppError(
        'INVALID_ARGUMENT',
        say`${clip(projectId)} is not a project id: an id is "prj_" and 26 characters, as shown by "${{ command: 'project list' }}"`,
      );
    }
    const project = await findProject(db, uuid);
    if (project !== null && maySee(actor, project.id)) return project;
    throw new AppError(
      'NOT_FOUND',
      say`there is no project ${projectId}: list the projects with "${{ command: 'project list' }}"`,
    );
  }
  const projects = await listProjects(db, actor.projects, false);
  const [only, ...others] = projects;
  if (only === undefined) {
    if ((await listProjects(db, actor.projects, true)).length > 0) {
      throw new AppError(
        'NOT_FOUND',
        say`all projects are archived: choose one from "${{ command: 'project list', input: { archived: true } }}"`,
      );
    }
    throw new AppError('NOT_FOUND', say`there is no project yet: create one with "${{ command: 'project create' }}"`);
  }
  if (others.length === 0) return only;
  const problems = projects.slice(0, MAX_LISTED).map(({ id, name, network }) => {
    return {
      subject: encodeId('prj', id),
      message: say`${{ field: 'projectId' }} ${encodeId('prj', id)}  (${name}, ${network})`,
    };
  });
  throw new AppError('INVALID_ARGUMENT', `there are ${projects.length} projects: say which one`, { problems });
}
