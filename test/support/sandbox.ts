import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { main } from '../../src/cli/main.ts';
import type { SandboxFile } from '../../src/developer/sandbox/sandbox-file.ts';
import { BUILT_COMMAND } from './command.ts';
import { call, eventually, type Json } from './service.ts';
import { recordSurroundings } from './terminal.ts';

const ROOT = resolve(import.meta.dirname, '../..');

export type SandboxProcess = {
  file: SandboxFile;
  /** The process id of the database server, which must never outlive the sandbox. */
  postgresPid: number;
  output(): string;
  /** The exit code, once it has ended. */
  ended: Promise<number | null>;
  /** Sends a signal, waits for the end, and returns how long that took. */
  end(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<{ code: number | null; elapsedMs: number }>;
};

/** Runs `quittance start` on a data directory as a user would, and waits until it's ready. */
export async function startSandboxProcess(
  dataDir: string,
  env: Record<string, string> = {},
  command = BUILT_COMMAND,
): Promise<SandboxProcess> {
  const child = spawn(process.execPath, [command, 'start'], {
    cwd: ROOT,
    env: {
      PATH: process.env['PATH'],
      QUITTANCE_PORT: '0',
      QUITTANCE_DATA_DIR: dataDir,
      QUITTANCE_DEVNET_BLOCK_MS: '200',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise<number | null>((resolveEnded) => child.once('close', resolveEnded));
  const file = await eventually(
    () => readOwnFile(dataDir, child, output),
    (found) => found !== null,
  );
  if (file === null) throw new Error('unreachable: eventually answers only a file');
  // The console starts last. A signal before that would end the process at once.
  await eventually(
    async () => output.includes('/sandbox/') || child.exitCode !== null,
    (isStarted) => isStarted,
  );
  const postmaster = await readFile(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8');
  return {
    file,
    postgresPid: Number(postmaster.split('\n')[0]),
    output: () => output,
    ended,
    end: async (signal) => {
      const startedMs = performance.now();
      child.kill(signal);
      return { code: await ended, elapsedMs: performance.now() - startedMs };
    },
  };
}

/** Runs a command beside a sandbox and returns the JSON that it prints. On failure, rejects with `code`, `stdout` and `stderr`. */
export function runInSandbox(dataDir: string, ...args: string[]): Promise<Json> {
  return runWith({ QUITTANCE_DATA_DIR: dataDir }, ...args);
}

/** Does the same in any environment. */
export async function runWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Json> {
  const surroundings = recordSurroundings({ env });
  const code = await main([...args, '--json'], surroundings);
  const { written } = surroundings;
  if (code !== 0) throw Object.assign(new Error(`quittance ${args.join(' ')} failed`), { code, ...written });
  return JSON.parse(written.stdout);
}

/** Creates an invoice of the demo project, and returns its five fields. */
export async function createSandboxInvoice(file: SandboxFile, externalId: string, amount = '25.00'): Promise<Json> {
  const { body } = await call(`${file.baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { 'x-api-key': file.apiKey, 'content-type': 'application/json', 'idempotency-key': externalId },
    body: JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId }),
  });
  return body;
}

async function readOwnFile(dataDir: string, child: ChildProcess, output: string): Promise<SandboxFile | null> {
  if (child.exitCode !== null) throw new Error(`the sandbox ended with ${child.exitCode}: ${output}`);
  const text = await readFile(join(dataDir, 'sandbox.json'), 'utf8').catch(() => null);
  const file = text === null ? null : (JSON.parse(text) as SandboxFile);
  // A killed instance leaves its file behind until the next one starts.
  return file?.pid === child.pid ? file : null;
}
