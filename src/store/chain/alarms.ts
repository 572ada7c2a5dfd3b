import type { Network } from '../../domain/network.ts';
import { ANY_NETWORK } from '../db/any-network.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
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
  'contract-paused',
  'address-frozen',
  'funds-destroyed',
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
  'rate-old',
  'notify-failing',
  'secret-damaged',
  'database-restored',
  'database-promoted',
  'backup-failed',
  'backup-old',
  'database-full',
  'network-unwatched',
  'clock-wrong',
] as const;

export type AlarmKind = (typeof ALARM_KINDS)[number];

/** These tell of a single event, so they end when an operator has read them. Every other alarm ends with its cause. */
export const CLOSED_BY_OPERATORS: readonly AlarmKind[] = [
  ...([
    'contract-event',
    'funds-destroyed',
    'unproven-block',
    'payment-denied',
    'database-restored',
    'database-promoted',
    'address-change-failed',
  ] as const),
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
const [PAGE, MAX_PAGES] = [1000, 100];
const OF_PROJECTS: readonly AlarmKind[] = [
  ...([
    'capacity-low',
    'order-flood',
    'webhook-failing',
    'webhook-disabled',
    'rate-old',
    'notify-failing',
    'secret-damaged',
  ] as const),
  'address-change-failed',
];

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

const readAlarms = rowsOf(
  'alarms-open',
  { ...ALARM, network: 'text', seal: isAsSealed(SEALED_ALARM) },
  `select ${listColumns(ALARM)}, network, ${sealColumn(SEALED_ALARM, '')} as seal from alarms
   where network = $1 and resolved_at is null and (kind, subject) > ($2, $3) order by kind, subject limit ${PAGE}`,
  (network: Network, [kind, subject]: readonly [string, string]) => [network, kind, subject],
);

/**
 * The open alarms of a network that are as Quittance raised them, oldest first, and those that are not, of the first 100,000. Those of projects
 * come last, because there may be many. So nobody hides one among others that he makes up.
 */
export async function findSoundAlarms(db: Sql, network: Network): Promise<{ alarms: Alarm[]; madeUp: Alarm[] }> {
  const alarms: Alarm[] = [];
  const madeUp: Alarm[] = [];
  for (let [after, page]: [[string, string], number] = [['', ''], 0]; page < MAX_PAGES; page += 1) {
    const rows = await readAlarms(db, network, after);
    for (const { seal, network: _, ...alarm } of rows) {
      if (seal) alarms.push(alarm);
      else madeUp.push(alarm);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) break;
    after = [last.kind, last.subject];
  }
  const rank = ({ kind }: Alarm) => Number(OF_PROJECTS.includes(kind));
  alarms.sort((a, b) => rank(a) - rank(b) || a.raisedAt - b.raisedAt || (a.id < b.id ? -1 : 1));
  return { alarms, madeUp };
}

/** As many as a person looks at. */
const MAX_SHOWN = 100;

/** The first 100 of them, and one in the place of all that somebody made up, whose words nobody is told. */
export async function findOpenAlarms(db: Sql, network: Network): Promise<Alarm[]> {
  const { alarms, madeUp } = await findSoundAlarms(db, network);
  const shown = alarms.slice(0, MAX_SHOWN);
  const [first] = madeUp;
  if (first === undefined) return shown;
  const detail = `Quittance did not raise ${madeUp.length} of the alarms that stand in the database, or not with these words: somebody wrote them to the database. See "row-changed" in docs/operations.md`;
  return [...shown, { ...first, kind: 'row-changed', subject: '', detail, seenCount: madeUp.length }];
}

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
