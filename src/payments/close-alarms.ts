import type { AlarmKind } from '../domain/alarm-kinds.ts';
import { findAlarmSubjects, resolveAlarms } from '../store/chain/alarms.ts';
import type { Leading } from './watching.ts';

/** Closes the alarms of a kind but those about `subjects`, of which the cause goes on. */
export async function closeOthers(
  { db, network, log }: Pick<Leading, 'db' | 'network' | 'log'>,
  kind: AlarmKind,
  subjects: ReadonlySet<string>,
): Promise<void> {
  for (const subject of await findAlarmSubjects(db, network, kind)) {
    if (subjects.has(subject)) continue;
    await resolveAlarms(db, network, kind, subject);
    log.info({ alarm: kind, subject }, 'the alarm is over');
  }
}
