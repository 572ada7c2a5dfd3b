import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** What an operator must be told. Each is explained in docs/chain-truth.md. */
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
  'schema-changed',
  'capacity-low',
  'order-flood',
  'webhook-disabled',
  'secret-damaged',
  'database-restored',
] as const;

export type AlarmKind = (typeof ALARM_KINDS)[number];

export type Alarm = {
  id: string;
  kind: AlarmKind;
  /** What it is about within its kind: a block, an address, a transaction; may be empty. */
  subject: string;
  detail: string;
  raisedAt: UnixMs;
  seenAt: UnixMs;
  seenCount: number;
};

const MAX_DETAIL = 2000;

const raise = statement(
  'alarm-raise',
  { is_new: 'bool' },
  `insert into alarms as a (id, network, kind, subject, detail) values ($1, $2, $3, $4, $5)
   on conflict (network, kind, subject) where resolved_at is null do update
     set seen_at = now(), seen_count = a.seen_count + 1, detail = excluded.detail
   returning a.seen_count = 1 as is_new`,
);

/** Opens an alarm, or counts that it was seen again. Returns whether it is new. `id` is a UUID. */
export async function raiseAlarm(
  db: Sql,
  network: Network,
  alarm: Pick<Alarm, 'id' | 'kind' | 'subject' | 'detail'>,
): Promise<boolean> {
  const [row] = await db.run(raise, [alarm.id, network, alarm.kind, alarm.subject, alarm.detail.slice(0, MAX_DETAIL)]);
  return row?.is_new === true;
}

const resolve = statement(
  'alarm-resolve',
  { id: 'uuid' },
  `update alarms set resolved_at = now()
   where network = $1 and kind = $2 and ($3::text is null or subject = $3) and resolved_at is null returning id`,
);

/** Closes the open alarms of a kind, of all subjects or of one. Returns how many there were. */
export async function resolveAlarms(
  db: Sql,
  network: Network,
  kind: AlarmKind,
  subject: string | null = null,
): Promise<number> {
  return (await db.run(resolve, [network, kind, subject])).length;
}

const open = statement(
  'alarms-open',
  {
    id: 'uuid',
    kind: 'text',
    subject: 'text',
    detail: 'text',
    raised_at: 'timestamptz',
    seen_at: 'timestamptz',
    seen_count: 'int4',
  },
  `select id, kind, subject, detail, raised_at, seen_at, seen_count from alarms
   where network = $1 and resolved_at is null order by kind in ('capacity-low', 'order-flood', 'webhook-disabled', 'secret-damaged'), raised_at, id limit 100`,
);

/** The open alarms of a network, oldest first, at most 100. Those of projects come last, because there may be many. */
export async function findOpenAlarms(db: Sql, network: Network): Promise<Alarm[]> {
  return (await db.run(open, [network])).map((row) => ({
    id: row.id,
    kind: row.kind as AlarmKind,
    subject: row.subject,
    detail: row.detail,
    raisedAt: row.raised_at,
    seenAt: row.seen_at,
    seenCount: row.seen_count,
  }));
}

const subjects = statement(
  'alarm-subjects',
  { subject: 'text' },
  'select subject from alarms where network = $1 and kind = $2 and resolved_at is null order by raised_at, id limit 1000',
);

/** What the open alarms of a kind are about; the oldest 1,000. */
export async function findAlarmSubjects(db: Sql, network: Network, kind: AlarmKind): Promise<string[]> {
  return (await db.run(subjects, [network, kind])).map(({ subject }) => subject);
}

const count = statement(
  'alarms-count',
  { kind: 'text', count: 'int8' },
  'select kind, count(*) as count from alarms where network = $1 and resolved_at is null group by kind',
);

/** How many alarms of a network are open, by kind; a kind without any is absent. */
export async function countOpenAlarms(db: Sql, network: Network): Promise<Map<AlarmKind, number>> {
  const rows = await db.run(count, [network]);
  return new Map(rows.map((row) => [row.kind as AlarmKind, Number(row.count)]));
}
