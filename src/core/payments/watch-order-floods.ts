import { decodeId } from '../domain/ids.ts';
import { isUnderLimits } from '../domain/unpaid.ts';
import type { Loop } from '../runtime/loop.ts';
import { findAlarmSubjects } from '../store/chain/alarms.ts';
import { endAlarm } from '../store/chain/tell-alarms.ts';
import { countUnpaid } from '../store/ledger/unpaid.ts';
import { type Leading, loopWhileLeading } from './leading.ts';
import { whileLeading } from './watching.ts';

const LOOK_MS = 5000;

/** Resolves the `order-flood` alarms for projects that are well below their limits again, while this process is the leader. */
export function startOrderFloodWatch(options: Leading): Loop {
  const { network, now, log, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  return loopWhileLeading(options, { name: 'order floods', pauseMs: LOOK_MS }, async (shouldEnd) => {
    for (const subject of await findAlarmSubjects(db, network, 'order-flood')) {
      if (shouldEnd()) break;
      const projectId = decodeId('prj', subject);
      const unpaid = projectId === null ? null : await countUnpaid(db, projectId, now());
      if (unpaid !== null && !isUnderLimits(unpaid, unpaid)) continue;
      await endAlarm({ db, log }, 'order-flood', network, subject);
    }
  });
}
