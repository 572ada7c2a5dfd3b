import type { Ledger } from './ledger.ts';

/** A timer must not ask for more than this at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Produces a block in every slot of `blockMs`, counted from genesis. After a pause it goes on in the present slot: the pause is a
 * gap in time and never in height. When the chain is ahead of the clock it waits. The slots of
 * stalled producers pass without a block. A block that cannot be written, as on a full disk,
 * was never made: `onError` hears of it, and the next slot tries again.
 */
export function startTicker({
  ledger,
  blockMs,
  now,
  onError,
}: {
  readonly ledger: Ledger;
  readonly blockMs: number;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}): { stop(): void } {
  const origin = ledger.view('full').block(0)?.header.timestamp ?? 0;
  const slotAt = (timeMs: number) => origin + Math.floor((timeMs - origin) / blockMs) * blockMs;
  const tick = () => {
    const slot = slotAt(now());
    try {
      const missed = ledger.missedSlots();
      const isDue = missed !== null && slot > ledger.head().header.timestamp + missed * blockMs;
      if (isDue) ledger.produceBlock({ timestampMs: slot });
    } catch (error) {
      onError(error);
    }
    schedule();
  };
  let timer: NodeJS.Timeout;
  const schedule = () => {
    const next = Math.max(slotAt(now()), slotAt(ledger.head().header.timestamp)) + blockMs;
    timer = setTimeout(tick, Math.min(Math.max(next - now(), 1), MAX_TIMER_MS));
  };
  schedule();
  return { stop: () => clearTimeout(timer) };
}
