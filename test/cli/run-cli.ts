import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { BUILT_COMMAND } from '../support/command.ts';

export type CliOutput = { code: number | null; stdout: string; stderr: string; json: CliJson };

/** What --json printed; a test that reads a field that is not there fails by its value. */
// biome-ignore lint/suspicious/noExplicitAny: the tests are what checks the shape.
type CliJson = any;

export type CliOptions = {
  env?: NodeJS.ProcessEnv;
  stdin?: string;
  cwd?: string;
  /** By default this test run's build, which starts faster than the source. */
  command?: string;
};

/** A directory for one test. As root, PostgreSQL's user must be able to pass through it. */
export function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'quittance-cli-'));
  chmodSync(path, 0o711);
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Starts the real command in an environment that holds nothing of ours but `env`. */
export function startCli(args: readonly string[], options: CliOptions = {}): ChildProcessWithoutNullStreams {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(QUITTANCE_|DATABASE_|PG)/.test(name));
  return spawn(process.execPath, [options.command ?? BUILT_COMMAND, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...Object.fromEntries(inherited), NO_COLOR: '1', ...options.env },
  });
}

/** Runs the real command to its end. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliOutput> {
  return new Promise((resolve, reject) => {
    const child = startCli(args, options);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdin.on('error', () => undefined); // It ended without reading; its output tells the story.
    child.stdin.end(options.stdin ?? '');
    child.once('error', reject);
    child.once('close', (code) => {
      const json = args.includes('--json') ? JSON.parse(stdout) : undefined;
      resolve({ code, stdout, stderr, json });
    });
  });
}
