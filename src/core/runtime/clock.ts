/** Returns the current time in Unix milliseconds. Tests pass a clock that they control. */
export type Clock = { now(): number };

export const systemClock: Clock = { now: () => Date.now() };
