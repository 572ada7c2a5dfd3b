import { POLICIES } from '../../domain/policy.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { Flag, Line, ProjectId } from '../input/given.ts';
import { type Given, operation } from '../operation.ts';
import { nullable } from '../view.ts';
import { archiveProject, unarchiveProject } from './archive-project.ts';
import { createProject, readNewProject } from './create-project.ts';
import { listProjects } from './list-projects.ts';
import { showProject } from './show-project.ts';
import { readProjectChange, updateProject } from './update-project.ts';
import { ArchivedProjectView, NewProjectView, ProjectListView, ShownProjectView, UpdatedProjectView } from './views.ts';

/** A setting that can be taken away again, by `null`. */
const Removable = Type.Optional(nullable(Type.String()));

const Settings = {
  policy: Type.Optional(Type.Enum(POLICIES)),
  maxUnpaid: Line,
  maxUnpaidPerMinute: Line,
  ...{ support: Removable, returnUrl: Removable, embedOrigins: Removable, accent: Removable },
  logo: Type.Optional(
    nullable(
      Type.Object({
        file: Type.String({ description: 'What messages call it' }),
        content: Type.String({ description: 'A PNG, JPEG or WebP of at most 32 KiB, in base64' }),
      }),
    ),
  ),
};

const Logo = Type.Object({ logo: Settings.logo });

function readLogo({ logo }: Given<Static<typeof Logo>>) {
  return logo === undefined || logo === null ? logo : { ...logo, content: Buffer.from(logo.content, 'base64') };
}

export const listProjectsOperation = operation({
  action: 'listProjects',
  summary: 'The projects that the caller may see, the oldest first: those in use, or the archived ones',
  ...{ method: 'GET', path: '/projects', input: Type.Object({ archived: Flag }), output: ProjectListView },
  read: ({ archived = false }) => ({ isArchived: archived }),
  run: listProjects,
});

export const showProjectOperation = operation({
  action: 'showProject',
  summary: 'A project, and how much it has',
  ...{ method: 'GET', path: '/projects/:projectId', output: ShownProjectView },
  input: Type.Object({ projectId: ProjectId }),
  read: ({ projectId }) => ({ projectId }),
  run: showProject,
});

export const createProjectOperation = operation({
  action: 'createProject',
  summary: 'Make a project, which belongs to one network for life',
  ...{ method: 'POST', path: '/projects', output: NewProjectView },
  input: Type.Object({
    ...{ network: Type.String(), name: Type.String(), maxSurcharge: Line, lifetime: Type.String() },
    ...{ ...Settings, ordersPerDay: Line, prices: Line },
  }),
  read: (given) => readNewProject({ ...given, logo: readLogo(given) }),
  run: createProject,
});

export const updateProjectOperation = operation({
  action: 'updateProject',
  summary: 'Change settings of a project; what is left out stays',
  ...{ method: 'PATCH', path: '/projects/:projectId', output: UpdatedProjectView },
  input: Type.Object({ projectId: ProjectId, name: Line, maxSurcharge: Line, lifetime: Line, ...Settings }),
  read: ({ projectId, ...given }) => ({ projectId, ...readProjectChange({ ...given, logo: readLogo(given) }) }),
  run: updateProject,
});

const OfProject = Type.Object({ projectId: Type.String({ description: 'prj_…' }) });

export const archiveProjectOperation = operation({
  action: 'archiveProject',
  summary: 'Archive a project: its keys make no new invoices, those that there are go on',
  ...{ method: 'POST', path: '/projects/:projectId/archive', input: OfProject, output: ArchivedProjectView },
  read: ({ projectId }) => ({ projectId }),
  run: archiveProject,
});

export const unarchiveProjectOperation = operation({
  action: 'unarchiveProject',
  summary: 'Put an archived project back',
  ...{ method: 'POST', path: '/projects/:projectId/unarchive', input: OfProject, output: ArchivedProjectView },
  read: ({ projectId }) => ({ projectId }),
  run: unarchiveProject,
});
