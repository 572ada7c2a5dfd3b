const LOOK_MS = 500;

/**
 * Calls `onDeath` when the npm that started this process is gone (`kill -9` of `npm start` would leave us running, seen by
 * nobody). Started in any other way, a process may outlive its parent, as under `nohup`.
 */
export function whenParentDies(onDeath: () => void): void {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onDeath();
  }, LOOK_MS);
  timer.unref();
}
