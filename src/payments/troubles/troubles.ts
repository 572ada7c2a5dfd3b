import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { createSeldom } from '../../runtime/seldom.ts';
import type { AlarmKind } from '../../store/chain/alarms.ts';

/** What a process finds out about the world that it works in. Each is an alarm, too. */
export const TROUBLE_KINDS = ['database-full'] as const satisfies readonly AlarmKind[];
type TroubleKind = (typeof TROUBLE_KINDS)[number];

/** `network` `null`: it concerns them all. `detail` is for everybody: it names no host. `isReady`: whether invoices can be created meanwhile. */
export type Trouble = {
  kind: TroubleKind;
  network: Network | null;
  subject: string;
  detail: string;
  isReady: boolean;
};

/** What is wrong now, as far as this process knows. `GET /readyz`, the alarms and the log tell of this one list. */
export type Troubles = {
  /** Replaces what is known of a kind. Logs what is new at once, what lasts once a minute, and what is over. */
  set(kind: TroubleKind, found: readonly Trouble[]): void;
  list(): readonly Trouble[];
};

export function keyOf({ kind, network, subject }: Trouble): string {
  return `${kind} ${network ?? ''} ${subject}`;
}

export function createTroubles({ log }: { log: Logger }): Troubles {
  // The clock may be what is wrong.
  const seldom = createSeldom(() => performance.now());
  const known = new Map<TroubleKind, readonly Trouble[]>();
  return {
    set: (kind, found) => {
      const keys = new Set(found.map(keyOf));
      for (const former of known.get(kind) ?? []) {
        if (keys.has(keyOf(former))) continue;
        seldom.forget(keyOf(former));
        log.info({ alarm: kind, network: former.network ?? undefined, subject: former.subject }, 'the alarm is over');
      }
      known.set(kind, found);
      for (const trouble of found) {
        if (!seldom.isDue(keyOf(trouble))) continue;
        log.error({ alarm: kind, network: trouble.network ?? undefined, subject: trouble.subject }, trouble.detail);
      }
    },
    list: () => [...known.values()].flat(),
  };
}
