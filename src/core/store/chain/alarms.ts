import { randomUUID } from 'node:crypto';
import { type AlarmKind, alarmRow } from '../../domain/alarm-kinds.ts';
import { NETWORKS, type Network } from '../../domain/network.ts';
import { printableText } from '../../domain/text.ts';
import { createLogThrottle, type Logger } from '../../runtime/log.ts';
import { ANY_NETWORK } from '../db/any-network.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, changesOf, conditionOf, rowsOf } from '../db/rows-of.ts';
import { hexSeal, type OpenedSeal, type Sealer, sealColumn, sealOf } from '../db/seal.ts';
import { isOpenAlarm, SEALED_ALARM, SEALED_CLOSED } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, type Row, text } from '../db/statement.ts';

const ALARM = {
  id: 'uuid',
  kind: text<AlarmKind>(),
  /** The alarm's subject within its kind: a block, an address or a transaction. May be empty. */
  subject: 'text',
  detail: 'text',
  raisedAt: 'timestamptz',
  seenAt: 'timestamptz',
  seenCount: 'int4',
} as const;

export type Alarm = Row<typeof ALARM>;

type NewAlarm = Pick<Alarm, 'kind' | 'subject' | 'detail'> & { id?: string };

const MAX_DETAIL = 2000;
const [PAGE, MAX_PAGES] = [1000, 100];
/**
 * Opens an alarm, or counts another occurrence of an open one. An alarm counts as open if its end has no valid seal. Returns whether it's
 * new.
 */
export const raiseAlarm = answerOf(
  'alarm-raise',
  { isNew: 'bool' },
  `with unclosed as (
     update alarms a set seen_at = now(), seen_count = least(a.seen_count + 1, 1000000000), detail = $5, mac = $6
     where a.id = (
       select id from alarms where network = $2 and kind = $3 and subject = $4
         and resolved_at is not null and needs_closing and closed_mac is null order by raised_at desc limit 1)
     returning a.id),
   opened as (
     insert into alarms as a (id, network, kind, subject, detail, mac)
     select $1, $2, $3, $4, $5, $6 where not exists (select from unclosed)
     on conflict (network, kind, subject) where resolved_at is null do update
       set seen_at = now(), seen_count = least(a.seen_count + 1, 1000000000), detail = excluded.detail, mac = excluded.mac
     returning a.seen_count = 1 as is_new)
   select is_new from opened union all select false from unclosed`,
  (network: Network, { id = randomUUID(), kind, ...given }: NewAlarm) => {
    // A message from outside must never block an alarm.
    const subject = printableText(given.subject);
    const detail = printableText(given.detail.slice(0, MAX_DETAIL));
    return [id, network, kind, subject, detail, sealOf(SEALED_ALARM, { network, kind, subject, detail })];
  },
  ([row]) => row?.isNew === true,
);

const named = { id: 'uuid', network: text<Network>(), kind: text<AlarmKind>(), subject: 'text' } as const;
type Named = Row<typeof named>;

const findToClose = rowsOf(
  'alarms-to-close',
  named,
  `select ${listColumns(named)} from alarms
   where network = $1 and kind = $2 and ($3::text is null or subject = $3) and ${isOpenAlarm('')}`,
  (network: Network, kind: AlarmKind, subject: string | null) => [network, kind, subject && printableText(subject)],
);

const close = changesOf(
  'alarms-close',
  `update alarms a set resolved_at = coalesce(a.resolved_at, now()), closed_mac = decode(given.mac, 'hex')
   from unnest($1::uuid[], $2::text[]) given (id, mac) where a.id = given.id and (a.needs_closing or ${isOpenAlarm('a.')})`,
  (alarms: readonly Named[], macs: readonly string[]) => [alarms.map(({ id }) => id), macs],
);

/** Marks a sealed alarm as ended by a process without a master key. This is valid only if no process has a key. */
const ENDED_WITHOUT_KEY = '00'.repeat(24);

async function closeAll(db: Sql, alarms: readonly Named[]): Promise<number> {
  if (alarms.length === 0) return 0;
  const sealer = await db.sealer(true);
  return close(
    db,
    alarms,
    alarms.map((alarm) => hexSeal(sealer, SEALED_CLOSED, alarm) ?? ENDED_WITHOUT_KEY),
  );
}

/** Closes the open alarms of a kind, for one subject or for all subjects. Returns how many there were. */
export async function resolveAlarms(
  db: Sql,
  network: Network,
  kind: AlarmKind,
  subject: string | null = null,
): Promise<number> {
  const open = await findToClose(db, network, kind, subject);
  const silenced = (await findSilenced(db, network)).filter(
    (alarm) =>
      alarm.kind === kind && (subject === null || alarm.subject === subject) && !open.some(({ id }) => id === alarm.id),
  );
  return closeAll(db, [...open, ...silenced.map((alarm) => ({ ...alarm, network }))]);
}

const findUnseen = rowsOf(
  'alarms-unseen',
  named,
  `select ${listColumns(named)} from alarms
   where network in ${ANY_NETWORK} and kind = any($1) and ${isOpenAlarm('')} and seen_at < now() - interval '10 minutes' limit 1000`,
  (kinds: readonly AlarmKind[]) => [[...kinds]],
);

/**
 * Closes open alarms that haven't been seen for ten minutes. Call it only for kinds whose alarms are raised again every minute as long as
 * the problem lasts: the process that raised such an alarm is no longer running.
 */
export async function resolveUnseenAlarms(db: Sql, kinds: readonly AlarmKind[]): Promise<void> {
  await closeAll(db, await findUnseen(db, kinds));
}

const readAlarms = rowsOf(
  'alarms-open',
  { ...ALARM, network: 'text', seal: isAsSealed(SEALED_ALARM) },
  `select ${listColumns(ALARM)}, network, ${sealColumn(SEALED_ALARM, '')} as seal from alarms
   where network = $1 and resolved_at is null and (kind, subject) > ($2, $3) order by kind, subject limit ${PAGE}`,
  (network: Network, [kind, subject]: readonly [string, string]) => [network, kind, subject],
);

/**
 * Only this many closed alarms are read. An attacker who wants to hide an alarm behind that many others needs fake ones, which reveal the
 * attack.
 */
const CLOSED_LATELY = 1000;
/** Seals an alarm's text, whether or not the alarm is over. */
const SEALED_WORDS = { ...SEALED_ALARM, needed: null };

const readClosed = rowsOf(
  'alarms-closed-lately',
  { ...ALARM, network: 'text', end: 'text?', words: 'text' },
  `select distinct on (kind, subject) ${listColumns(ALARM)}, network, ${sealColumn(SEALED_CLOSED, '')} as "end",
     ${sealColumn(SEALED_WORDS, '')} as words
   from (select * from alarms where network = $1 and resolved_at is not null order by raised_at desc limit ${CLOSED_LATELY}) a
   where needs_closing order by kind, subject, raised_at desc`,
  (network: Network) => [network],
);

/**
 * If Quittance didn't write an alarm's end, returns that end's seal, otherwise null. `end` is the result of `sealColumn` with
 * `SEALED_CLOSED`.
 */
function falseEnd(sealer: Sealer | null, end: string | null): OpenedSeal | null {
  const opened = end === null ? undefined : sealer?.open(SEALED_CLOSED, end);
  return opened?.problem ? opened : null;
}

/** Whether the alarm was closed directly in the database. */
export function isSilenced(sealer: Sealer | null, end: string | null): boolean {
  return falseEnd(sealer, end) !== null;
}

/** Whether an alarm, even one that is over, still has the text that Quittance raised it with. `words` is the result of `sealColumn`. */
export function areWordsSound(sealer: Sealer | null, words: string): boolean {
  return sealer === null || sealer.open(SEALED_WORDS, words).problem === null;
}

/** The SQL for the arguments of `isSilenced` and `areWordsSound`. */
export const sealsOfAlarm = (row: string) =>
  `${sealColumn(SEALED_CLOSED, row)} as "end", ${sealColumn(SEALED_WORDS, row)} as words`;

/**
 * `isSound`: Quittance wrote the text. `unknownKey`: the id of the master key that sealed the end, if this process doesn't have that key.
 * `falseMac`: the end's MAC in hex, or some other text if the end has none.
 */
type Silenced = Alarm & { isSound: boolean; unknownKey: string | null; falseMac: string };

/**
 * Returns a network's alarms that were closed directly in the database, among the thousand that were raised last. They count as open,
 * because no one has read them and their cause may still exist.
 */
export async function findSilenced(db: Sql, network: Network): Promise<Silenced[]> {
  const sealer = await db.sealer(false);
  if (sealer === null) return [];
  const rows = await readClosed(db, network);
  return rows.flatMap(({ end, words, network: _, ...alarm }) => {
    const seal = falseEnd(sealer, end);
    if (seal === null) return [];
    const unknownKey = seal.problem === 'unknown-key' ? seal.keyId : null;
    return [{ ...alarm, isSound: areWordsSound(sealer, words), unknownKey, falseMac: seal.parts[0] ?? '' }];
  });
}

/** Whether the end was written by a process without a master key, or by someone imitating one. */
export function isEndWithoutKey({ unknownKey }: Pick<Silenced, 'unknownKey'>): boolean {
  return unknownKey !== null && ENDED_WITHOUT_KEY.startsWith(unknownKey);
}

/**
 * Whether processes from the previous release, which didn't seal the ends of alarms, may still be running. This is assumed for an hour
 * after the upgrade.
 */
export const isUpgrading = conditionOf(
  'alarms-upgrading',
  `exists (select from schema_migrations where name = '0041_true_alarms.sql' and applied_at > now() - interval '1 hour')`,
);

/**
 * Removes the false MACs from the ends of alarms, so that all counts treat these alarms as open. If Quittance has closed an alarm in the
 * meantime, its end stays.
 */
export const reopenAlarms = changesOf(
  'alarms-reopen',
  `update alarms a set closed_mac = null from unnest($1::uuid[], $2::text[]) given (id, mac)
   where a.id = given.id and encode(a.closed_mac, 'hex') = given.mac`,
  (alarms: readonly Pick<Silenced, 'id' | 'falseMac'>[]) => [
    alarms.map(({ id }) => id),
    alarms.map(({ falseMac }) => falseMac),
  ],
);

/**
 * Returns a network's oldest 100,000 open alarms, separated into valid and forged ones. Alarms about projects come last, because there may
 * be many. This way, no one can hide an alarm among forged ones or by marking it as over.
 */
export async function findSoundAlarms(db: Sql, network: Network): Promise<{ alarms: Alarm[]; madeUp: Alarm[] }> {
  const alarms: Alarm[] = [];
  const madeUp: Alarm[] = [];
  const known = new Set<string>();
  for (let [after, page]: [[string, string], number] = [['', ''], 0]; page < MAX_PAGES; page += 1) {
    const rows = await readAlarms(db, network, after);
    for (const { seal, network: _, ...alarm } of rows) {
      if (seal) known.add(`${alarm.kind} ${alarm.subject}`);
      (seal ? alarms : madeUp).push(alarm);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) break;
    after = [last.kind, last.subject];
  }
  for (const { isSound, unknownKey: _, falseMac: __, ...alarm } of await findSilenced(db, network)) {
    if (!known.has(`${alarm.kind} ${alarm.subject}`)) (isSound ? alarms : madeUp).push(alarm);
  }
  const rank = ({ kind }: Alarm) => Number(alarmRow(kind).scope === 'project');
  alarms.sort((a, b) => rank(a) - rank(b) || a.raisedAt - b.raisedAt || (a.id < b.id ? -1 : 1));
  return { alarms, madeUp };
}

/** A person can read this many alarms. */
const MAX_SHOWN = 100;

/** Returns the first 100 open alarms. All forged alarms are represented by a single one, and their text isn't shown. */
export async function findOpenAlarms(db: Sql, network: Network): Promise<Alarm[]> {
  const { alarms, madeUp } = await findSoundAlarms(db, network);
  const shown = alarms.slice(0, MAX_SHOWN);
  const [first] = madeUp;
  if (first === undefined) return shown;
  const detail = `Quittance did not raise ${madeUp.length} of the alarms in the database, or raised them with different text: someone changed them directly in the database. See "row-changed" in docs/reference/alarms.md`;
  return [...shown, { ...first, kind: 'row-changed', subject: '', detail, seenCount: madeUp.length }];
}

/** Whether an open alarm on any network reports a changed or missing row with one of these subjects. */
export const hasAlarm = conditionOf(
  'alarm-about-row',
  `exists (
     select from alarms where kind in ('row-changed', 'rows-missing') and subject = any($1::text[]) and ${isOpenAlarm('')})`,
  (subjects: readonly string[]) => [subjects],
);

/** Returns the subjects of a kind's open alarms, up to the oldest 1,000. */
export const findAlarmSubjects = answerOf(
  'alarm-subjects',
  { subject: 'text' },
  `select subject from alarms where network = $1 and kind = $2 and ${isOpenAlarm('')}
   group by subject order by min(raised_at), subject limit 1000`,
  (network: Network, kind: AlarmKind) => [network, kind],
  (rows) => rows.map(({ subject }) => subject),
);

const countStored = answerOf(
  'alarms-count',
  { kind: text<AlarmKind>(), count },
  `select kind, count(distinct subject) as count from alarms where network = $1 and ${isOpenAlarm('')} group by kind`,
  (network: Network) => [network],
  (rows) => new Map(rows.map((row) => [row.kind, row.count])),
);

/** Counts a network's open alarms by kind, including alarms that were closed directly in the database. */
export async function countOpenAlarms(db: Sql, network: Network): Promise<Map<AlarmKind, number>> {
  const counts = await countStored(db, network);
  const hidden = new Map<AlarmKind, number>();
  for (const { kind } of await findSilenced(db, network)) hidden.set(kind, (hidden.get(kind) ?? 0) + 1);
  for (const [kind, length] of hidden) counts.set(kind, Math.max(length, counts.get(kind) ?? 0));
  return counts;
}

/** A current problem. `detail` says what happened and what to do. */
export type Finding = { network: Network; subject: string; detail: string };
/** Nothing is logged if `log` is absent. Commands that print their results leave it out. */
type Telling = { db: Sql; log?: Logger | undefined };

/** Raises an alarm, and logs it if it is new. */
export async function tellAlarm(
  { db, log }: Telling,
  kind: AlarmKind,
  { network, subject, detail }: Finding,
): Promise<void> {
  if (await raiseAlarm(db, network, { kind, subject, detail })) log?.error({ alarm: kind, subject }, detail);
}

export async function endAlarm(
  { db, log }: Telling,
  kind: AlarmKind,
  network: Network,
  subject: string,
): Promise<void> {
  if ((await resolveAlarms(db, network, kind, subject)) > 0)
    log?.info({ alarm: kind, subject }, 'the alarm is resolved');
}

/**
 * Raises an alarm for each finding, and closes all other alarms of this kind on these networks. With `isOnce`, an open alarm isn't raised
 * again.
 */
export async function settleAlarms(
  telling: Telling,
  kind: AlarmKind,
  found: readonly Finding[],
  { networks = NETWORKS, isOnce = false }: { networks?: readonly Network[]; isOnce?: boolean } = {},
): Promise<void> {
  const open = new Set<string>();
  for (const network of networks) {
    for (const subject of await findAlarmSubjects(telling.db, network, kind)) {
      if (found.some((each) => each.network === network && each.subject === subject)) open.add(`${network} ${subject}`);
      else await endAlarm(telling, kind, network, subject);
    }
  }
  for (const each of found) {
    if (!isOnce || !open.has(`${each.network} ${each.subject}`)) await tellAlarm(telling, kind, each);
  }
}

/**
 * Returns a function that raises an alarm at most once a minute per subject, for problems that any statement may encounter repeatedly. It
 * never throws. After a failure, the alarm is due again.
 */
export function createTeller({ db, log, now }: { db(): Sql; log: Logger; now(): number }) {
  const throttle = createLogThrottle(now);
  return (kind: AlarmKind, networks: readonly Network[], subject: string, detail: string): void => {
    if (!throttle.isDue(`${kind} ${subject}`)) return;
    const tell = async () => {
      for (const network of networks) await tellAlarm({ db: db(), log }, kind, { network, subject, detail });
    };
    tell().catch((error: unknown) => {
      log.error(
        { err: error, alarm: kind, subject, detail },
        'could not raise the alarm; Quittance retries at the next check',
      );
      throttle.forget(`${kind} ${subject}`);
    });
  };
}
