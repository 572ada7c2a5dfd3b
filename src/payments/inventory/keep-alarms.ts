import { randomUUID } from 'node:crypto';
import { findActionsSince, findAuditHead } from '../../store/access/audit-log.ts';
import {
  type Alarm,
  type AlarmKind,
  CLOSED_BY_OPERATORS,
  findSoundAlarms,
  raiseAlarm,
} from '../../store/chain/alarms.ts';
import { INVENTORY } from './inventory-alarms.ts';
import type { Keeping } from './keeping.ts';

/** These end by themselves too, and are raised again while their cause is there. */
const END_ANYHOW: readonly AlarmKind[] = ['rows-missing', 'audit-broken'];
/** But not what is said of the inventory itself: it is said once. */
const isKept = ({ kind, subject }: Alarm) =>
  CLOSED_BY_OPERATORS.includes(kind) && (!END_ANYHOW.includes(kind) || subject.startsWith(INVENTORY));

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
}
