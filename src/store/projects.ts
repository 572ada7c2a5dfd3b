import type { Network } from '../domain/network.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

const columns = {
  id: 'uuid',
  name: 'text',
  network: 'text',
  max_surcharge_micro: 'int8',
  invoice_lifetime_ms: 'int8',
  created_at: 'timestamptz',
} as const;
const COLUMNS = Object.keys(columns).join(', ');

export type Project = Row<typeof columns> & { network: Network };

const insert = statement(
  'project-insert',
  {},
  `insert into projects (id, name, network, max_surcharge_micro, invoice_lifetime_ms) values ($1, $2, $3, $4, $5)
   on conflict (id) do nothing`,
);

/** Creates a project; does nothing if one with this id exists. */
export async function insertProject(
  db: Sql,
  project: { id: string; name: string; network: Network; maxSurchargeMicro: bigint; invoiceLifetimeMs: number },
): Promise<void> {
  await db.run(insert, [
    project.id,
    project.name,
    project.network,
    project.maxSurchargeMicro,
    project.invoiceLifetimeMs,
  ]);
}

const selectOne = statement('project-select', columns, `select ${COLUMNS} from projects where id = $1`);

export async function findProject(db: Sql, id: string): Promise<Project | null> {
  const [row] = await db.run(selectOne, [id]);
  return (row as Project | undefined) ?? null;
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
