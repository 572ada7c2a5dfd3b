import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';

/** What a process finds out about the world that it works in. Each is an alarm, too. */
export const TROUBLE_KINDS = [
  'database-full',
  'network-unwatched',
  'clock-wrong',
  'watch-stalled',
] as const satisfies readonly AlarmKind[];
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
  /** Replaces what is known of a kind. Logs what is new, and what is over. */
  set(kind: TroubleKind, found: readonly Trouble[]): void;
  list(): readonly Trouble[];
};

export function keyOf({ kind, network, subject }: Trouble): string {
  return `${kind} ${network ?? ''} ${subject}`;
}

export function createTroubles({ log }: { log: Logger }): Troubles {
  const known = new Map<TroubleKind, readonly Trouble[]>();
  return {
    set: (kind, found) => {
      const before = known.get(kind) ?? [];
      known.set(kind, found);
      for (const { network, subject } of without(before, found)) {
        log.info({ alarm: kind, network: network ?? undefined, subject }, 'the alarm is over');
      }
      for (const { network, subject, detail } of without(found, before)) {
        log.error({ alarm: kind, network: network ?? undefined, subject }, detail);
      }
    },
    list: () => [...known.values()].flat(),
  };
}

function without(some: readonly Trouble[], others: readonly Trouble[]): Trouble[] {
  const keys = new Set(others.map(keyOf));
  return some.filter((each) => !keys.has(keyOf(each)));
}
