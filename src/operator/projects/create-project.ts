import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { isNetwork, NETWORKS } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { findProject, insertProject } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { fieldProblem } from '../input/field-error.ts';
import { type NeededInput, readSettings, returnUrlProblems, type SettingsInput, storeLogo } from './read-settings.ts';
import { viewProject } from './view-project.ts';
import type { ProjectView } from './views.ts';

type NewProject = ReturnType<typeof readNewProject>;

/** Reads what a project is to be, with all problems at once. Errors: `INVALID_ARGUMENT`. */
export function readNewProject({ network, ...input }: SettingsInput & NeededInput & { network: string }) {
  const problems: FieldProblem[] = [];
  const settings = readSettings(input, problems);
  if (isNetwork(network)) problems.push(...returnUrlProblems(settings, network));
  else problems.push(fieldProblem('network', `is ${clip(network)}: choose ${NETWORKS.join(', ')}`));
  if (problems.length === 0 && isNetwork(network)) return { ...settings, network };
  throw new AppError('INVALID_ARGUMENT', 'the project was not made', { problems });
}

type Deps = { db: Sql; now(): UnixMs; random(bytes: number): Uint8Array };

export async function createProject(
  { db, now, random }: Deps,
  _actor: Actor,
  wanted: NewProject,
): Promise<ProjectView> {
  const { network, ...settings } = wanted;
  const id = uuidV7(now(), random(10));
  await insertProject(db, { id, network, ...(await storeLogo(db, settings)) });
  const project = await findProject(db, id);
  if (project === null) throw new Error(`project ${id} was inserted and is not there`);
  return viewProject(project);
}
