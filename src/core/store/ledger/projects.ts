import type { Network } from '../../domain/network.ts';
import { type Policy, surchargeOf } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { DEFAULT_UNPAID_LIMITS } from '../../domain/unpaid.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_LIMITS, SEALED_PROJECT } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, sealed, statement, text } from '../db/statement.ts';

/** The project settings that an operator may change. */
const settings = {
  name: 'text',
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
  invoiceLifetimeMs: count,
  supportContact: 'text?',
  returnUrl: 'text?',
  embedOrigins: 'text?',
  accent: 'text?',
  logoId: 'text?',
  maxUnpaid: 'int4?',
  maxUnpaidPerMinute: 'int4?',
} as const;
const columns = {
  id: 'uuid',
  network: text<Network>(),
  ...settings,
  createdAt: 'timestamptz',
  archivedAt: 'timestamptz?',
  areLimitsSound: isAsSealed(SEALED_LIMITS),
  seal: sealed(SEALED_PROJECT),
} as const;
const COLUMNS = listColumns(columns, '', { areLimitsSound: sealColumn(SEALED_LIMITS, '') });

export type ProjectSettings = Row<typeof settings>;
export type Project = Omit<Row<typeof columns>, 'seal' | 'areLimitsSound'>;

/**
 * Replaces limits that were changed directly in the database with the defaults. Otherwise an attacker could use such limits to stop a shop,
 * or to let a flood of orders through.
 */
function judged({ areLimitsSound, ...project }: Row<typeof columns>): Project {
  return areLimitsSound ? project : { ...project, ...DEFAULT_UNPAID_LIMITS };
}

const NAMES = Object.keys(settings) as (keyof ProjectSettings)[];
const valuesOf = (project: ProjectSettings) => NAMES.map((name) => project[name]);
const placesFrom = (first: number) => NAMES.map((_, index) => `$${index + first}`).join(', ');

const insert = statement(
  'project-insert',
  {},
  `insert into projects (id, network, ${listColumns(settings)}, mac, limits_mac)
   values ($1, $2, ${placesFrom(3)}, $${NAMES.length + 3}, $${NAMES.length + 4}) on conflict (id) do nothing`,
);

/**
 * Creates a project. By default, it has the policy `tail`, the default limits and surcharge, and no branding except its name. Does nothing
 * if the id exists.
 */
export async function insertProject(
  db: Sql,
  project: Partial<ProjectSettings> &
    Pick<ProjectSettings, 'name' | 'invoiceLifetimeMs'> & { id: string; network: Network },
): Promise<void> {
  const maxSurchargeMicro = surchargeOf(project.policy ?? 'tail').usualMicro;
  const all = { policy: 'tail', maxSurchargeMicro, ...NO_BRAND, ...DEFAULT_UNPAID_LIMITS, ...project } as const;
  await db.run(insert, [
    project.id,
    project.network,
    ...valuesOf(all),
    sealOf(SEALED_PROJECT, { ...NO_BRAND, ...all, archivedAt: null }),
    sealOf(SEALED_LIMITS, all),
  ]);
}

const NO_BRAND = { supportContact: null, returnUrl: null, embedOrigins: null, accent: null, logoId: null };

export const saveProject = commandOf(
  'project-update',
  `update projects set (${listColumns(settings)}, mac, limits_mac) = (${placesFrom(2)}, $${NAMES.length + 2}, $${NAMES.length + 3})
   where id = $1`,
  ({ id, network, archivedAt }: Pick<Project, 'id' | 'network' | 'archivedAt'>, project: ProjectSettings) => [
    ...[id, ...valuesOf(project)],
    sealOf(SEALED_PROJECT, { ...project, id, network, archivedAt }),
    sealOf(SEALED_LIMITS, { ...project, id, network }),
  ],
);

/** Archives a project, or restores it if the time is `null`. `project` is the row as it was read. */
export const markProjectArchived = commandOf(
  'project-archive',
  'update projects set archived_at = $2, mac = $3 where id = $1',
  (project: Project, archivedAt: UnixMs | null) => [
    ...[project.id, archivedAt === null ? null : new Date(archivedAt)],
    sealOf(SEALED_PROJECT, { ...project, archivedAt }),
  ],
);

const rule = {
  id: 'uuid',
  network: text<Network>(),
  policy: text<Policy>(),
  maxSurchargeMicro: 'int8',
  isArchived: 'bool',
} as const;

/**
 * Returns the settings of existing projects (given by UUID), to compare them with a manifest. Seals aren't checked, because only the values
 * matter here.
 */
export const listRules = rowsOf(
  'project-rules',
  rule,
  `select ${listColumns(rule, '', { isArchived: 'archived_at is not null' })} from projects where id = any($1::uuid[]) order by id`,
  (ids: readonly string[]) => [ids],
);

export const findProject = answerOf(
  'project-select',
  columns,
  `select ${COLUMNS} from projects where id = $1`,
  (id: string) => [id],
  ([row]) => (row === undefined ? null : judged(row)),
);

// With "no key update", rows that only refer to the project, such as its invoices' events, aren't blocked.
const lock = statement('project-lock', columns, `select ${COLUMNS} from projects where id = $1 for no key update`);

/**
 * Locks the project: until the transaction ends, no other transaction can change it or add addresses to it. The lock is a separate
 * statement, so that later statements see what the previous holder wrote.
 */
export async function lockProject(tx: Sql, id: string): Promise<Project> {
  const [row] = await tx.run(lock, [id]);
  if (row === undefined) throw new Error(`there is no project ${id}`);
  return judged(row);
}

/**
 * Returns up to 1,000 projects, out of the given ones (UUIDs) or all projects. `isArchived` selects archived or active ones; `null` selects
 * both. Active projects come first, and the oldest come first within each group.
 */
export const findProjects = answerOf(
  'project-list',
  columns,
  `select ${COLUMNS} from projects
   where ($1::uuid[] is null or id = any($1)) and ($2::bool is null or (archived_at is not null) = $2)
   order by archived_at is not null, created_at, id limit 1000`,
  (ids: readonly string[] | null, isArchived: boolean | null) => [ids, isArchived],
  (rows) => rows.map(judged),
);

export const findProjectNetworks = answerOf(
  'project-networks',
  { network: text<Network>() },
  'select distinct network from projects order by network',
  () => [],
  (rows) => rows.map(({ network }) => network),
);
