import type { Network } from '../../domain/network.ts';
import { ANY_NETWORK } from '../db/any-network.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { count, listColumns, type Row, text } from '../db/statement.ts';

/** An operator must be told of these. Each is explained in docs/chain-truth.md. */
export const ALARM_KINDS = [
  'blind',
  'halted',
  'unverifiable-block',
  'unproven-block',
  'nodes-disagree',
  'producers-refused',
  'not-solid',
  'contract-event',
  'payment-denied',
  'balance-differs',
  'address-blacklisted',
  'address-damaged',
  'address-not-vouched',
  'address-change-pending',
  'address-change-failed',
  'schema-changed',
  'row-changed',
  'capacity-low',
  'order-flood',
  'webhook-disabled',
  'secret-damaged',
  'database-restored',
  'database-full',
  'network-unwatched',
  'clock-wrong',
] as const;

export type AlarmKind = (typeof ALARM_KINDS)[number];

const ALARM = {
  id: 'uuid',
  kind: text<AlarmKind>(),
  /** The subject within the kind: a block, an address, a transaction; may be empty. */
  subject: 'text',
  detail: 'text',
  raisedAt: 'timestamptz',
  seenAt: 'timestamptz',
  seenCount: 'int4',
} as const;

export type Alarm = Row<typeof ALARM>;

const MAX_DETAIL = 2000;

/** Opens an alarm, or counts that it was seen again. Returns whether it is new. `id` is a UUID. */
export const raiseAlarm = answerOf(
  'alarm-raise',
  { isNew: 'bool' },
  `insert into alarms as a (id, network, kind, subject, detail) values ($1, $2, $3, $4, $5)
   on conflict (network, kind, subject) where resolved_at is null do update
     set seen_at = now(), seen_count = a.seen_count + 1, detail = excluded.detail
   returning a.seen_count = 1 as is_new`,
  (network: Network, alarm: Pick<Alarm, 'id' | 'kind' | 'subject' | 'detail'>) => [
    alarm.id,
    network,
    alarm.kind,
    alarm.subject,
    alarm.detail.slice(0, MAX_DETAIL),
  ],
  ([row]) => row?.isNew === true,
);

/** Closes the open alarms of a kind, of all subjects or of one. Returns how many there were. */
export const resolveAlarms = answerOf(
  'alarm-resolve',
  { id: 'uuid' },
  `update alarms set resolved_at = now()
   where network = $1 and kind = $2 and ($3::text is null or subject = $3) and resolved_at is null returning id`,
  (network: Network, kind: AlarmKind, subject: string | null = null) => [network, kind, subject],
  ({ length }) => length,
);

/**
 * Closes the open alarms of kinds that are raised again each minute while they last and were not seen for ten: whoever saw them runs no
 * more.
 */
export const resolveUnseenAlarms = commandOf(
  'alarms-resolve-unseen',
  `update alarms set resolved_at = now()
   where network in ${ANY_NETWORK} and kind = any($1) and resolved_at is null and seen_at < now() - interval '10 minutes'`,
  (kinds: readonly AlarmKind[]) => [[...kinds]],
);

/** The open alarms of a network, oldest first, at most 100. Those of projects come last, because there may be many. */
export const findOpenAlarms = rowsOf(
  'alarms-open',
  ALARM,
  `select ${listColumns(ALARM)} from alarms
   where network = $1 and resolved_at is null order by kind in ('capacity-low', 'order-flood', 'webhook-disabled', 'secret-damaged', 'address-change-failed'), raised_at, id limit 100`,
  (network: Network) => [network],
);

/** The subjects of the open alarms of a kind; the oldest 1,000. */
export const findAlarmSubjects = answerOf(
  'alarm-subjects',
  { subject: 'text' },
  'select subject from alarms where network = $1 and kind = $2 and resolved_at is null order by raised_at, id limit 1000',
  (network: Network, kind: AlarmKind) => [network, kind],
  (rows) => rows.map(({ subject }) => subject),
);

/** How many alarms of a network are open, by kind; a kind without any is absent. */
export const countOpenAlarms = answerOf(
  'alarms-count',
  { kind: text<AlarmKind>(), count },
  'select kind, count(*) as count from alarms where network = $1 and resolved_at is null group by kind',
  (network: Network) => [network],
  (rows) => new Map(rows.map((row) => [row.kind, row.count])),
);
