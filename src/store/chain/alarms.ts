import type { Network } from '../../domain/network.ts';
import { ANY_NETWORK } from '../db/any-network.ts';
import { answerOf, commandOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_ALARM } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

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
  'rows-missing',
  'audit-broken',
  'watch-stalled',
  'capacity-low',
  'order-flood',
  'webhook-failing',
  'webhook-disabled',
  'notify-failing',
  'secret-damaged',
  'database-restored',
  'backup-failed',
  'backup-old',
  'database-full',
  'network-unwatched',
  'clock-wrong',
] as const;

export type AlarmKind = (typeof ALARM_KINDS)[number];

/** These tell of a single event, so they end when an operator has read them. Every other alarm ends with its cause. */
export const CLOSED_BY_OPERATORS: readonly AlarmKind[] = [
  ...(['contract-event', 'unproven-block', 'payment-denied', 'database-restored', 'address-change-failed'] as const),
  ...(['row-changed', 'rows-missing', 'audit-broken'] as const),
];

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
/** Instead of what it says. */
const MADE_UP =
  'Quittance did not raise this alarm, or not with these words: somebody wrote it to the database. See "row-changed" in docs/operations.md';

/** Opens an alarm, or counts that it was seen again. Returns whether it is new. `id` is a UUID. */
export const raiseAlarm = answerOf(
  'alarm-raise',
  { isNew: 'bool' },
  `insert into alarms as a (id, network, kind, subject, detail, mac) values ($1, $2, $3, $4, $5, $6)
   on conflict (network, kind, subject) where resolved_at is null do update
     set seen_at = now(), seen_count = a.seen_count + 1, detail = excluded.detail, mac = excluded.mac
   returning a.seen_count = 1 as is_new`,
  (network: Network, { id, kind, subject, detail: whole }: Pick<Alarm, 'id' | 'kind' | 'subject' | 'detail'>) => {
    const detail = whole.slice(0, MAX_DETAIL);
    return [id, network, kind, subject, detail, sealOf(SEALED_ALARM, { network, kind, subject, detail })];
  },
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

/** The open alarms of a network, oldest first, at most 100. What somebody made up is told without its words. Those of projects come last, because there may be many. */
export const findOpenAlarms = answerOf(
  'alarms-open',
  { ...ALARM, network: 'text', seal: isAsSealed(SEALED_ALARM) },
  `select ${listColumns(ALARM)}, network, ${sealColumn(SEALED_ALARM, '')} as seal from alarms
   where network = $1 and resolved_at is null order by kind in ('capacity-low', 'order-flood', 'webhook-failing', 'webhook-disabled', 'notify-failing', 'secret-damaged', 'address-change-failed'), raised_at, id limit 100`,
  (network: Network) => [network],
  (rows) => rows.map(({ seal, network: _, ...alarm }): Alarm => (seal ? alarm : { ...alarm, detail: MADE_UP })),
);

/** Whether an open alarm of any network says that a row was changed or is missing, by its subject. */
export const hasAlarm = answerOf(
  'alarm-about-row',
  { any: 'bool' },
  `select exists (select from alarms where kind in ('row-changed', 'rows-missing') and subject = any($1::text[]) and resolved_at is null) as any`,
  (subjects: readonly string[]) => [subjects],
  ([row]) => row?.any === true,
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
