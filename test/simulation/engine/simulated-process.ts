import { createSteadyClock } from '../../../src/core/runtime/clock.ts';
import type { Owner, VirtualTime } from './virtual-time.ts';

/**
 * A process that can die at any await: everything external (database, nodes, receivers, timers) goes through `arrive`, which never resolves
 * after its death. Its memory is then unreachable, as after kill -9.
 */
export type SimulatedProcess = Owner & {
  readonly name: string;
  /** The name of its database connections. */
  readonly session: string;
  /** Its clock in whole Unix milliseconds, `skewMs` off the simulated time. */
  nowMs(): number;
  /** The same, without recent forward changes of its clock. */
  steadyMs(): number;
  skewMs: number;
  isAlive: boolean;
  pausedUntilMs: number;
  /** Runs something as this process. */
  run<Result>(work: () => Result): Result;
  /** Resolves after `ms` of simulated time, if the process is still alive. */
  arrive(ms: number): Promise<void>;
  /** Like kill -9. */
  kill(): void;
  /** Called once when it dies. */
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
