import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildCommandWithPg } from '../support/command.ts';
import type { Failpoint } from './failpoint.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PRELOAD = pathToFileURL(join(import.meta.dirname, 'failpoints.mjs')).href;
const MAX_OUTPUT_CHARS = 100_000;

export type ServiceProcess = {
  pid: number;
  /** The newest part of its output. */
  output(): string;
  /** Resolves when it's ready, or has ended. */
  ready: Promise<'ready' | 'ended'>;
  ended: Promise<void>;
  hasEnded(): boolean;
  /** When its failpoint was reached, or `null`. */
  firedMs(): number | null;
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void;
  /** Kills it unless it has ended, and waits for the end. */
  kill(): Promise<void>;
};

export type ProcessOptions = {
  env: Record<string, string>;
  /** A directory of the test for notes. */
  folder: string;
  failpoint?: Failpoint | undefined;
  /** A file for statements that changed something. */
  trace?: string;
};

let started = 0;

/** Starts `quittance start` like an operator, except for preloaded code. Doesn't wait until it's ready. */
export async function startServiceProcess({ env, folder, failpoint, trace }: ProcessOptions): Promise<ServiceProcess> {
  started += 1;
  const fired = join(folder, `fired-${started}`);
  const child = spawn(process.execPath, ['--import', PRELOAD, await buildCommandWithPg(), 'start'], {
    cwd: ROOT,
    env: {
      PATH: process.env['PATH'],
      TMPDIR: folder,
      QUITTANCE_METRICS_PORT: 'off',
      QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
      QUITTANCE_RATE_LIMIT: '100000',
      QUITTANCE_RATE_BURST: '100000',
      ...env,
      ...(failpoint === undefined ? {} : { FAILPOINT: JSON.stringify(failpoint), FAILPOINT_FIRED: fired }),
      ...(trace === undefined ? {} : { STATEMENT_TRACE: trace }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let hasEnded = false;
  const ended = new Promise<void>((resolveEnded) => {
    child.once('exit', () => {
      hasEnded = true;
      resolveEnded();
    });
  });
  const announced = new Promise<void>((resolveReady) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output = (output + chunk).slice(-MAX_OUTPUT_CHARS);
        if (output.includes('"msg":"ready"')) resolveReady();
      });
    }
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('the service could not be started');
  return {
    pid,
    output: () => output,
    ready: Promise.race([announced.then(() => 'ready' as const), ended.then(() => 'ended' as const)]),
    ended,
    hasEnded: () => hasEnded,
    firedMs: () => statSync(fired, { throwIfNoEntry: false })?.mtimeMs ?? null,
    signal: (signal) => void child.kill(signal),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
