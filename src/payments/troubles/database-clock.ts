import type { DeadlineClock } from '../../domain/clocks.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import type { Clock } from '../../runtime/clock.ts';
import { duration } from './describe-clocks.ts';

/** From here on an invoice that lives for five minutes would be wrong by a fifth of them. */
const TOLERANCE_MS = 60_000;

/**
 * The database's clock, which is read now and then and goes on in between by the monotonic clock, so that nobody who sets the clock of this
 * process moves it. A machine that sleeps stops the monotonic clock, but not its own: then the two differ until the next reading.
 */
export function createDatabaseClock(
  clock: Clock,
  monotonicMs: () => number,
): DeadlineClock & { read(database: number, atMs: number): void } {
  let known: { database: number; ms: number } | null = null;
  const now = (): UnixMs =>
    unixMs(Math.round(known === null ? clock.now() : known.database + (monotonicMs() - known.ms)));
  return {
    now,
    /** It showed `database` when the monotonic clock showed `atMs`. */
    read: (database, atMs) => {
      known = { database, ms: atMs };
    },
    problem: () => {
      if (known === null) return 'This process has not read the clock of the database yet.';
      const apartMs = clock.now() - now();
      if (Math.abs(apartMs) <= TOLERANCE_MS) return null;
      const side = apartMs < 0 ? 'behind' : 'ahead of';
      return `The clock of this process is ${duration(Math.abs(apartMs))} ${side} that of the database, so the deadline of an invoice could be wrong. The operator has to set the clocks of both machines and keep them right, with chrony or systemd-timesyncd.`;
    },
  };
}
