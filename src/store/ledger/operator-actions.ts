import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { statement, text } from '../db/statement.ts';

/**
 * An action of an operator. `subject` is an address (T…), a project (prj_…) or an endpoint (whe_…). Where the action concerns the chain
 * and no project, it is the id of a block or the name of the network. `detail` depends on the action.
 */
export type OperatorAction = {
  projectId: string | null;
  action:
    | 'address.added'
    | 'address.derived'
    | 'address.retired'
    | 'address.activated'
    | 'project.changed'
    | 'deliveries.replayed'
    | 'block.passed'
    | 'chain.repaired';
  subject: string;
  detail: object;
  actedBy: string;
  actedAt: UnixMs;
};

const insert = statement(
  'operator-action-insert',
  {},
  `insert into operator_actions (project_id, action, subject, detail, acted_by, acted_at)
   select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]::jsonb[], $5::text[], $6::timestamptz[])`,
);

/** Records actions, in the transaction that takes them. */
export async function insertOperatorActions(tx: Sql, actions: readonly OperatorAction[]): Promise<void> {
  await tx.run(insert, [
    actions.map(({ projectId }) => projectId),
    actions.map(({ action }) => action),
    actions.map(({ subject }) => subject),
    actions.map(({ detail }) => JSON.stringify(detail)),
    actions.map(({ actedBy }) => actedBy),
    actions.map(({ actedAt }) => new Date(actedAt).toISOString()),
  ]);
}

const list = statement(
  'operator-action-list',
  {
    projectId: 'uuid?',
    action: text<OperatorAction['action']>(),
    subject: 'text',
    detail: 'text',
    actedBy: 'text',
    actedAt: 'timestamptz',
  },
  `select project_id, action, subject, detail::text as detail, acted_by, acted_at
   from (select * from operator_actions where subject = $1 order by id desc limit 1000) newest order by id`,
);

/** The newest 1,000 actions on a subject, oldest first. The same address can be in a project of each network. */
export async function listOperatorActions(db: Sql, subject: string): Promise<OperatorAction[]> {
  return (await db.run(list, [subject])).map((row) => ({
    ...row,
    detail: JSON.parse(row.detail) as object,
  }));
}
