import type { WatcherState } from './show-status.ts';

/** Whether a watcher runs, in words. */
export function sayWatcher({ ageMs, isRunning }: WatcherState): string {
  if (ageMs === null) return isRunning ? 'running, has written nothing yet' : 'never ran on this network';
  const seconds = Math.max(0, Math.round(ageMs / 1000));
  return isRunning ? `running, wrote ${seconds} s ago` : `not running: it last wrote ${seconds} s ago`;
}
