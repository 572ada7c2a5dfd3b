import { randomUUID } from 'node:crypto';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import { createSeldom } from '../../runtime/seldom.ts';
import { raiseAlarm } from '../../store/chain/alarms.ts';
import type { OwnAddress } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';

/** Raises the alarm `address-not-vouched` for each address that was met. Its subject is the address. Never throws. */
export function createUnvouchedNotifier(deps: {
  db(): Sql;
  log: Logger;
  now(): UnixMs;
}): (address: OwnAddress, detail: string) => void {
  // Every opening of a page meets it again.
  const seldom = createSeldom(deps.now);
  return ({ network, address }, detail) => {
    if (!seldom.isDue(address)) return;
    notifyUnvouched(deps.db(), deps.log, network as Network, address, detail).catch((error: unknown) => {
      deps.log.warn({ err: error }, 'the alarm about an address that nobody vouches for could not be raised');
      seldom.forget(address);
    });
  };
}

/** `subject`: an address, or the manifest itself. */
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
