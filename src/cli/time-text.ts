import { toIso, type UnixMs } from '../domain/time.ts';

/** `2026-09-01 12:00` in UTC. */
export function toMinute(time: UnixMs): string {
  return toIso(time).slice(0, 16).replace('T', ' ');
}

/** `2026-09-01 12:00:00` in UTC. */
export function toSecond(time: UnixMs): string {
  return toIso(time).slice(0, 19).replace('T', ' ');
}
