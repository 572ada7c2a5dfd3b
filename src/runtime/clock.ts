/** A source of the present time, in Unix milliseconds; tests pass one that they move. */
export type Clock = { now(): number };

/** The clock of the operating system. */
export const systemClock: Clock = { now: () => Date.now() };
