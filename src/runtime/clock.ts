import type { UnixMs } from '../domain/time.ts';

/** A source of the present time, in Unix milliseconds; tests pass one that they move. */
export type Clock = { now(): number };

/** By which invoices are made and expire. `problem`: why none may be made by it now, or `null`. */
export type DeadlineClock = { now(): UnixMs; problem(): string | null };

/** The clock of the operating system. */
export const systemClock: Clock = { now: () => Date.now() };
