import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../runtime/loop.ts';
import { endAlarm, tellAlarm } from '../store/chain/alarms.ts';
import type { Database } from '../store/db/database.ts';

/**
 * The input for background work alongside a watcher. `isLeader` returns whether this process follows the network; only one process does at
 * a time.
 */
export type Leading = {
  db: Database;
  network: Network;
  now(): UnixMs;
  log: Logger;
  loops?: LoopHealth;
  isLeader(): boolean;
};

const TICK_MS = 1000;
const MAX_PAUSE_MS = 60_000;

/** These options say how work is repeated. After failures, the pause grows up to `maxPauseMs`. */
type Turns = { name: string; pauseMs?: number; maxPauseMs?: number; onFollower?: () => void };

/**
 * Repeats `work` every `pauseMs` while this process follows the network. While another process does, calls `onFollower` every second
 * instead. Runs until it's stopped.
 */
export function loopWhileLeading(
  { network, log, loops, isLeader }: Omit<Leading, 'db'>,
  { name, pauseMs = TICK_MS, maxPauseMs = MAX_PAUSE_MS, onFollower }: Turns,
  work: (shouldEnd: () => boolean) => Promise<void>,
): Loop {
  return startLoop({
    name: `${name} of ${network}`,
    log,
    maxPauseMs,
    health: loops,
    run: async (isStopping) => {
      if (!isLeader()) {
        onFollower?.();
        return TICK_MS;
      }
      await work(() => isStopping() || !isLeader());
      return pauseMs;
    },
  });
}

/** If a check keeps failing or waiting for this many ticks, an alarm is raised. */
const STALL_TICK_MS = 10_000;
const STALL_TICKS = 6;

/**
 * Like `loopWhileLeading`, for watches that Quittance's guarantees depend on. If no check is completed for a minute, raises the alarm
 * `watch-stalled`. A long check must call `progress` after each part. Time is counted in this process's ticks, so time during which the
 * process is suspended doesn't count.
 */
export function guardWhileLeading(
  options: Leading,
  how: Turns & { stallTickMs?: number },
  work: (shouldEnd: () => boolean, progress: () => void) => Promise<void>,
): Loop {
  const { network, log, isLeader } = options;
  const { name, stallTickMs = STALL_TICK_MS } = how;
  const about = ['watch-stalled', name] as const;
  let ticks = 0;
  // A previous process's alarm may still be open.
  let mayBeOpen = true;
  const progress = () => {
    ticks = 0;
  };
  // This loop has its own alarm.
  const { loops: _own, ...guarded } = options;
  const loop = loopWhileLeading(guarded, how, async (shouldEnd) => {
    await work(shouldEnd, progress);
    progress();
    if (!mayBeOpen) return;
    mayBeOpen = false;
    await endAlarm(options, about[0], network, name);
  });
  const clock = startLoop({
    name: `time of ${name} of ${network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async () => {
      ticks = isLeader() ? ticks + 1 : 0;
      if (ticks > STALL_TICKS) {
        mayBeOpen = true;
        const detail = `the check "${name}" has not finished for a minute, so problems may go unnoticed: see the log for the cause. An invalid row that was written directly to the database may be the cause. See "watch-stalled" in docs/reference/alarms.md`;
        await tellAlarm(options, about[0], { network, subject: name, detail });
      }
      return stallTickMs;
    },
  });
  return { stop: async () => void (await Promise.all([loop.stop(), clock.stop()])) };
}

/** Runs every step, even if an earlier one has failed, and then throws the first failure. */
export async function takeEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
