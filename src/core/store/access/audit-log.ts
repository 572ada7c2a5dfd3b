import type { Network } from '../../domain/network.ts';
import type { RecordedAction } from '../../domain/recorded-action.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn } from '../db/seal.ts';
import { SEALED_ACTION } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, json, listColumns, type Row, text } from '../db/statement.ts';

const actor = {
  actorKind: text<'cli' | 'console' | 'admin' | 'service' | 'key'>(),
  actorId: 'uuid?',
  actedBy: 'text',
  origin: 'text?',
  requestId: 'text?',
} as const;

/** The person or process that acted, and the request's origin. */
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
 * An operator's action. `subject` is the thing that the action affected: an address (T…), an id (prj_…, whe_…, key_…), a block id or a
 * network. `detail` depends on the action and never contains secrets.
 */
export type OperatorAction = Row<typeof columns>;

const lockLog = commandOf(
  'audit-lock',
  `select from pg_advisory_xact_lock(hashtext(format('%I.operator_actions', current_schema())))`,
);

const insertActions = answerOf(
  'operator-action-insert',
  { last: count },
  `with told as (
     insert into operator_actions
       (actor_kind, actor_id, acted_by, origin, request_id, project_id, action, subject, detail, acted_at, mac)
     select kind, actor, name, origin, request, project, action, subject, detail::jsonb, at, decode(mac, 'hex')
     from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[], $9::text[],
         $10::timestamptz[], $11::text[])
       with ordinality as _ (kind, actor, name, origin, request, project, action, subject, detail, at, mac, place)
     order by place
     returning seq)
   select max(seq) as last from told`,
  (actions: readonly OperatorAction[], macs: readonly (string | null)[]) => [
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
    macs,
  ],
  ([row]) => row?.last,
);

/**
 * Records actions in the transaction that performs them. Make this the transaction's last statement, because it blocks all other records
 * until the transaction ends. The table assigns the entry's number, which the seal covers, so this acquires the log's lock first.
 */
export async function insertOperatorActions(tx: Sql, actions: readonly OperatorAction[]): Promise<void> {
  if (actions.length === 0) return;
  const sealer = await tx.sealer();
  await lockLog(tx);
  const first = ((await findAuditHead(tx))?.seq ?? 0) + 1;
  const macs = actions.map((action, index) => hexSeal(sealer, SEALED_ACTION, { ...action, seq: first + index }));
  const last = await insertActions(tx, actions, macs);
  if (last !== first + actions.length - 1) throw new Error('actions were recorded outside of a transaction');
}

const told = { ...columns, isSound: isAsSealed(SEALED_ACTION) } as const;
const sources = { isSound: sealColumn(SEALED_ACTION, '') };

/**
 * Returns the newest 1,000 actions on a subject, oldest first, except entries with a wrong seal. An address can belong to projects on
 * several networks.
 */
export const listOperatorActions = answerOf(
  'operator-action-list',
  told,
  `select ${listColumns(told, '', sources)}
   from (select * from operator_actions where subject = $1 order by seq desc limit 1000) newest order by seq`,
  (subject: string) => [subject],
  (rows): OperatorAction[] => rows.flatMap(({ isSound, ...action }) => (isSound ? [action] : [])),
);

const found = {
  seq: count,
  ...columns,
  isSound: isAsSealed(SEALED_ACTION),
} as const;

/**
 * Returns the newest 1,000 actions after a log entry: actions on the given subjects, and actions of the given kinds on any subject. Entries
 * with a wrong seal are left out.
 */
export const findActionsSince = answerOf(
  'operator-action-since',
  found,
  `select ${listColumns(found, '', sources)} from operator_actions
   where seq > $1 and (subject = any($2::text[]) or action = any($3::text[])) order by seq desc limit 1000`,
  (seq: number, subjects: readonly string[], actions: readonly RecordedAction[]) => [seq, subjects, actions],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/** An entry with a wrong seal must not hide a genuine one. An attacker could write more of them, but each one raises `audit-broken`. */
const NEWEST = 10;

/**
 * Returns the newest ten actions of each kind on each of the given subjects after a log entry. There's no other limit, because a missing
 * action would look like a change that no one made. Entries with a wrong seal are left out.
 */
export const findActionsOn = answerOf(
  'operator-action-on',
  found,
  `select ${listColumns(found, '', sources)} from (
     select *, row_number() over (partition by subject, action order by seq desc) as place from operator_actions
     where seq > $1 and subject = any($2::text[])) newest where place <= ${NEWEST}`,
  (seq: number, subjects: readonly string[]) => [seq, subjects],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/** `isSound` means that the seal is valid, if seals are required. */
const entry = { seq: count, ...told, hash: hex() } as const;

export type AuditFilter = {
  before: number | null;
  limit: number;
  action: string | null;
  subject: string | null;
  by: string | null;
};

/** Returns the newest entries below a number, newest first. */
export const listAuditEntries = rowsOf(
  'audit-list',
  entry,
  `select ${listColumns(entry, '', sources)} from operator_actions
   where ($1::int8 is null or seq < $1) and ($2::text is null or action = $2) and ($3::text is null or subject = $3)
     and ($4::text is null or acted_by = $4)
   order by seq desc limit $5`,
  ({ before, limit, action, subject, by }: AuditFilter) => [before, action, subject, by, limit],
);

const link = { seq: count, fields: 'text[]', hash: hex(), seal: 'text?' } as const;

/**
 * An entry in the form that is hashed: its fields as text, in order, each with a leading `+`, or `-` for null. `seal` is the result of
 * `sealColumn`.
 */
export type AuditLink = Row<typeof link>;

/**
 * Returns the next entries after a number, oldest first, as text. The caller computes the hashes itself instead of trusting the database.
 */
export const readAuditLinks = rowsOf(
  'audit-links',
  link,
  `select seq, (select array_agg(coalesce('+' || field, '-') order by place) from unnest(array[seq::text,
       to_char(acted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), actor_kind, actor_id::text, acted_by, origin, request_id,
       project_id::text, action, subject, detail::text]) with ordinality as _ (field, place)) as fields, encode(hash, 'hex') as hash,
     ${sealColumn(SEALED_ACTION, '')} as seal
   from operator_actions where seq > $1 order by seq limit $2`,
  (after: number, limit: number) => [after, limit],
);

const head = { seq: count, hash: hex() } as const;

/**
 * The newest entry's number and hash. If a copy of it is kept elsewhere, the copy shows later whether the log up to that entry was
 * rewritten.
 */
export type AuditHead = Row<typeof head>;

export const findAuditHead = answerOf(
  'audit-head',
  head,
  `select ${listColumns(head)} from operator_actions order by seq desc limit 1`,
  () => [],
  ([found]): AuditHead | null => found ?? null,
);

const acknowledged = { detail: json<{ accepted?: readonly string[] }>(), seal: 'text?' } as const;

/** Returns the newest 1,000 acknowledgements of alarms about this log. `seal` is the result of `sealColumn`. */
export const readAcknowledged = rowsOf(
  'audit-acknowledged',
  acknowledged,
  `select detail::text as detail, ${sealColumn(SEALED_ACTION, '')} as seal from operator_actions
   where subject = any($1::text[]) and action = 'alarm.acknowledged' and detail ->> 'kind' = 'audit-broken' order by seq desc limit 1000`,
  (networks: readonly Network[]) => [networks],
);

/** The actor in records of the service's own actions. */
export const BY_ITSELF: RecordedActor = {
  ...{ actorKind: 'service', actorId: null, actedBy: 'quittance', origin: null, requestId: null },
};
