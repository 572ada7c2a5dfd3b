import type { AccountHex } from '@quittance/tron/address';
import { decodeId, encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import { findAlarmSubjects } from '../store/chain/alarms.ts';
import { findAddressChange, findDueChanges, listWaitingOfNetwork } from '../store/ledger/address-changes.ts';
import { applyAddressChange, describeChange, PENDING, settleChangeAlarm } from './apply-address-change.ts';
import { guardWhileLeading, type Leading } from './leading.ts';
import { whileLeading } from './watching.ts';

export type AddressChangeWatchDeps = Leading & {
  random(bytes: number): Uint8Array;
  usdt: AccountHex;
  certainNow(): UnixMs;
};

/** A change waits for a day, so a few seconds don't matter. The alarm was already raised when it was proposed. */
const PAUSE_MS = 5000;

/** Applies a network's due address changes and maintains their alarm, while this process is the leader. Runs until it's stopped. */
export function startAddressChangeWatch(options: AddressChangeWatchDeps): Loop {
  const { network, isLeader, usdt } = options;
  const deps = { ...options, db: whileLeading(options.db, network, isLeader), contracts: [usdt] };
  const logged = new Set<string>();
  const look = async (shouldEnd: () => boolean) => {
    const failures = await makeDue(deps, shouldEnd);
    await keepAlarm(deps, logged);
    if (failures.length > 0) throw failures[0];
  };
  return guardWhileLeading(
    options,
    { name: 'address changes', pauseMs: PAUSE_MS, onFollower: () => logged.clear() },
    look,
  );
}

type Deps = AddressChangeWatchDeps & { contracts: readonly AccountHex[] };

/** Applies the due changes. If one fails, the others aren't delayed. */
async function makeDue(deps: Deps, shouldEnd: () => boolean): Promise<unknown[]> {
  const { db, network, certainNow, log } = deps;
  const failures: unknown[] = [];
  for (const id of await findDueChanges(db, network, certainNow())) {
    if (shouldEnd()) return [];
    try {
      const outcome = await applyAddressChange(deps, id, { kind: 'due' });
      const change = encodeId('chg', id);
      if (outcome.kind === 'failed') log.error({ alarm: 'address-change-failed', change }, outcome.detail);
      if (outcome.kind === 'applied')
        log.warn({ change, addresses: outcome.added }, 'added addresses that were pending for a day');
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

/**
 * Logs each pending change once. Corrects the alarm if someone has tampered with it; normally it's raised and resolved together with the
 * changes.
 */
async function keepAlarm({ db, network, log }: Deps, logged: Set<string>): Promise<void> {
  const waiting = await listWaitingOfNetwork(db, network);
  const projects = new Set(waiting.map(({ projectId }) => encodeId('prj', projectId)));
  const open = new Set(await findAlarmSubjects(db, network, PENDING));
  for (const subject of new Set([...projects, ...open])) {
    const id = decodeId('prj', subject);
    if (id === null || projects.has(subject) === open.has(subject)) continue;
    await db.transaction((tx) => settleChangeAlarm(tx, { id, network }));
  }
  for (const { id, projectId } of waiting) {
    if (logged.has(id)) continue;
    logged.add(id);
    const change = await findAddressChange(db, id);
    if (change === null) continue;
    log.error({ alarm: PENDING, subject: encodeId('prj', projectId) }, describeChange(change));
  }
  const ids = new Set(waiting.map(({ id }) => id));
  for (const id of logged) if (!ids.has(id)) logged.delete(id);
}
