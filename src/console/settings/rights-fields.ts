import { ROLES } from '../../operator/actor.ts';
import { FieldError } from '../../operator/input/field-error.ts';
import type { PersonView } from '../../operator/subjects/people.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import type { FormField } from '../forms/form.ts';
import type { Fields } from '../page/read-fields.ts';

const ROLE_WORDS = {
  viewer: 'viewer: reads and exports',
  operator: 'operator: also decides about money that came',
  owner: 'owner: everything, in all projects',
} as const;

const SCOPES = [
  ['all', 'all, also those to come'],
  ['some', 'only those ticked below'],
] as const;

/** A role, and the projects that it is for. With one project there is nothing to choose. */
export function rightsFields(
  projects: readonly ListedProjectView[],
  { role, projects: own }: Pick<PersonView, 'role' | 'projects'>,
): readonly FormField[] {
  const roles = ROLES.map((each) => [each, ROLE_WORDS[each]] as const);
  const choice: FormField = { name: 'role', label: 'Role', kind: 'select', options: roles, value: role };
  if (projects.length < 2) return [choice];
  return [
    choice,
    { name: 'scope', label: 'Projects', kind: 'select', options: SCOPES, value: own === null ? 'all' : 'some' },
    ...projects.map(({ projectId, name, network }) => ({
      ...{ name: projectId, label: name, hint: network, kind: 'check' as const },
      value: own?.includes(projectId) === true ? 'yes' : undefined,
    })),
  ];
}

/** Reads them back: nobody gets all projects by ticking none. Errors: `INVALID_ARGUMENT`. */
export function readRightsFields(filled: Fields, projects: readonly ListedProjectView[]) {
  const projectIds = projects.flatMap(({ projectId }) => (filled[projectId] === undefined ? [] : [projectId]));
  const { role = '', scope } = filled;
  if (projects.length < 2) return { role, projectIds: [], allProjects: undefined };
  if (scope !== 'all' && scope !== 'some') throw new FieldError('scope', 'takes "all" or "some"');
  if (scope === 'some' && projectIds.length === 0) throw new FieldError('scope', 'says only those ticked, and none is');
  if (scope === 'all' && projectIds.length > 0)
    throw new FieldError('scope', 'says all, and some are ticked: choose one');
  return { role, projectIds, allProjects: scope === 'all' };
}
