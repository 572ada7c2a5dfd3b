import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_NOTIFICATION } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

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
export type NewNotification = Omit<Notification, 'seal'>;

const COLUMNS = listColumns(columns, 'n.', { seal: sealColumn(SEALED_NOTIFICATION, 'n.') });

/** Adds a notification to the outbox. Returns `false` if it already exists there. */
export const planNotification = answerOf(
  'notification-plan',
  { id: 'uuid' },
  `insert into notifications (id, channel_id, about, phase, is_urgent, title, body, created_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (channel_id, about, phase) do nothing returning id`,
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
  ({ length }) => length === 1,
);

/** Whether the outbox contains a channel's notification about the beginning of a subject. */
export const isPlanned = answerOf(
  'notification-is-planned',
  { isPlanned: 'bool' },
  `select exists (select from notifications where channel_id = $1 and about = $2 and phase = 'raised') as is_planned`,
  ({ channelId, about }: Pick<Notification, 'channelId' | 'about'>) => [channelId, about],
  ([row]) => row?.isPlanned === true,
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
export const giveUpNotifications = answerOf(
  'notification-give-up',
  { id: 'uuid' },
  `update notifications set status = 'given-up', ended_at = $2 where id in (
     select n.id from notifications n join notify_channels c on c.id = n.channel_id
     where n.status = 'waiting' and (n.created_at < $1 or c.removed_at is not null) limit 1000)
   returning id`,
  (before: UnixMs, now: UnixMs) => [new Date(before), new Date(now)],
  ({ length }) => length,
);

/** Deletes up to 1,000 notifications that ended before a given time, except those whose alarm is still open. */
export const forgetOldNotifications = answerOf(
  'notification-forget-old',
  { isDone: 'bool' },
  'select forget_old_notifications($1) is null as is_done',
  (before: UnixMs) => [new Date(before)],
  () => undefined,
);
