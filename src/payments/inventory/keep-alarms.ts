import { randomUUID } from 'node:crypto';
import { type AlarmKind, alarmRow } from '../../domain/alarm-kinds.ts';
import { findActionsSince, findAuditHead } from '../../store/access/audit-log.ts';
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
import { findLedgerIdentity, requiresSeals } from '../../store/db/ledger-identity.ts';
import { describeSealProblem } from '../../store/db/seal.ts';
import { INVENTORY } from './inventory-alarms.ts';
import type { Keeping } from './keeping.ts';

/** These end by themselves too, and are raised again while their cause is there. */
const END_ANYHOW: readonly AlarmKind[] = ['rows-missing', 'audit-broken'];
/** But not what is said of the inventory itself: it is said once. */
const isKept = ({ kind, subject }: Alarm) =>
  alarmRow(kind).endsBy === 'operator' && (!END_ANYHOW.includes(kind) || subject.startsWith(INVENTORY));

/**
 * Raises again what somebody closed past Quittance: an alarm that only operators close, and that ended though none of them is on record with it.
 * Every other alarm is raised again by who sees its cause.
 */
export async function keepAlarms(keeping: Keeping): Promise<void> {
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
    await raiseAlarm(db, network, { id: randomUUID(), kind, subject, detail });
    log.error({ alarm: kind, subject }, 'somebody closed this alarm past Quittance: it is raised again');
  }
  keeping.alarms = { open, audit };
  await tellSilenced(keeping);
}

const SILENCED = 'alarms-silenced';
/** Whoever closes alarms comes back. */
const TOLD_MS = 86_400_000;
const MAX_NAMED = 5;

/**
 * Tells that somebody closes alarms past Quittance: for a day from the last one on, and whoever closes this one is told of by it. An end that names
 * a master key which this process lacks may be another process's, so it has an alarm of its own.
 */
async function tellSilenced({ db, network, log, now }: Keeping): Promise<void> {
  const silenced = await findSilenced(db, network);
  const isOwn = (alarm: (typeof silenced)[number]) => alarm.unknownKey === null || isEndWithoutKey(alarm);
  const other = silenced.find((alarm) => !isOwn(alarm));
  if (other !== undefined) {
    const problem = { table: 'alarms', id: other.id, network, kind: 'unknown-key' } as const;
    // One for all of them, or whoever closes this one with another key each time would multiply it.
    const alarm = {
      kind: 'key-unknown',
      subject: 'alarms',
      detail: describeSealProblem(problem, 'key-unknown'),
    } as const;
    await raiseAlarm(db, network, { id: randomUUID(), ...alarm });
  }
  const own = silenced.filter(isOwn);
  await reopenAlarms(db, own);
  const { alarms } = await findSoundAlarms(db, network);
  const told = alarms.find(({ kind }) => kind === SILENCED);
  if (own.length === 0) {
    if (told !== undefined && now() - told.seenAt > TOLD_MS) await resolveAlarms(db, network, SILENCED);
    return;
  }
  // Seen again it would be a new row, where somebody has closed it meanwhile.
  if (told !== undefined && own.every(({ kind, seenAt }) => kind === SILENCED || seenAt <= told.seenAt)) return;
  // Processes without a key, and of the former release, close what they see the end of.
  const isMixed = !requiresSeals((await findLedgerIdentity(db))?.id ?? '');
  if (isMixed && (own.every(isEndWithoutKey) || (await isUpgrading(db)))) return;
  const names = [...new Set(own.map(({ kind }) => kind))].filter((kind) => kind !== SILENCED);
  const listed = names.slice(0, MAX_NAMED).join(', ');
  const detail = `somebody wrote to the database that alarms are over, of the kinds: ${listed}. They are open all the same. Nobody can close this alarm; it ends a day after the last time. See "Alarms that somebody hides" in docs/operations.md`;
  await raiseAlarm(db, network, { id: randomUUID(), kind: SILENCED, subject: '', detail });
  if (told === undefined) log.error({ alarm: SILENCED }, detail);
}
