import { spawn } from 'node:child_process';
import { BUILT_COMMAND } from '../support/command.ts';
import { eventually } from '../support/service.ts';

/** A `quittance start` with every role. */
export type OurProcess = {
  url: string;
  isRunning(): boolean;
  /** Returns its log, one JSON object on each line. */
  log(): string;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
};

/** Starts one like an operator, and waits until it's ready. */
export async function startOurProcess(env: Record<string, string>): Promise<OurProcess> {
  const child = spawn(process.execPath, [BUILT_COMMAND, 'start'], {
    env: { PATH: process.env['PATH'], QUITTANCE_PORT: '0', QUITTANCE_METRICS_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      log += chunk;
    });
  }
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    child.kill(signal);
    await ended;
  };
  try {
    const url = await eventually(
      () => {
        if (!isRunning()) throw new Error(`the process ended: ${log}`);
        return /"url":"(http:[^"]+)".*"msg":"ready"/.exec(log)?.[1] ?? '';
      },
      (found) => found !== '',
      60_000,
    );
    return { url, isRunning, log: () => log, end };
  } catch (error) {
    await end('SIGKILL');
    throw error;
  }
}
