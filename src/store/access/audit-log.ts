import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { count, hex, json, listColumns, type Row, text } from '../db/statement.ts';

/** What was done, as `subject.verb`. */
export type RecordedAction =
  | 'address.added'
  | 'address.proposed'
  | 'address.confirmed'
  | 'address.withdrawn'
  | 'address.failed'
  | 'address.derived'
  | 'address.retired'
  | 'address.activated'
  | 'project.created'
  | 'project.changed'
  | 'key.created'
  | 'key.revoked'
  | 'admin-key.created'
  | 'admin-key.revoked'
  | 'master-key.rotated'
  | 'receipt-key.rotated'
  | 'ledger.sealed'
  | 'row.accepted'
  | 'webhook.added'
  | 'webhook.changed'
  | 'webhook.enabled'
  | 'webhook.disabled'
  | 'webhook.rotated'
  | 'webhook.tested'
  | 'deliveries.replayed'
  | 'invoice.created'
  | 'transfer.resolved'
  | 'producers.accepted'
  | 'alarm.acknowledged'
  | 'block.passed'
  | 'chain.rescanned'
  | 'chain.repaired'
  | 'chain.resumed'
  | 'backup.created'
  | 'backup.verified'
  | 'backup.restored'
  | 'backup.accepted'
  | 'user.invited'
  | 'user.joined'
  | 'user.changed'
  | 'user.reset'
  | 'user.removed'
  | 'passkey.added'
  | 'passkey.removed'
  | 'session.started'
  | 'session.refused'
  | 'session.stepped-up'
  | 'session.ended';

const actor = {
  actorKind: text<'cli' | 'console' | 'admin' | 'service'>(),
  actorId: 'uuid?',
  actedBy: 'text',
  origin: 'text?',
  requestId: 'text?',
} as const;

/** Who acted, and from where. */
export type RecordedActor = Row<typeof actor>;

const columns = {
  ...actor,
  projectId: 'uuid?',
  action: text<RecordedAction>(),
  subject: 'text',
  detail: json<object>(),
  actedAt: 'timestamptz',
} as const;

/**
 * An action of an operator. `subject` is what it was done to: an address (T…), an id (prj_…, whe_…, key_…), the id of a block or the
 * name of a network. `detail` depends on the action and holds no secret.
 */
export type OperatorAction = Row<typeof columns>;

/** Records actions, in the transaction that takes them, and last in it: until it ends nobody else records one. */
export const insertOperatorActions = commandOf(
  'operator-action-insert',
  `insert into operator_actions
     (actor_kind, actor_id, acted_by, origin, request_id, project_id, action, subject, detail, acted_at)
   select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[],
     $9::text[]::jsonb[], $10::timestamptz[])`,
  (actions: readonly OperatorAction[]) => [
    actions.map(({ actorKind }) => actorKind),
    actions.map(({ actorId }) => actorId),
    actions.map(({ actedBy }) => actedBy),
    actions.map(({ origin }) => origin),
    actions.map(({ requestId }) => requestId),
    actions.map(({ projectId }) => projectId),
    actions.map(({ action }) => action),
    actions.map(({ subject }) => subject),
    actions.map(({ detail }) => JSON.stringify(detail)),
    actions.map(({ actedAt }) => new Date(actedAt).toISOString()),
  ],
);

/** The newest 1,000 actions on a subject, oldest first. The same address can be in a project of each network. */
export const listOperatorActions = rowsOf(
  'operator-action-list',
  columns,
  `select ${listColumns(columns)}
   from (select * from operator_actions where subject = $1 order by seq desc limit 1000) newest order by seq`,
  (subject: string) => [subject],
);

/** Those of some rows, `TABLE:ID`, that an operator accepted as they are, or as gone. */
export const findAcceptedRows = answerOf(
  'operator-action-accepted',
  { subject: 'text' },
  `select distinct subject from operator_actions where subject = any($1::text[]) and action = 'row.accepted'`,
  (names: readonly string[]) => [names],
  (rows) => rows.map(({ subject }) => subject),
);

/** Of some subjects those that anything was done to after an entry of the log, and `null` among them for what is done to all rows. */
export const findSubjectsSince = answerOf(
  'operator-action-since',
  { subject: 'text?' },
  `select distinct case when action not in ('ledger.sealed', 'master-key.rotated', 'backup.restored', 'backup.accepted') then subject end as subject
   from operator_actions
   where seq > $1 and (subject = any($2::text[]) or action in ('ledger.sealed', 'master-key.rotated', 'backup.restored', 'backup.accepted'))`,
  (seq: number, subjects: readonly string[]) => [seq, subjects],
  (rows) => new Set(rows.map(({ subject }) => subject)),
);

/** The kinds of alarms of a network that operators closed after an entry of the log. */
export const findAcknowledgedSince = answerOf(
  'operator-action-acknowledged',
  { kind: 'text' },
  `select distinct detail->>'kind' as kind from operator_actions where seq > $1 and action = 'alarm.acknowledged' and subject = $2`,
  (seq: number, network: string) => [seq, network],
  (rows) => new Set(rows.map(({ kind }) => kind)),
);

const entry = { seq: count, ...columns, hash: hex() } as const;

export type AuditEntry = Row<typeof entry>;
export type AuditFilter = {
  before: number | null;
  limit: number;
  action: string | null;
  subject: string | null;
  by: string | null;
};

/** The newest entries below a number, the newest first. */
export const listAuditEntries = rowsOf(
  'audit-list',
  entry,
  `select ${listColumns(entry)} from operator_actions
   where ($1::int8 is null or seq < $1) and ($2::text is null or action = $2) and ($3::text is null or subject = $3)
     and ($4::text is null or acted_by = $4)
   order by seq desc limit $5`,
  ({ before, limit, action, subject, by }: AuditFilter) => [before, action, subject, by, limit],
);

const link = { seq: count, fields: 'text[]', hash: hex() } as const;

/** An entry as it is chained: its fields as text, in order, with a leading `+`, and `-` for null. */
export type AuditLink = Row<typeof link>;

/** The next entries after a number, the oldest first, as text that nothing of the database has hashed. */
export const readAuditLinks = rowsOf(
  'audit-links',
  link,
  `select seq, (select array_agg(coalesce('+' || field, '-') order by place) from unnest(array[seq::text,
       to_char(acted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), actor_kind, actor_id::text, acted_by, origin, request_id,
       project_id::text, action, subject, detail::text]) with ordinality as _ (field, place)) as fields, encode(hash, 'hex') as hash
   from operator_actions where seq > $1 order by seq limit $2`,
  (after: number, limit: number) => [after, limit],
);

const head = { seq: count, hash: hex() } as const;

/** The newest entry's number and hash: whoever keeps them can tell later whether the log of that moment was rewritten. */
export type AuditHead = Row<typeof head>;

export const findAuditHead = answerOf(
  'audit-head',
  head,
  `select ${listColumns(head)} from operator_actions order by seq desc limit 1`,
  () => [],
  ([found]): AuditHead | null => found ?? null,
);
