import type { KeptBackup } from './backup-directory.ts';

/** A file that is written in the future by more than clocks differ: its age is not known. */
const MOST_AHEAD_MS = 300_000;

const HOUR_MS = 3_600_000;
/** A day, and two hours for the backup itself, and for somebody to restart something. */
const LEAST_LIMIT_MS = 26 * HOUR_MS;
const GRACE_MS = 2 * HOUR_MS;

/** Older than this the newest of scheduled backups is too old. */
export const limitOfAge = (intervalMs: number): number => Math.max(LEAST_LIMIT_MS, intervalMs + GRACE_MS);

type Seen = { baseMs: number | null; wallMs: number; monotonicMs: number };

/**
 * How old the newest backup is. The time of a file and our clock are compared once, when the file is first seen, and not at all for one that
 * was made here: from then on counts by how much both our clocks went on, and of these the one that went further, for the monotonic one
 * stands still while a machine sleeps, and the other is set. So a wrong clock makes one backup too early, and none too late by more than an
 * interval.
 */
export function createBackupAges({ now, monotonicMs }: { now(): number; monotonicMs(): number }) {
  let newest: string | null = null;
  const seen = new Map<string, Seen>();
  const see = (name: string, baseMs: number | null) => {
    seen.set(name, { baseMs, wallMs: now(), monotonicMs: monotonicMs() });
  };
  return {
    onMade: (name: string) => {
      see(name, 0);
      newest = name;
    },
    /** Newest first. */
    onListed: (kept: readonly KeptBackup[]) => {
      const [first] = kept;
      newest = first?.name ?? null;
      for (const name of seen.keys()) if (name !== newest) seen.delete(name);
      if (first === undefined || seen.has(first.name)) return;
      const ageMs = now() - first.writtenAtMs;
      see(first.name, ageMs < -MOST_AHEAD_MS ? null : Math.max(0, ageMs));
    },
    /** `null`: there is none, or nobody knows. */
    ofNewest: (): number | null => {
      const known = newest === null ? undefined : seen.get(newest);
      if (known === undefined || known.baseMs === null) return null;
      return known.baseMs + Math.max(monotonicMs() - known.monotonicMs, now() - known.wallMs);
    },
  };
}
