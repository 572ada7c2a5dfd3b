import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/service.ts';

/** Long enough to compile Go's net/http on a busy machine. */
export const START_LIMIT_MS = 170_000;

export const EXAMPLES = resolve(import.meta.dirname, '../../docs/examples');

/** How to run one of docs/examples: in an empty folder, in which its dependencies may be put first. */
export type Program = {
  language: string;
  /** A command that only succeeds if the language is on the machine. */
  probe: readonly [string, ...string[]];
  prepare(folder: string): Promise<{ command: readonly [string, ...string[]]; env?: Record<string, string> }>;
};

export type RunningProgram = { url: string; folder: string; output(): string; stop(): Promise<void> };

/** Whether the language is on this machine and this user can run it. */
export function isPresent({ probe: [command, ...values] }: Pick<Program, 'probe'>): boolean {
  return spawnSync(command, values, { stdio: 'ignore', timeout: 20_000 }).status === 0;
}

/** Runs a program with none of our environment except `PATH` and the given variables, and waits until it listens. */
export async function startProgram(program: Program, env: Record<string, string>): Promise<RunningProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-example-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    const { command, env: own } = await program.prepare(folder);
    const [file, ...values] = command;
    const child = spawn(file, values, {
      cwd: folder,
      env: { PATH: process.env['PATH'], PORT: '0', ...env, ...own },
      // Uses a separate process group, so that the program's workers end with it.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const ended = once(child, 'close');
    const kill = () => endGroup(child.pid);
    process.once('exit', kill);
    const stop = async () => {
      kill();
      await ended;
      process.off('exit', kill);
      await removeFolder();
    };
    try {
      const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
      await eventually(
        () => output,
        (text) => LISTENING.test(text) || hasEnded(),
        START_LIMIT_MS,
      );
      const [, url] = LISTENING.exec(output) ?? [];
      if (url === undefined) throw new Error(`the example in ${program.language} did not start: ${output}`);
      return { url, folder, output: () => output, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

const LISTENING = /(http:\/\/127\.0\.0\.1:[1-9]\d*)\b/;
