import { commandOf, rowsOf } from '../db/rows-of.ts';
import { json, listColumns, type Row, text } from '../db/statement.ts';

const columns = {
  projectId: 'uuid?',
  action: text<
    | 'address.added'
    | 'address.derived'
    | 'address.retired'
    | 'address.activated'
    | 'project.changed'
    | 'deliveries.replayed'
    | 'block.passed'
    | 'chain.repaired'
  >(),
  subject: 'text',
  detail: json<object>(),
  actedBy: 'text',
  actedAt: 'timestamptz',
} as const;

/**
 * An action of an operator. `subject` is an address (T…), a project (prj_…) or an endpoint (whe_…). Where the action concerns the chain
 * and no project, it is the id of a block or the name of the network. `detail` depends on the action.
 */
export type OperatorAction = Row<typeof columns>;

/** Records actions, in the transaction that takes them. */
export const insertOperatorActions = commandOf(
  'operator-action-insert',
  `insert into operator_actions (project_id, action, subject, detail, acted_by, acted_at)
   select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]::jsonb[], $5::text[], $6::timestamptz[])`,
  (actions: readonly OperatorAction[]) => [
    actions.map(({ projectId }) => projectId),
    actions.map(({ action }) => action),
    actions.map(({ subject }) => subject),
    actions.map(({ detail }) => JSON.stringify(detail)),
    actions.map(({ actedBy }) => actedBy),
    actions.map(({ actedAt }) => new Date(actedAt).toISOString()),
  ],
);

/** The newest 1,000 actions on a subject, oldest first. The same address can be in a project of each network. */
export const listOperatorActions = rowsOf(
  'operator-action-list',
  columns,
  `select ${listColumns(columns)}
   from (select * from operator_actions where subject = $1 order by id desc limit 1000) newest order by id`,
  (subject: string) => [subject],
);
