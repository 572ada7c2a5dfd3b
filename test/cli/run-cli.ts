import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import type { Books } from '../support/books.ts';
import { BUILT_COMMAND } from '../support/command.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
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

/** Opens a ledger for the tests of one file, with the environment of its commands. Closes it after them. */
export async function openLedger() {
  const database = await createTestDatabase();
  const db = openDatabase({
    ...{ connection: database.connection, poolSize: 2, applicationName: 'cli test' },
    // Dropping the database may close a connection that is just closing anyway. Any other loss makes the next statement fail.
    onError: () => undefined,
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });
  return {
    ...{ database, db, env: { DATABASE_URL: database.connectionString } },
    query: (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
      withClient(database.owner, async (client) => (await client.query(text, values)).rows),
    newProject: async (network: Network = 'nile') => {
      const id = uuidV7(Date.now(), randomBytes(10));
      await insertProject(db, { id, name: 'Shop', network, maxSurchargeMicro: 10_000n, invoiceLifetimeMs: 1_800_000 });
      return { id, projectId: encodeId('prj', id) };
    },
  };
}

/** The environment of commands that read a ledger and its chain. */
export const envOf = ({ database, devnet }: Books) => ({
  DATABASE_URL: database.connectionString,
  QUITTANCE_DEVNET_NODES: devnet.url,
  QUITTANCE_DEVNET_USDT: devnet.usdtContract,
});

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
