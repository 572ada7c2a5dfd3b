import { printableText } from '../../domain/text.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Encrypted } from '../../runtime/key-ring.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_CHANNEL } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

export const CHANNEL_KINDS = ['email', 'telegram', 'slack', 'discord', 'ntfy', 'webhook'] as const;
export type ChannelKind = (typeof CHANNEL_KINDS)[number];

const settings = {
  id: 'uuid',
  kind: text<ChannelKind>(),
  name: 'text',
  /** The non-secret part of the target. */
  shown: 'text',
  /** Quiet hours and the time of the daily summary, as minutes of the day in the channel's time zone. */
  quietFrom: 'int4?',
  quietTo: 'int4?',
  summaryAt: 'int4?',
  timeZone: 'text',
  createdAt: 'timestamptz',
  removedAt: 'timestamptz?',
} as const;

const columns = {
  ...settings,
  failingSince: 'timestamptz?',
  failures: 'int4',
  dueAt: 'timestamptz?',
  lastError: 'text?',
  lastSentAt: 'timestamptz?',
  /** Whether the row's seal is valid. */
  seal: isAsSealed(SEALED_CHANNEL),
} as const;

const COLUMNS = listColumns(columns, 'c.', { seal: sealColumn(SEALED_CHANNEL, 'c.') });
const sealedTarget = { id: 'uuid', kind: text<ChannelKind>(), masterKeyId: 'text', sealed: 'bytea' } as const;

/** A channel without its target. `failingSince` means that every attempt since then has failed. */
export type NotifyChannel = Row<typeof columns>;
export type ChannelSettings = Row<typeof settings>;
export type SealedTarget = Row<typeof sealedTarget>;

/** Adds a channel. Returns `false` if the name is already in use. */
export const insertNotifyChannel = attemptOf(
  'notify-channel-insert',
  `insert into notify_channels (id, kind, name, shown, quiet_from, quiet_to, summary_at, time_zone, created_at, master_key_id, sealed, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   on conflict (name) where removed_at is null do nothing`,
  (channel: ChannelSettings, { masterKeyId, sealed }: Encrypted) => [
    channel.id,
    channel.kind,
    channel.name,
    channel.shown,
    channel.quietFrom,
    channel.quietTo,
    channel.summaryAt,
    channel.timeZone,
    new Date(channel.createdAt),
    masterKeyId,
    sealed,
    sealOf(SEALED_CHANNEL, channel),
  ],
);

/** This many channels are enough for all operators, and all of them can be read every few seconds. */
export const MAX_CHANNELS = 100;

/** Returns the channels that haven't been removed, oldest first. */
export const listNotifyChannels = rowsOf(
  'notify-channel-list',
  columns,
  `select ${COLUMNS} from notify_channels c where c.removed_at is null order by c.created_at, c.id limit ${MAX_CHANNELS}`,
);

export const findNotifyChannel = rowOf(
  'notify-channel-find',
  columns,
  `select ${COLUMNS} from notify_channels c where c.id = $1 and c.removed_at is null`,
  (id: string) => [id],
);

/** Removes a channel permanently and erases its target. Returns `false` if it was removed in the meantime. */
export const removeNotifyChannel = attemptOf(
  'notify-channel-remove',
  `update notify_channels set removed_at = $2, sealed = '', mac = $3 where id = $1 and removed_at is null`,
  (channel: ChannelSettings, removedAt: UnixMs) => [
    channel.id,
    new Date(removedAt),
    sealOf(SEALED_CHANNEL, { ...channel, removedAt }),
  ],
);

export const findSealedTarget = rowOf(
  'notify-channel-target',
  sealedTarget,
  `select ${listColumns(sealedTarget)} from notify_channels where id = $1 and removed_at is null`,
  (id: string) => [id],
);

/** Returns up to 500 targets after the id `after` that are encrypted with another master key, locked until the transaction ends. */
export const lockTargetsUnderOtherKeys = rowsOf(
  'notify-channels-under-other-keys',
  sealedTarget,
  `select ${listColumns(sealedTarget)} from notify_channels
   where removed_at is null and master_key_id <> $1 and id > $2 order by id limit 500 for update`,
  (keyId: string, after: string) => [keyId, after],
);

export const reencryptTargetRow = commandOf(
  'notify-channel-reseal',
  'update notify_channels set master_key_id = $2, sealed = $3 where id = $1',
  (id: string, { masterKeyId, sealed }: Encrypted) => [id, masterKeyId, sealed],
);

/** Counts how many targets are encrypted with each master key. */
export const countTargetsByKey = answerOf(
  'notify-channels-by-key',
  { masterKeyId: 'text', total: count },
  `select master_key_id, count(*) as total from notify_channels where removed_at is null
   group by master_key_id order by master_key_id limit 1000`,
  () => [],
  (rows) => new Map(rows.map(({ masterKeyId, total }) => [masterKeyId, total])),
);

/** Records a successful attempt. */
export const recordChannelSent = commandOf(
  'notify-channel-sent',
  `update notify_channels set failing_since = null, failures = 0, due_at = null, last_error = null, last_sent_at = $2 where id = $1`,
  (id: string, at: UnixMs) => [id, new Date(at)],
);

const MAX_ERROR = 500;

/** Records a failed attempt. The next attempt is due at `dueAt`. */
export const recordChannelFailed = commandOf(
  'notify-channel-failed',
  `update notify_channels set failing_since = coalesce(failing_since, $2), failures = least(failures + 1, 1000000), due_at = $3, last_error = $4
   where id = $1`,
  (id: string, at: UnixMs, { dueAt, error }: { dueAt: UnixMs; error: string }) => [
    id,
    new Date(at),
    new Date(dueAt),
    printableText(error.slice(0, MAX_ERROR)),
  ],
);
