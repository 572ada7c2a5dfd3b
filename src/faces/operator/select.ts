import { AppError, invalidArgument, notFound } from '../../core/domain/errors.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../core/domain/invoice.ts';
import { say } from '../../core/domain/message.ts';
import { isNetwork, type Network } from '../../core/domain/network.ts';
import type { Sql } from '../../core/store/db/database.ts';
import { rowOf } from '../../core/store/db/rows-of.ts';
import { text } from '../../core/store/db/statement.ts';
import { findProject, findProjects, type Project } from '../../core/store/ledger/projects.ts';
import { type Actor, maySee } from './actor.ts';
import { clip } from './input/problems.ts';
import { noSuch, readId } from './input/readers.ts';
import type { NodeDeps, OperationDeps } from './operation.ts';

/** The maximum number of projects that an error message lists. */
const MAX_LISTED = 10;

/** Finds the project with this `prj_…` id, or without an id, the actor's only project that is in use. */
export async function selectProject(db: Sql, actor: Actor, projectId: string | undefined): Promise<Project> {
  if (projectId !== undefined) {
    const project = await findProject(db, readId('prj', projectId));
    if (project !== null && maySee(actor, project.id)) return project;
    throw noSuch('prj', projectId);
  }
  const projects = await findProjects(db, actor.projects, false);
  const [only, ...others] = projects;
  if (only === undefined) {
    if ((await findProjects(db, actor.projects, true)).length > 0)
      throw notFound`all projects are archived: choose a project from "${{ command: 'project list', input: { archived: true } }}"`;
    throw notFound`there is no project yet: create a project with "${{ command: 'project create' }}"`;
  }
  if (others.length === 0) return only;
  const problems = projects.slice(0, MAX_LISTED).map(({ id, name, network }) => {
    return {
      subject: encodeId('prj', id),
      message: say`${{ field: 'projectId' }} ${encodeId('prj', id)}  (${name}, ${network})`,
    };
  });
  throw new AppError('INVALID_ARGUMENT', `there are ${projects.length} projects: choose one`, { problems });
}

/** Finds the configured network with that name, or the only one if no name is given. Throws `INVALID_ARGUMENT`. */
export function selectNetwork(configured: readonly Network[], name: string | undefined): Network {
  const [only] = configured;
  if (name === undefined) {
    if (only !== undefined && configured.length === 1) return only;
    throw invalidArgument`there are several networks: choose one with ${{ field: 'network' }}, ${configured.join(' or ')}`;
  }
  if (isNetwork(name) && configured.includes(name)) return name;
  const problem = isNetwork(name) ? 'is not configured here' : 'is not a network';
  throw invalidArgument`${{ field: 'network' }} ${clip(name)} ${problem}; configured: ${configured.join(', ')}`;
}

/** Runs `work` with a network's nodes, or with the only network's nodes if no name is given. */
export async function withNodesOf<Output>(
  { networks, nodes }: Pick<OperationDeps, 'networks' | 'nodes'>,
  name: string | undefined,
  work: (deps: NodeDeps) => Promise<Output>,
): Promise<Output> {
  const network = selectNetwork(networks, name);
  const { withNodes } = await nodes();
  return withNodes(network, work);
}

/** The fields that operators recognise an invoice by. `id` is a UUID. */
export const namedInvoice = { id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() } as const;

/**
 * Finds an invoice in the project by its id (UUID) or external id. If one invoice matches by id and another by external id, returns the
 * match by id.
 */
export const findNamedInvoice = rowOf(
  'desk-invoice-select',
  namedInvoice,
  `select id, external_id, status from invoices
   where project_id = $1 and (id = $2 or external_id = $3) order by id = $2 desc limit 1`,
  (projectId: string, name: { id: string | null; externalId: string }) => [projectId, name.id, name.externalId],
);

/** Returns the UUID of the project's invoice with this id (`inv_…`) or order id. Throws `NOT_FOUND`. */
export async function findInvoiceId(db: Sql, projectId: string, named: string): Promise<string> {
  // PostgreSQL can't store this character in a text, so no order id contains it.
  const name = named.includes('\u0000') ? null : { id: decodeId('inv', named), externalId: named };
  const found = name && (await findNamedInvoice(db, projectId, name));
  if (found !== null) return found.id;
  throw notFound`the project ${encodeId('prj', projectId)} has no invoice ${clip(named)}. To find an invoice by part of its order id, its amount, its transaction or its link, run "${{ command: 'explain', args: ['ORDER'] }}"`;
}
