import type { Network } from '../domain/network.ts';
import type { Policy } from '../domain/policy.ts';
import { DEFAULT_UNPAID_LIMITS, type UnpaidLimits } from '../domain/unpaid.ts';
import type { Brand } from './checkout.ts';
import type { Sql } from './database.ts';
import { type Parameter, type Row, statement } from './statement.ts';

const columns = {
  id: 'uuid',
  name: 'text',
  network: 'text',
  policy: 'text',
  max_surcharge_micro: 'int8',
  invoice_lifetime_ms: 'int8',
  support_contact: 'text?',
  return_url: 'text?',
  accent: 'text?',
  logo_id: 'text?',
  max_unpaid: 'int4?',
  max_unpaid_per_minute: 'int4?',
  created_at: 'timestamptz',
} as const;
const COLUMNS = Object.keys(columns).join(', ');

export type Project = Row<typeof columns> & { network: Network; policy: Policy };

/** What an operator may change of a project. */
export type ProjectSettings = Brand &
  UnpaidLimits & {
    policy: Policy;
    maxSurchargeMicro: bigint;
    invoiceLifetimeMs: number;
  };

const insert = statement(
  'project-insert',
  {},
  `insert into projects (id, network, name, policy, max_surcharge_micro, invoice_lifetime_ms, support_contact, return_url, accent,
     logo_id, max_unpaid, max_unpaid_per_minute)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (id) do nothing`,
);

/** Creates a project, of policy `tail`, with the usual limits and no more than its name to show unless said otherwise; does nothing if one with this id exists. */
export async function insertProject(
  db: Sql,
  project: Partial<ProjectSettings> &
    Pick<ProjectSettings, 'name' | 'maxSurchargeMicro' | 'invoiceLifetimeMs'> & { id: string; network: Network },
): Promise<void> {
  const settings = { policy: 'tail', ...NO_BRAND, ...DEFAULT_UNPAID_LIMITS, ...project } as const;
  await db.run(insert, [project.id, project.network, ...valuesOf(settings)]);
}

const NO_BRAND = { supportContact: null, returnUrl: null, accent: null, logoId: null };

const update = statement(
  'project-update',
  {},
  `update projects set name = $2, policy = $3, max_surcharge_micro = $4, invoice_lifetime_ms = $5, support_contact = $6,
     return_url = $7, accent = $8, logo_id = $9, max_unpaid = $10, max_unpaid_per_minute = $11
   where id = $1`,
);

export async function updateProject(tx: Sql, id: string, settings: ProjectSettings): Promise<void> {
  await tx.run(update, [id, ...valuesOf(settings)]);
}

function valuesOf(settings: ProjectSettings): Parameter[] {
  const { name, policy, maxSurchargeMicro, invoiceLifetimeMs, supportContact, returnUrl, accent, logoId } = settings;
  const brand = [supportContact, returnUrl, accent, logoId];
  return [
    name,
    policy,
    maxSurchargeMicro,
    invoiceLifetimeMs,
    ...brand,
    settings.maxUnpaid,
    settings.maxUnpaidPerMinute,
  ];
}

const selectOne = statement('project-select', columns, `select ${COLUMNS} from projects where id = $1`);

export async function findProject(db: Sql, id: string): Promise<Project | null> {
  const [row] = await db.run(selectOne, [id]);
  return (row as Project | undefined) ?? null;
}

// "No key update" does not block what only refers to the project, such as the events of its invoices.
const lock = statement('project-lock', columns, `select ${COLUMNS} from projects where id = $1 for no key update`);

/**
 * The project, which nobody else changes or adds addresses to until the transaction ends. A statement of its own, because
 * the statements after it must see what the holder before it wrote.
 */
export async function lockProject(tx: Sql, id: string): Promise<Project> {
  const [row] = await tx.run(lock, [id]);
  if (row === undefined) throw new Error(`there is no project ${id}`);
  return row as Project;
}

const selectAll = statement(
  'project-list',
  columns,
  `select ${COLUMNS} from projects order by created_at, id limit 1000`,
);

/** The oldest 1,000 projects. */
export async function listProjects(db: Sql): Promise<Project[]> {
  return (await db.run(selectAll, [])) as Project[];
}
