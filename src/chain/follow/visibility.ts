import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { findOpenAlarms } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import type { Alarms } from './alarms.ts';
import { type Blindness, createBlindness } from './blindness.ts';

/** Tells the operator of blindness: by an alarm, a metric, and a line in the log when it is over. */
export type Visibility = Omit<Blindness, 'begin'> & {
  /** Takes over the alarm of a former process, which ends or goes on here: it is not raised twice. */
  begin(): Promise<void>;
  /** Tells of a change, and returns whether there was one. */
  notify(): Promise<'lost' | 'regained' | null>;
};

type VisibilityDeps = {
  db: Database;
  network: Network;
  blockMs: number;
  alarms: Alarms;
  log: Logger;
  metrics: Pick<Metrics, 'chainBlind'>;
};

export function createVisibility({ db, network, blockMs, alarms, log, metrics }: VisibilityDeps): Visibility {
  const blindness = createBlindness(blockMs);
  /** The state that the operator was told last. */
  let isBlind = false;
  return {
    ...blindness,
    begin: async () => {
      const open = (await findOpenAlarms(db, network)).find(({ kind }) => kind === 'blind');
      blindness.begin(open?.detail ?? null);
      isBlind = open !== undefined;
    },
    notify: async () => {
      const reason = blindness.reason();
      metrics.chainBlind.set({ network }, reason === null ? 0 : 1);
      // This process or another one may have raised the alarm.
      if (reason === null) await alarms.resolve('blind');
      if (isBlind === (reason !== null)) return null;
      if (reason === null) log.info('the chain is visible again');
      else await alarms.raise('blind', '', `blind: invoices are created, nothing is confirmed or expired: ${reason}`);
      isBlind = reason !== null;
      return isBlind ? 'lost' : 'regained';
    },
  };
}
