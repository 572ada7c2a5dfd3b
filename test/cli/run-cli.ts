import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { BUILT_COMMAND } from '../support/command.ts';
import { recordSurroundings } from '../support/terminal.ts';

export type CliOutput = { code: number | null; stdout: string; stderr: string; json: CliJson };

/** The output of --json. A test that reads a missing field fails because of its value. */
// biome-ignore lint/suspicious/noExplicitAny: the tests are what checks the shape.
type CliJson = any;

export type CliOptions = { env?: NodeJS.ProcessEnv; stdin?: string };

export type ProcessOptions = CliOptions & {
  cwd?: string;
  /** Defaults to this test run's build, which starts faster than the source. */
  command?: string;
};

/** Creates a directory for one test. When started by root, PostgreSQL's user must be able to pass through it. */
export function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'quittance-cli-'));
  chmodSync(path, 0o711);
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs a command to its end like a process, but in this one, because starting a process takes ten times as long as most commands. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliOutput> {
  const surroundings = recordSurroundings({ env: environment(options), stdin: options.stdin ?? '' });
  const code = await main(args, surroundings);
  return output(args, code, surroundings.written);
}

/** Starts a process with the real command. */
export function startProcess(args: readonly string[], options: ProcessOptions = {}): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [options.command ?? BUILT_COMMAND, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: environment(options),
  });
}

/** Runs a process with the real command to its end. */
export function runProcess(args: readonly string[], options: ProcessOptions = {}): Promise<CliOutput> {
  return new Promise((resolve, reject) => {
    const child = startProcess(args, options);
    const written = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => {
      written.stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      written.stderr += chunk;
    });
    child.stdin.on('error', () => undefined); // It ended without reading its input; its output says why.
    child.stdin.end(options.stdin ?? '');
    child.once('error', reject);
    child.once('close', (code) => resolve(output(args, code, written)));
  });
}

/** Contains none of our variables except those that the test sets. */
function environment({ env }: CliOptions): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(QUITTANCE_|DATABASE_|PG)/.test(name));
  return { ...Object.fromEntries(inherited), NO_COLOR: '1', ...env };
}

function output(args: readonly string[], code: number | null, written: { stdout: string; stderr: string }): CliOutput {
  return { code, ...written, json: args.includes('--json') ? JSON.parse(written.stdout) : undefined };
}
