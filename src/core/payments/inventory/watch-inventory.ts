import { createHash } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { type AlarmKind, alarmRow } from '../../domain/alarm-kinds.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId, firstIdOf, type IdPrefix, NIL_UUID, uuidV7 } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { RecordedAction } from '../../domain/recorded-action.ts';
import { DAY_MS, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Loop } from '../../runtime/loop.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { findActionsOn, findActionsSince, findAuditHead, type OperatorAction } from '../../store/access/audit-log.ts';
import { readPublicReceiptKeys } from '../../store/access/receipt-keys.ts';
import {
  type Alarm,
  findSilenced,
  findSoundAlarms,
  isEndWithoutKey,
  isUpgrading,
  raiseAlarm,
  reopenAlarms,
  resolveAlarms,
} from '../../store/chain/alarms.ts';
import { findProducerSets } from '../../store/chain/producer-sets.ts';
import type { Sql } from '../../store/db/database.ts';
import { findLedgerIdentity, requiresSeals } from '../../store/db/ledger-identity.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { contentColumn, describeSealProblem, type SealedTable, sealColumn } from '../../store/db/seal.ts';
import {
  SEALED_ACCOUNT_KEY,
  SEALED_ADDRESS,
  SEALED_ADMIN_KEY,
  SEALED_API_KEY,
  SEALED_CHANNEL,
  SEALED_ENDPOINT,
  SEALED_PASSKEY,
  SEALED_PERSON,
  SEALED_PROJECT,
} from '../../store/db/sealed-tables.ts';
import { isAsSealed, maybeHex, type Row, text } from '../../store/db/statement.ts';
import { WANTS_EVENT } from '../../store/outbox/adapter-orders.ts';
import { type ExternalCheckpoint, findLedgerLine, type LedgerLine } from '../external-checkpoint.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from '../watching.ts';
import {
  countListed,
  findInventoryPage,
  INVENTORY,
  insertInventoryPage,
  type Keeping,
  LISTED,
  type Listed,
  listNewRows,
  lookAtYoung,
  lookOverPage,
  type Subject,
  tellCutOff,
  tellDelivery,
  tellUnexplained,
  updateInventoryPage,
} from './list-rows.ts';

/** With this pause, problems with settings and the newest rows are found within a minute, even if several rounds fail. */
const PAUSE_MS = 10_000;
/** Checks may take at most a tenth of the time, so checking all of a large ledger takes many rounds. */
const WORK_MS = 1000;

/** This many sets can be adopted in a month. */
const MAX_PRODUCER_SETS = 100;

type Options = Leading & {
  random(bytes: number): Uint8Array;
  metrics: Metrics;
  mark: ExternalCheckpoint | null;
  pauseMs?: number;
  stallTickMs?: number;
};

/**
 * Keeps a network's inventory while this process is its leader. Lists new rows, and checks that the rows on the newest page exist and have
 * valid seals, and then does the same for older pages. Also compares settings with their previous state, and reopens alarms that Quittance
 * didn't close. Does nothing if rows aren't sealed. It keeps its memory while another process leads, so that an attacker who takes over the
 * lease can't erase it. Runs until it's stopped.
 */
export function startInventoryWatch(options: Options): Loop {
  const { network, isLeader, metrics, mark, pauseMs = PAUSE_MS } = options;
  const keeping: Keeping = {
    ...options,
    db: whileLeading(options.db, network, isLeader),
    seen: new Map(),
    young: new Map(),
    alarms: { open: [], audit: 0 },
  };
  const outside = createSeenMark(keeping, mark);
  let older = olderPages(keeping);
  const lookAtOlder = async (isOver: () => boolean) => {
    while (!isOver()) {
      const { value: place } = older.next();
      if (place === undefined) {
        older = olderPages(keeping);
        break;
      }
      await lookOverPage(keeping, place.subject, place.number);
    }
  };
  const look = async (shouldEnd: () => boolean) => {
    if ((await keeping.db.sealer()) === null) return;
    const end = performance.now() + WORK_MS;
    const isOver = () => shouldEnd() || performance.now() > end;
    await outside.read();
    const ofRows = LISTED.flatMap((subject) => [
      async () => {
        while ((await listNewRows(keeping, subject)) && !isOver());
        metrics.inventoryRows.set({ network, subject }, countListed(keeping, subject));
      },
      () => lookAtYoung(keeping, subject),
      () => lookOverPage(keeping, subject, lastPage(keeping, subject)),
    ]);
    await takeEach([
      () => keepAlarms(keeping),
      () => compareSettings(keeping),
      () => examine(() => readPublicReceiptKeys(keeping.db)),
      () => examine(() => findProducerSets(keeping.db, network, MAX_PRODUCER_SETS)),
      ...ofRows,
      () => lookAtDeliveries(keeping),
      () => lookAtOlder(isOver),
      () => outside.write(),
    ]);
  };
  const onFollower = () => {
    for (const subject of LISTED) metrics.inventoryRows.remove({ network, subject });
  };
  return guardWhileLeading(options, { ...options, name: 'inventory', pauseMs, onFollower }, look);
}

/** Reads rows that otherwise are rarely read, because reading them checks their seals, and a wrong seal raises an alarm. */
async function examine(read: () => Promise<unknown>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'ROW_CHANGED')) throw error;
  }
}

function* olderPages(keeping: Keeping): Generator<{ subject: Listed; number: number }, undefined> {
  for (const subject of LISTED) {
    for (let number = lastPage(keeping, subject) - 1; number > 0; number -= 1) yield { subject, number };
  }
}

/** Returns 0 if there's no page. */
function lastPage({ seen }: Keeping, subject: Listed): number {
  return seen.get(subject)?.number ?? 0;
}

/** The longest pause between two attempts is a day and a half. */
const LONGEST_MS = 2 * DAY_MS;
/** A larger difference between the processes' clocks would raise an alarm. */
const SKEW_MS = 60_000;
/** A person can handle this many alarms. */
const MAX_TOLD = 20;
/** After one of these actions, an endpoint may want different events from before. */
const REASONS: readonly RecordedAction[] = ['webhook.added', 'webhook.changed', 'webhook.enabled'];

/**
 * Finds events from the last day that someone is withholding from an endpoint. Also makes a delivery due if it was postponed for longer
 * than Quittance ever postpones one.
 */
async function lookAtDeliveries(keeping: Keeping): Promise<void> {
  const { db, network, now } = keeping;
  for (const { eventId, endpointId } of (await expediteDeferred(db, network, now(), unixMs(now() + LONGEST_MS))).slice(
    0,
    MAX_TOLD,
  ))
    await tellDelivery(keeping, {
      eventId,
      endpointId,
      what: 'was postponed for longer than Quittance allows, so it is due again now',
    });
  const found = await findDeliveryDoubts(db, network, firstIdOf(unixMs(now() - DAY_MS)));
  const names = found.filter(({ kind }) => kind === 'missing').map(({ endpointId }) => encodeId('whe', endpointId));
  const done = names.length === 0 ? [] : await findActionsOn(db, 0, names);
  for (const { eventId, endpointId, kind, createdAt } of found) {
    const isReason = ({ subject, action, actedAt }: (typeof done)[number]) =>
      subject === encodeId('whe', endpointId) && REASONS.includes(action) && actedAt >= createdAt - SKEW_MS;
    if (kind === 'missing' && done.some(isReason)) continue;
    const what =
      kind === 'missing'
        ? 'is missing, although the endpoint subscribes to it'
        : 'is marked as finished, but has no matching attempt';
    await tellDelivery(keeping, { eventId, endpointId, what });
  }
}

const doubt = {
  eventId: 'uuid',
  endpointId: 'uuid',
  kind: text<'missing' | 'unproven'>(),
  createdAt: 'timestamptz',
} as const;

/**
 * Checks the newest 1,000 events whose ids aren't below the given one. `missing` means that an active endpoint, which is older than the
 * event and wants it, has no delivery for it. `unproven` means that a delivery ended without a matching attempt. Pings are for one endpoint
 * only. Returns the first 20.
 */
const findDeliveryDoubts = rowsOf(
  'delivery-doubts',
  doubt,
  `with newest as materialized (
     select e.id, e.project_id, e.invoice_id, e.type, e.created_at from events e where e.network = $1 and e.id >= $2 order by e.id desc limit 1000)
   select e.id as event_id, w.id as endpoint_id, case when d.event_id is null then 'missing' else 'unproven' end as kind, e.created_at
   from newest e join webhook_endpoints w on w.project_id = e.project_id
   left join deliveries d on d.event_id = e.id and d.endpoint_id = w.id
   where case
     when d.event_id is null then w.disabled_at is null and w.created_at < e.created_at and e.type <> 'ping'
       and ${WANTS_EVENT}
     else d.status <> 'pending' and not exists (
       select from delivery_attempts a where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
         and a.attempt = d.attempt_count and (a.error is null) = (d.status = 'delivered')) end
   order by e.id limit 20`,
  (network: Network, from: string) => [network, from],
);

/** Makes deliveries that are due after `after` due at `now`, up to 100 per endpoint, and returns them. */
const expediteDeferred = rowsOf(
  'delivery-expedite-deferred',
  { eventId: 'uuid', endpointId: 'uuid' },
  `update deliveries d set next_attempt_at = $2
   from webhook_endpoints w cross join lateral (
     select p.event_id from deliveries p
     where p.endpoint_id = w.id and p.status = 'pending' and p.next_attempt_at > $3 limit 100 for update skip locked) late
   where w.network = $1 and d.endpoint_id = w.id and d.event_id = late.event_id and d.status = 'pending'
   returning d.event_id, d.endpoint_id`,
  (network: Network, now: UnixMs, after: UnixMs) => [network, new Date(now), new Date(after)],
);

const SUBJECTS: readonly Subject[] = [...LISTED, 'settings'];

/** Stores the last known end of the inventory. It's stored outside the database, so it survives a restart. */
function createSeenMark({ db, log, seen }: Keeping, mark: ExternalCheckpoint | null) {
  let line: LedgerLine | null = null;
  let written = '';
  return {
    /** Reads the mark only once. */
    read: async () => {
      if (mark === null || line !== null) return;
      const found = await findLedgerLine(db);
      if (found === null) return;
      const kept = await mark.read(found).catch((error: unknown) => {
        log.error({ err: error }, 'could not read the saved end of the inventory from the data directory');
        return null;
      });
      line = found;
      for (const subject of SUBJECTS) {
        const end = kept?.[subject];
        if (!seen.has(subject) && isEnd(end)) seen.set(subject, end);
      }
    },
    write: async () => {
      const ends = Object.fromEntries(seen);
      const text = JSON.stringify(ends);
      if (mark === null || line === null || text === written) return;
      try {
        await mark.write(line, ends);
        written = text;
      } catch (error) {
        log.warn({ err: error }, 'could not save the end of the inventory in the data directory');
      }
    },
  };
}

function isEnd(value: unknown): value is { number: number; bytes: number } {
  if (typeof value !== 'object' || value === null) return false;
  const { number, bytes } = value as Record<string, unknown>;
  return Number.isSafeInteger(number) && Number.isSafeInteger(bytes);
}

/** These kinds can also close automatically, and are raised again as long as their cause exists. */
const END_ANYHOW: readonly AlarmKind[] = ['rows-missing', 'audit-broken'];
/** Alarms about the inventory itself are an exception, because they are raised only once. */
const isKept = ({ kind, subject }: Alarm) =>
  alarmRow(kind).endsBy === 'operator' && (!END_ANYHOW.includes(kind) || subject.startsWith(INVENTORY));

/**
 * Reopens alarms that only operators may close, if the audit log doesn't show that an operator closed them. All other alarms are raised
 * again by the check that detects their cause.
 */
async function keepAlarms(keeping: Keeping): Promise<void> {
  const { db, network, log, alarms: before } = keeping;
  const { open, audit, done } = await db.snapshot(async (tx) => {
    const head = (await findAuditHead(tx))?.seq ?? 0;
    const now = (await findSoundAlarms(tx, network)).alarms.filter(isKept);
    return { open: now, audit: head, done: await findActionsSince(tx, before.audit, [], ['alarm.acknowledged']) };
  });
  const isOpen = (id: string) => open.some((alarm) => alarm.id === id);
  const acknowledged = new Set(
    done.filter(({ subject }) => subject === network).map(({ detail }) => 'kind' in detail && detail.kind),
  );
  const closed = before.open.filter(({ id, kind }) => !isOpen(id) && !acknowledged.has(kind));
  for (const { kind, subject, detail } of closed) {
    await raiseAlarm(db, network, { kind, subject, detail });
    log.error({ alarm: kind, subject }, 'this alarm was closed directly in the database: it is raised again');
  }
  keeping.alarms = { open, audit };
  await tellSilenced(keeping);
}

const SILENCED = 'alarms-silenced';
/** An attacker who closes alarms is likely to do so again. */
const TOLD_MS = 86_400_000;
const MAX_NAMED = 5;

/**
 * Raises an alarm if anything other than Quittance closed alarms. It stays open until a day after the last such closing, and closing this
 * alarm itself counts as well. If the end of an alarm was sealed with a master key that this process doesn't know, another process may have
 * closed it, so this case has a separate alarm.
 */
async function tellSilenced({ db, network, log, now }: Keeping): Promise<void> {
  const silenced = await findSilenced(db, network);
  const isOwn = (alarm: (typeof silenced)[number]) => alarm.unknownKey === null || isEndWithoutKey(alarm);
  const other = silenced.find((alarm) => !isOwn(alarm));
  if (other !== undefined) {
    const problem = { table: 'alarms', id: other.id, network, kind: 'unknown-key' } as const;
    // All such cases share one alarm. Otherwise an attacker could multiply the alarm by closing it with a different key each time.
    const alarm = {
      kind: 'key-unknown',
      subject: 'alarms',
      detail: describeSealProblem(problem, 'key-unknown'),
    } as const;
    await raiseAlarm(db, network, alarm);
  }
  const own = silenced.filter(isOwn);
  await reopenAlarms(db, own);
  const { alarms } = await findSoundAlarms(db, network);
  const told = alarms.find(({ kind }) => kind === SILENCED);
  if (own.length === 0) {
    if (told !== undefined && now() - told.seenAt > TOLD_MS) await resolveAlarms(db, network, SILENCED);
    return;
  }
  // If someone has closed the alarm in the meantime, raising it again would create a new row.
  if (told !== undefined && own.every(({ kind, seenAt }) => kind === SILENCED || seenAt <= told.seenAt)) return;
  // Processes without a key and processes from the previous release close alarms when they see that the cause is gone.
  const isMixed = !requiresSeals((await findLedgerIdentity(db))?.id ?? '');
  if (isMixed && (own.every(isEndWithoutKey) || (await isUpgrading(db)))) return;
  const names = [...new Set(own.map(({ kind }) => kind))].filter((kind) => kind !== SILENCED);
  const listed = names.slice(0, MAX_NAMED).join(', ');
  const detail = `alarms of these kinds were closed directly in the database: ${listed}. These alarms are still open. This alarm cannot be closed by hand; it closes one day after the last attempt. See "Alarms are hidden" in docs/guides/tampering.md`;
  await raiseAlarm(db, network, { kind: SILENCED, subject: '', detail });
  if (told === undefined) log.error({ alarm: SILENCED }, detail);
}

/** `audit` is the audit log's last entry at that time. `rows` contains a digest of each row's state, by `TABLE:ID`. */
type Settings = { audit: number; rows: Record<string, string> };
/**
 * `name` is the row's name in the audit log. `digest` is `null` if the row's seal is wrong, so that its state doesn't count. `neutral`
 * contains the actions on a row that don't change it, and so explain no change.
 */
type Found = { table: string; id: string; name: string; digest: string | null; neutral: readonly RecordedAction[] };

const PAGE = 1;
const OF_ALL_ROWS: readonly RecordedAction[] = [
  'ledger.sealed',
  'master-key.rotated',
  'backup.restored',
  'backup.accepted',
];
const NOTHING: Settings = { audit: 0, rows: {} };

/**
 * Compares projects, keys, endpoints and addresses with their previous state. The audit log must have an action that names each row that
 * has changed. New rows don't need an action, because they are sealed. An unexplained change isn't stored on the page, so it's reported
 * again.
 */
async function compareSettings(keeping: Keeping): Promise<void> {
  const { db, network, now, random } = keeping;
  const seen = keeping.seen.get('settings')?.number ?? 0;
  const { page, found, head, done, isOfAll, before } = await db.snapshot(async (tx) => {
    const stored = await findInventoryPage(tx, network, 'settings', PAGE);
    const rows = await readSettings(tx, keeping);
    const settings = stored?.seal === true ? readPage(stored.content) : NOTHING;
    const asked = settings.audit < seen ? [...rows.values()] : differences(settings, rows);
    const names = asked.flatMap(({ table, id, name }) => [`${table}:${id}`, name]);
    const on = names.length === 0 ? [] : await findActionsOn(tx, settings.audit, names);
    const ofAll = names.length === 0 ? [] : await findActionsSince(tx, settings.audit, [], OF_ALL_ROWS);
    const last = (await findAuditHead(tx))?.seq ?? 0;
    return { page: stored, found: rows, head: last, done: byName(on), isOfAll: ofAll.length > 0, before: settings };
  });
  if (page !== null && !page.seal) return;
  if (before.audit < seen) {
    await tellCutOff(keeping, 'settings');
    await tellPutBack(keeping, before, found, done);
  }
  keeping.seen.set('settings', { number: head, bytes: 0 });
  const after: Settings = { audit: head, rows: {} };
  for (const [key, { digest }] of found) {
    const kept = digest ?? before.rows[key];
    if (kept !== undefined) after.rows[key] = kept;
  }
  for (const { key, table, id, name, was, isGone, neutral } of differences(before, found)) {
    if (isOfAll || isExplained({ table, id, name, neutral }, done)) continue;
    after.rows[key] = was;
    await tellUnexplained(keeping, { table, id, name, isGone });
  }
  const content = Buffer.from(JSON.stringify(after));
  const written = { network, subject: 'settings', number: PAGE, content } as const;
  if (page === null) await insertInventoryPage(db, { ...written, id: uuidV7(now(), random(10)) });
  else if (!content.equals(page.content)) await updateInventoryPage(db, { ...written, id: page.id }, page.content);
}

/** The kinds of actions on each subject. Thousands of rows may have changed, so they are looked up by name. */
type Done = ReadonlyMap<string, ReadonlySet<RecordedAction>>;

function byName(actions: readonly Pick<OperatorAction, 'subject' | 'action'>[]): Done {
  const kinds = new Map<string, Set<RecordedAction>>();
  for (const { subject, action } of actions) kinds.set(subject, (kinds.get(subject) ?? new Set()).add(action));
  return kinds;
}

function isExplained({ table, id, name, neutral }: Omit<Found, 'digest'>, done: Done): boolean {
  return done.has(`${table}:${id}`) || [...(done.get(name) ?? [])].some((action) => !neutral.includes(action));
}

/** Reports that the page and a row were reset to an earlier state. The row matches that state, although it has been changed since then. */
async function tellPutBack(
  keeping: Keeping,
  before: Settings,
  found: ReadonlyMap<string, Found>,
  done: Done,
): Promise<void> {
  for (const [key, row] of found) {
    const isAsBefore = row.digest !== null && before.rows[key] === row.digest;
    if (!isAsBefore || !isExplained(row, done)) continue;
    await tellUnexplained(keeping, { ...row, isGone: false });
  }
}

/** If seals only cause warnings, someone may have stored an invalid page. It already has an alarm, and the page is rewritten. */
function readPage(content: Buffer): Settings {
  try {
    const { audit, rows } = JSON.parse(content.toString()) as Partial<Settings>;
    if (typeof audit === 'number' && typeof rows === 'object' && rows !== null) return { audit, rows };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return NOTHING;
}

async function readSettings(tx: Sql, { network }: Keeping): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  for (const { table, part, prefix, neutral, read } of SETTING_TABLES) {
    for (let after: string | undefined = NIL_UUID; after !== undefined; ) {
      const rows = await read(tx, network, after);
      for (const { id, ownerId, account, state, seal } of rows) {
        const digest = seal === false ? null : createHash('sha256').update(state).digest('hex').slice(0, 32);
        const row = `${table}:${id}`;
        const text = account === null ? row : accountToAddress(account as AccountHex);
        found.set(part === '' ? row : `${row}:${part}`, {
          table,
          id,
          digest,
          neutral,
          name: prefix === null ? text : encodeId(prefix, ownerId),
        });
      }
      after = rows.at(-1)?.id;
    }
  }
  return found;
}

/** Returns the rows that are missing or have changed. */
function differences(before: Settings, found: ReadonlyMap<string, Found>) {
  return Object.entries(before.rows).flatMap(([key, was]) => {
    const row = found.get(key);
    if (row?.digest === null || row?.digest === was) return [];
    const [table = '', id = ''] = key.split(':');
    return [{ key, table, id, was, name: row?.name ?? key, neutral: row?.neutral ?? [], isGone: row === undefined }];
  });
}

const settingShape = (table: SealedTable) =>
  ({
    id: 'text',
    ownerId: 'uuid',
    account: maybeHex,
    state: 'text',
    seal: isAsSealed({ ...table, isReadOnce: true }),
  }) as const;

/**
 * A row that people create and change, or a row that describes a person. `id` is a UUID, or hex for a passkey. `ownerId` is the UUID used
 * in the audit log: the row's own, or the person's for a passkey. `state` contains the sealed values, and whether the row is revoked or
 * retired. `account` is set for an address, as hex. `seal` says whether the row's seal is valid; it isn't checked for rows that don't need
 * one.
 */
type SettingRow = Row<ReturnType<typeof settingShape>>;

/**
 * A kind of settings. `prefix` is the prefix of its ids in the audit log; addresses appear there as text, and account keys don't appear at
 * all. `neutral` contains actions on a row that don't change it.
 */
type SettingTable = {
  table: string;
  /** The part of a row to compare. If it's empty, the comparison covers the sealed values and whether the row has ended. */
  part: string;
  prefix: IdPrefix | null;
  neutral: readonly RecordedAction[];
  /** Returns a network's next 1,000 rows after an id. */
  read(db: Sql, network: Network, after: string): Promise<SettingRow[]>;
};

const OF_PROJECT = 't.project_id in (select id from projects where network = $1)';

/** These rows don't belong to any network, so they are on each network's page. */
const OF_NONE = '$1::text is not null';

/** Actions on an endpoint that don't change its row. */
const OF_DELIVERIES = ['webhook.tested', 'webhook.rotated', 'deliveries.replayed'] as const;

const SETTING_TABLES: readonly SettingTable[] = [
  settingsOf(SEALED_PROJECT, 'prj', { where: 't.network = $1' }),
  // A key's sealed columns never change, so `key.changed` explains no difference.
  settingsOf(SEALED_API_KEY, 'key', { isEnded: 't.revoked_at is not null', neutral: ['key.changed'] }),
  settingsOf(SEALED_ENDPOINT, 'whe', { neutral: [...OF_DELIVERIES, 'webhook.enabled', 'webhook.disabled'] }),
  // This is a separate kind because it was added later: a row that isn't on a page yet needs no log entry.
  settingsOf(SEALED_ENDPOINT, 'whe', {
    ...{ part: 'disabled', state: '(t.disabled_at is not null)::text' },
    neutral: [...OF_DELIVERIES, 'webhook.changed'],
  }),
  settingsOf(SEALED_ACCOUNT_KEY, null),
  settingsOf(SEALED_ADDRESS, null, {
    ...{ where: 't.network = $1', isEnded: 't.retired_at is not null', account: `encode(t.account, 'hex')` },
  }),
  settingsOf(SEALED_CHANNEL, 'chn', { where: OF_NONE, neutral: ['channel.tested'] }),
  settingsOf(SEALED_ADMIN_KEY, 'adm', {
    ...{ where: OF_NONE, isEnded: 't.revoked_at is not null' },
    neutral: ['admin-key.changed'],
  }),
  settingsOf(SEALED_PERSON, 'usr', {
    ...{ where: OF_NONE, isEnded: 't.removed_at is not null' },
    neutral: ['session.refused', 'passkey.added', 'passkey.removed'],
  }),
  settingsOf(SEALED_PASSKEY, 'usr', {
    ...{
      where: OF_NONE,
      isEnded: 't.removed_at is not null',
      id: `(encode(t.id, 'hex') collate "C")`,
      ownerId: 't.person_id',
    },
    neutral: ['session.refused', 'passkey.added', 'user.invited', 'user.joined', 'user.changed'],
  }),
];

function settingsOf(
  table: SealedTable,
  prefix: IdPrefix | null,
  {
    where = OF_PROJECT,
    isEnded = 'false',
    account = 'null::text',
    id = 't.id',
    ownerId = 't.id',
    part = '',
    state = contentColumn(table, 't.', isEnded),
    neutral = [],
  }: Partial<Record<'where' | 'isEnded' | 'account' | 'id' | 'ownerId' | 'part' | 'state', string>> & {
    neutral?: readonly RecordedAction[];
  } = {},
): SettingTable {
  const read = rowsOf(
    `inventory-${[table.name.replaceAll('_', '-'), part].filter(Boolean).join('-')}`,
    settingShape(table),
    `select ${id}::text as id, ${ownerId} as owner_id, ${account} as account, ${state} as state, ${sealColumn(table, 't.')} as seal
     from ${table.name} t where ${where} and ${id} > $2 order by ${id} limit 1000`,
    (network: Network, after: string) => [network, after],
  );
  return { table: table.name, part, prefix, neutral, read };
}
