import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import { NETWORKS, type Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { createLogThrottle } from '../../runtime/log-throttle.ts';
import type { Sql } from '../db/database.ts';
import { findAlarmSubjects, raiseAlarm, resolveAlarms } from './alarms.ts';

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
