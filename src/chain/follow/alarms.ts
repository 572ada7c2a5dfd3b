import { ALARM_KINDS, type AlarmKind } from '../../domain/alarm-kinds.ts';
import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { countOpenAlarms, resolveAlarms } from '../../store/chain/alarms.ts';
import { tellAlarm } from '../../store/chain/tell-alarms.ts';
import type { Sql } from '../../store/db/database.ts';

/** The alarms that one network's watcher raises for the operator. */
export type Alarms = {
  /** Opens an alarm, or counts it once more, in the transaction `tx` if there is one; logs a new one. */
  raise(kind: AlarmKind, subject: string, detail: string, tx?: Sql): Promise<void>;
  /** Closes the alarms of a kind. Costs nothing while none is open. */
  resolve(kind: AlarmKind): Promise<void>;
  /** Brings the metric up to date with what any process raised, and knows from then on what is open. */
  refresh(): Promise<void>;
};

type AlarmDeps = { db: Sql; network: Network; log: Logger; metrics: Metrics };

export function createAlarms({ db, network, log, metrics }: AlarmDeps): Alarms {
  /** The kinds that may be open; `null`: not read yet. */
  let open: Set<AlarmKind> | null = null;
  const refresh = async () => {
    const counts = await countOpenAlarms(db, network);
    open = new Set(counts.keys());
    for (const kind of ALARM_KINDS) metrics.alarmsOpen.set({ network, kind }, counts.get(kind) ?? 0);
  };
  return {
    refresh,
    raise: async (kind, subject, detail, tx = db) => {
      open?.add(kind);
      await tellAlarm({ db: tx, log }, kind, { network, subject, detail });
    },
    resolve: async (kind) => {
      if (open === null) await refresh();
      if (open?.has(kind) !== true) return;
      const count = await resolveAlarms(db, network, kind);
      open.delete(kind);
      if (count > 0) log.info({ alarm: kind }, 'the alarm is resolved');
    },
  };
}
