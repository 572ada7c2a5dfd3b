import { createSteadyClock } from '../../../src/core/runtime/steady-clock.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

/**
 * A process that can die at any await: all that reaches outside (database, nodes, receivers, timers) passes `arrive`, which never
 * resolves after its death. What it held in memory is then out of reach, as after kill -9.
 */
export type SimulatedProcess = Owner & {
  readonly name: string;
  /** The name of its database connections. */
  readonly session: string;
  /** Its clock, whole Unix milliseconds; `skewMs` off the world's. */
  nowMs(): number;
  /** The same without what it was put forward lately. */
  steadyMs(): number;
  skewMs: number;
  isAlive: boolean;
  pausedUntilMs: number;
  /** Runs something as this process. */
  run<Result>(work: () => Result): Result;
  /** Resolves after `ms` of the world's time if the process is then alive. */
  arrive(ms: number): Promise<void>;
  /** kill -9. */
  kill(): void;
  /** Called once at its death. */
  onDeath(end: () => void): void;
};

export function createProcess(time: VirtualTime, name: string, session: string): SimulatedProcess {
  const ends: (() => void)[] = [];
  const process: SimulatedProcess = {
    ...{ name, session },
    skewMs: 0,
    isAlive: true,
    pausedUntilMs: 0,
    nowMs: () => Math.floor(time.nowMs() + process.skewMs),
    steadyMs: () => steady(),
    run: (work) => time.within(process, work),
    arrive: (ms) => time.sleep(process, ms),
    kill: () => {
      if (!process.isAlive) return;
      process.isAlive = false;
      for (const end of ends) end();
    },
    onDeath: (end) => void ends.push(end),
  };
  const steady = createSteadyClock(process.nowMs, time.nowMs);
  return process;
}
