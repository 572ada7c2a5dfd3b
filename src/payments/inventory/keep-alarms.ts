import { randomUUID } from 'node:crypto';
import { findAcknowledgedSince, findAuditHead } from '../../store/access/audit-log.ts';
import { CLOSED_BY_OPERATORS, findOpenAlarms, raiseAlarm } from '../../store/chain/alarms.ts';
import type { Keeping } from './keeping.ts';

/**
 * Raises again what somebody closed past Quittance: an alarm that only operators close, and that ended though none of them is on record with it.
 * Every other alarm is raised again by who sees its cause.
 */
export async function keepAlarms(keeping: Keeping): Promise<void> {
  const { db, network, log, alarms: before } = keeping;
  const { open, audit, acknowledged } = await db.snapshot(async (tx) => {
    const head = (await findAuditHead(tx))?.seq ?? 0;
    const now = (await findOpenAlarms(tx, network)).filter(({ kind }) => CLOSED_BY_OPERATORS.includes(kind));
    return { open: now, audit: head, acknowledged: await findAcknowledgedSince(tx, before.audit, network) };
  });
  const isOpen = (id: string) => open.some((alarm) => alarm.id === id);
  // The end of this one comes by itself too, and it is raised again while its cause is there.
  const closed = before.open.filter(
    ({ id, kind }) => kind !== 'rows-missing' && !isOpen(id) && !acknowledged.has(kind),
  );
  for (const { kind, subject, detail } of closed) {
    await raiseAlarm(db, network, { id: randomUUID(), kind, subject, detail });
    log.error({ alarm: kind, subject }, 'somebody closed this alarm past Quittance: it is raised again');
  }
  keeping.alarms = { open: closed.length === 0 ? open : [...open, ...closed], audit };
}
