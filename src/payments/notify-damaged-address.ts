import { randomUUID } from 'node:crypto';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { createSeldom } from '../runtime/seldom.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import { type DamagedAddress, describeDamaged } from '../store/db/address-column.ts';
import type { Sql } from '../store/db/database.ts';
import { accountToAddress } from '../tron/address.ts';

/** Raises the alarm `address-damaged` for what a statement met. Its subject is the address of the account. Never throws. */
export function createDamageNotifier(deps: {
  db(): Sql;
  log: Logger;
  now(): UnixMs;
}): (damaged: DamagedAddress) => void {
  // Every opening of a page meets the damage again.
  const seldom = createSeldom(deps.now);
  return (damaged) => {
    if (!seldom.isDue(damaged.account)) return;
    notifyDamagedAddress(deps.db(), deps.log, damaged).catch((error: unknown) => {
      deps.log.warn(
        { err: error },
        'the alarm about a damaged address could not be raised; the next look at it tries again',
      );
      seldom.forget(damaged.account);
    });
  };
}

export async function notifyDamagedAddress(db: Sql, log: Logger, damaged: DamagedAddress): Promise<void> {
  const [kind, subject, detail] = [
    'address-damaged',
    accountToAddress(damaged.account),
    describeDamaged(damaged),
  ] as const;
  log.error({ alarm: kind, subject }, detail);
  await raiseAlarm(db, damaged.network as Network, { id: randomUUID(), kind, subject, detail });
}
