import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import { firstIdOf } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { sealsOfAlarm } from '../chain/alarms.ts';
import { answerOf, attemptOf, changesOf, commandOf, conditionOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { isOpenAlarm, SEALED_ACTION, SEALED_ALARM, SEALED_NOTIFICATION, SEALED_TRANSFER } from '../db/sealed-tables.ts';
import { count, hex, isAsSealed, json, listColumns, micro, type Row, text } from '../db/statement.ts';
import { notAnnulled, resolutionColumn } from '../ledger/annulments.ts';

/** Whether a notification is about the beginning or the end of something. Single events have no end. */
export type Phase = 'raised' | 'over';

const columns = {
  id: 'uuid',
  channelId: 'uuid',
  /** For example `alarm:UUID`, `transfer:UUID` or `summary:2026-09-01`. */
  about: 'text',
  phase: text<Phase>(),
  isUrgent: 'bool',
  title: 'text',
  body: 'text',
  createdAt: 'timestamptz',
  seal: isAsSealed(SEALED_NOTIFICATION),
} as const;

/** `seal` says whether Quittance wrote the text. */
export type Notification = Row<typeof columns>;
type NewNotification = Omit<Notification, 'seal'>;

const COLUMNS = listColumns(columns, 'n.', { seal: sealColumn(SEALED_NOTIFICATION, 'n.') });

/** Adds a notification to the outbox. Returns `false` if it already exists there. */
export const planNotification = attemptOf(
  'notification-plan',
  `insert into notifications (id, channel_id, about, phase, is_urgent, title, body, created_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (channel_id, about, phase) do nothing`,
  (one: NewNotification) => [
    one.id,
    one.channelId,
    one.about,
    one.phase,
    one.isUrgent,
    one.title,
    one.body,
    new Date(one.createdAt),
    sealOf(SEALED_NOTIFICATION, one),
  ],
);

/** Whether the outbox contains a channel's notification about the beginning of a subject. */
export const isPlanned = conditionOf(
  'notification-is-planned',
  `exists (select from notifications where channel_id = $1 and about = $2 and phase = 'raised')`,
  ({ channelId, about }: Pick<Notification, 'channelId' | 'about'>) => [channelId, about],
);

// No process ever claims a row for more than five minutes, so a claim that ends later than that is invalid.
const IS_DUE = `n.channel_id = $1 and n.status = 'waiting'
  and (n.claimed_until is null or n.claimed_until <= $2 or n.claimed_until > $2::timestamptz + interval '5 minutes') and (n.is_urgent or not $3::bool)`;

/** Which notifications may be sent to a channel. With `onlyUrgent`, the others wait until quiet hours are over. */
export type Due = { channelId: string; now: UnixMs; onlyUrgent: boolean };

/** Returns the number of a channel's unclaimed notifications, counting up to 1,000, and the time of the first one. */
export const peekNotifications = answerOf(
  'notification-peek',
  { count, oldestAt: 'timestamptz?' },
  `select count(*) as count, min(created_at) as oldest_at
   from (select n.created_at from notifications n where ${IS_DUE} order by n.id limit 1000) due`,
  ({ channelId, now, onlyUrgent }: Due) => [channelId, new Date(now), onlyUrgent],
  ([row]) => row ?? { count: 0, oldestAt: null },
);

/** Claims up to `limit` waiting notifications until `until`, urgent ones first and otherwise in order. */
export const claimNotifications = answerOf(
  'notification-claim',
  columns,
  `with due as materialized (
     select n.id from notifications n where ${IS_DUE} order by n.is_urgent desc, n.id limit $5 for update skip locked)
   update notifications n set claimed_until = $4 from due where n.id = due.id returning ${COLUMNS}`,
  ({ channelId, now, onlyUrgent, until, limit }: Due & { until: UnixMs; limit: number }) => [
    channelId,
    new Date(now),
    onlyUrgent,
    new Date(until),
    limit,
  ],
  (rows) => rows.toSorted((a, b) => Number(b.isUrgent) - Number(a.isUrgent) || (a.id < b.id ? -1 : 1)),
);

/** Records that the notifications were delivered. */
export const recordNotificationsSent = commandOf(
  'notification-sent',
  `update notifications set status = 'sent', ended_at = $2 where id = any($1::uuid[]) and status = 'waiting'`,
  (ids: readonly string[], at: UnixMs) => [ids, new Date(at)],
);

/** Releases notifications whose attempt failed, so that they can be claimed for the next attempt. */
export const returnNotifications = commandOf(
  'notification-return',
  `update notifications set claimed_until = null where id = any($1::uuid[]) and status = 'waiting'`,
  (ids: readonly string[]) => [ids],
);

/** Gives up on notifications that are too old or whose channel was removed, up to 1,000 at a time. Returns how many there were. */
export const giveUpNotifications = changesOf(
  'notification-give-up',
  `update notifications set status = 'given-up', ended_at = $2 where id in (
     select n.id from notifications n join notify_channels c on c.id = n.channel_id
     where n.status = 'waiting' and (n.created_at < $1 or c.removed_at is not null) limit 1000)`,
  (before: UnixMs, now: UnixMs) => [new Date(before), new Date(now)],
);

/** Deletes up to 1,000 notifications that ended before a given time, except those whose alarm is still open. */
export const forgetOldNotifications = commandOf(
  'notification-forget-old',
  'select from forget_old_notifications($1)',
  (before: UnixMs) => [new Date(before)],
);

/** The columns for a channel's notification. `wasRaised` means that the channel was notified of the beginning, or will be. */
const forChannel = { channelId: 'uuid', wasRaised: 'bool' } as const;

const alarm = {
  id: 'uuid',
  network: text<Network>(),
  kind: text<AlarmKind>(),
  subject: 'text',
  detail: 'text',
  raisedAt: 'timestamptz',
  resolvedAt: 'timestamptz?',
  /** Whether Quittance wrote the text. This can't be checked if the alarm is resolved. */
  seal: isAsSealed(SEALED_ALARM),
  /** The seals on the alarm's end and text; see `isSilenced` and `areWordsSound`. */
  end: 'text?',
  words: 'text',
} as const;
export type PendingAlarm = Row<typeof alarm & typeof forChannel>;

/** The SQL that selects a channel's outbox row about a subject. */
const told = (about: string, phase: string) =>
  `select from notifications n where n.channel_id = c.id and n.about = ${about} and n.phase = '${phase}'`;
const ABOUT_ALARM = `'alarm:' || a.id`;

/**
 * Returns the first 500 alarms that a channel must be notified of: open alarms, alarms that were raised and ended since the channel was
 * added, and reported alarms that have ended. Alarms that ended before `since` are skipped.
 */
export const findPendingAlarms = rowsOf(
  'news-alarms',
  { ...forChannel, ...alarm },
  `select c.id as channel_id, exists (${told(ABOUT_ALARM, 'raised')}) as was_raised, a.id, a.network, a.kind, a.subject, a.detail,
     a.raised_at, a.resolved_at, ${sealColumn(SEALED_ALARM, 'a.')} as seal, ${sealsOfAlarm('a.')}
   from (select * from alarms where resolved_at is null union all select * from alarms where resolved_at > $1) a
   cross join notify_channels c
   where c.removed_at is null and case
     when exists (${told(ABOUT_ALARM, 'raised')}) then not ${isOpenAlarm('a.')} and not exists (${told(ABOUT_ALARM, 'over')})
     else ${isOpenAlarm('a.')} or a.raised_at >= c.created_at end
   order by a.raised_at, a.id limit 500`,
  (since: UnixMs) => [new Date(since)],
);

const money = {
  transferId: 'uuid',
  network: text<Network>(),
  projectId: 'uuid',
  projectName: 'text',
  kind: text<'duplicate' | 'unmatched'>(),
  amountMicro: micro(),
  txId: hex(),
  seal: isAsSealed(SEALED_TRANSFER),
} as const;
export type PendingTransfer = Row<typeof money & { readonly channelId: 'uuid' }>;
const ABOUT_TRANSFER = `'transfer:' || t.id`;
const MONEY = `t.id as transfer_id, t.network, t.project_id, p.name as project_name, t.kind, t.amount_micro, encode(t.tx_id, 'hex') as tx_id,
  ${sealColumn(SEALED_TRANSFER, 't.')} as seal`;

/**
 * Returns the first 500 unmatched transfers that arrived after a channel was added, but not before `since`, and haven't been reported to
 * it.
 */
export const findPendingTransfers = rowsOf(
  'news-money',
  { channelId: 'uuid', ...money },
  `select c.id as channel_id, ${MONEY}
   from projects p join transfers t on t.project_id = p.id and t.kind <> 'matched' and t.id >= $1
   join notify_channels c on c.removed_at is null and t.recorded_at >= c.created_at
   where ${notAnnulled('t')} and not exists (${told(ABOUT_TRANSFER, 'raised')}) order by t.id limit 500`,
  (since: UnixMs) => [firstIdOf(since)],
);

/** Returns the first 500 reported transfers that were resolved or annulled after they had been reported. */
export const findSettledTransfers = rowsOf(
  'news-money-over',
  { channelId: 'uuid', ...money, how: 'text' },
  `select c.id as channel_id, ${MONEY}, ended.how
   from (select distinct on (transfer_id) transfer_id, resolution as how from (
       select transfer_id, ${resolutionColumn('')} as resolution from transfer_resolutions where resolved_at > $1
       union all select transfer_id, 'taken back' from transfer_annulments where annulled_at > $1) found) ended
   join transfers t on t.id = ended.transfer_id join projects p on p.id = t.project_id
   join notify_channels c on c.removed_at is null
   where exists (${told(ABOUT_TRANSFER, 'raised')}) and not exists (${told(ABOUT_TRANSFER, 'over')}) order by t.id limit 500`,
  (since: UnixMs) => [new Date(since)],
);

const owner = {
  seq: count,
  action: text<'admin-key.created' | 'user.invited' | 'user.changed' | 'user.reset'>(),
  subject: 'text',
  detail: json<{ name?: string; login?: string }>(),
  actedBy: 'text',
  origin: 'text?',
  actedAt: 'timestamptz',
  seal: isAsSealed(SEALED_ACTION),
} as const;
export type PendingOwnerChange = Row<typeof owner & { readonly channelId: 'uuid' }>;

/**
 * Returns the first 500 unreported audit log entries that make someone an owner or give an owner a new link. The entries are newer than the
 * channel, and not older than `since`.
 */
export const findPendingOwnerChanges = rowsOf(
  'news-owners',
  { channelId: 'uuid', ...owner },
  `select c.id as channel_id, ${listColumns(owner, 'o.', { seal: sealColumn(SEALED_ACTION, 'o.') })}
   from operator_actions o join notify_channels c on c.removed_at is null and o.acted_at >= c.created_at
   where o.action in ('admin-key.created', 'user.invited', 'user.changed', 'user.reset') and o.acted_at > $1
     and coalesce(o.detail ->> 'to', o.detail ->> 'role') = 'owner' and o.detail ->> 'from' is distinct from 'owner'
     and not exists (${told(`'owner:' || o.seq`, 'raised')}) order by o.seq limit 500`,
  (since: UnixMs) => [new Date(since)],
);

/** Returns a day's totals for each network: paid invoices and unmatched transfers. */
export const sumDay = rowsOf(
  'news-day',
  { network: text<Network>(), paid: count, paidMicro: micro(), strays: count, strayMicro: micro() },
  `select t.network, count(*) filter (where t.kind = 'matched') as paid,
     coalesce(sum(t.amount_micro) filter (where t.kind = 'matched'), 0) as paid_micro,
     count(*) filter (where t.kind <> 'matched') as strays,
     coalesce(sum(t.amount_micro) filter (where t.kind <> 'matched'), 0) as stray_micro
   from projects p join transfers t on t.project_id = p.id and t.id >= $1 where ${notAnnulled('t')} group by t.network order by t.network`,
  (since: UnixMs) => [firstIdOf(since)],
);

/** Counts the open alarms by network and kind. */
export const countAlarms = rowsOf(
  'news-open-alarms',
  { network: text<Network>(), kind: text<AlarmKind>(), count },
  `select network, kind, count(distinct subject) as count from alarms where ${isOpenAlarm('')} group by network, kind order by network, kind`,
);
