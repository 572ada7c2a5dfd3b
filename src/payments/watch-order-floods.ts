import { decodeId } from '../domain/ids.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { isCalm } from '../domain/unpaid.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import { findAlarmSubjects, resolveAlarms } from '../store/alarms.ts';
import type { Database } from '../store/database.ts';
import { countUnpaid } from '../store/unpaid.ts';
import { whileLeading } from './watching.ts';

export type OrderFloodDeps = { db: Database; network: Network; now(): UnixMs; log: Logger; isLeader(): boolean };

const LOOK_MS = 5000;
const TICK_MS = 1000;
const MAX_PAUSE_MS = 60_000;

/** Ends the alarms `order-flood` of projects that are well below their limits again, while this process is the leader. */
export function startOrderFloodWatch(options: OrderFloodDeps): Loop {
  const { network, now, log, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  return startLoop({
    name: `order floods of ${network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      if (!isLeader()) return TICK_MS;
      for (const subject of await findAlarmSubjects(db, network, 'order-flood')) {
        if (isStopping() || !isLeader()) break;
        const projectId = decodeId('prj', subject);
        const unpaid = projectId === null ? null : await countUnpaid(db, projectId, now());
        if (unpaid !== null && !isCalm(unpaid, unpaid)) continue;
        const count = await resolveAlarms(db, network, 'order-flood', subject);
        if (count > 0) log.info({ alarm: 'order-flood', subject }, 'the alarm is over');
      }
      return LOOK_MS;
    },
  });
}
