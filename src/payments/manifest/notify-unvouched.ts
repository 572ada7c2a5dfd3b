import { randomUUID } from 'node:crypto';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import { createSeldom } from '../../runtime/seldom.ts';
import { raiseAlarm } from '../../store/chain/alarms.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Unvouched } from './address-guard.ts';

/** Raises the alarm `address-not-vouched` for each address and each project that was met, which is its subject. Never throws. */
export function createUnvouchedNotifier(deps: {
  db(): Sql;
  log: Logger;
  now(): UnixMs;
}): (unvouched: Unvouched, detail: string) => void {
  // Every opening of a page meets it again.
  const seldom = createSeldom(deps.now);
  return ({ network, subject }, detail) => {
    if (!seldom.isDue(subject)) return;
    notifyUnvouched(deps.db(), deps.log, network as Network, subject, detail).catch((error: unknown) => {
      deps.log.warn({ err: error }, 'the alarm about what nobody vouches for could not be raised');
      seldom.forget(subject);
    });
  };
}

/** `subject`: as of `Unvouched`. */
export async function notifyUnvouched(
  db: Sql,
  log: Logger,
  network: Network,
  subject: string,
  detail: string,
): Promise<void> {
  const kind = 'address-not-vouched';
  const isNew = await raiseAlarm(db, network, { id: randomUUID(), kind, subject, detail });
  if (isNew) log.error({ alarm: kind, subject }, detail);
}
