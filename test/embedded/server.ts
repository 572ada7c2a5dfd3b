import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import type { UnexpectedExit } from '../../src/core/store/embedded/embedded.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { REACHABLE_SCRIPT } from './project-copy.ts';

export const IS_ROOT = process.getuid?.() === 0;
export const IS_LINUX = process.platform === 'linux';

type Message =
  | { kind: 'ready'; connection: PostgresConnection }
  | { kind: 'failed'; code?: string; message: string }
  | { kind: 'stopped' }
  | { kind: 'exited'; exit: UnexpectedExit };

/** A process that runs an embedded PostgreSQL. `next` returns its next report. */
export type ServerProcess = {
  child: ChildProcess;
  pid: number;
  next(): Promise<Message>;
  ended: Promise<number | null>;
};

/** Starts server-process.ts. `script` is another copy of it; `command` goes before it, such as a shell that sets a umask. */
export function spawnServer(
  dataDir: string,
  options: {
    uid?: number;
    gid?: number;
    script?: string;
    sharedDir?: string;
    umask?: number;
    env?: NodeJS.ProcessEnv;
    cwd?: string;
  } = {},
): ServerProcess {
  const { uid, gid, sharedDir } = options;
  const node = [process.execPath, options.script ?? REACHABLE_SCRIPT, dataDir, ...(sharedDir ? [sharedDir] : [])];
  const child = spawn('/bin/sh', ['-c', `umask ${(options.umask ?? 0o022).toString(8)}; exec "$@"`, 'sh', ...node], {
    cwd: options.cwd ?? '/',
    env: { ...process.env, TMPDIR: inject('runDirectory'), ...options.env },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const { pid } = child;
  if (pid === undefined) throw new Error('the server process did not start');
  return {
    child,
    pid,
    ended,
    async next() {
      const { value, done } = await lines.next();
      if (done) throw new Error('the server process ended without a word');
      return JSON.parse(value);
    },
  };
}

/** Returns the connection of a server that must become ready. */
export async function ready(server: ServerProcess): Promise<PostgresConnection> {
  const message = await server.next();
  if (message.kind !== 'ready') throw new Error(`not ready: ${JSON.stringify(message)}`);
  return message.connection;
}

export async function stop(server: ServerProcess): Promise<void> {
  server.child.kill('SIGTERM');
  await server.ended;
}

/** Creates a directory below the test run's own, which other users can pass through. */
export async function makeDirectory(mode = 0o711): Promise<string> {
  const path = await mkdtemp(join(inject('runDirectory'), 'embedded-'));
  await chmod(path, mode);
  return path;
}

/**
 * Returns every process whose command line names the data directory or which runs in it: guardian, postgres and its children. Linux only.
 */
export async function processesOf(dataDir: string): Promise<{ pid: number; command: string }[]> {
  const found: { pid: number; command: string }[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => '');
    if (command.includes(dataDir) || cwd.startsWith(dataDir))
      found.push({ pid, command: command.replaceAll('\0', ' ') });
  }
  return found;
}

/** Polls until the answer is true, and returns it. */
export async function until<T>(what: string, ask: () => Promise<T | false | undefined>): Promise<T> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > deadlineMs) throw new Error(`waited ${PATIENCE_MS} ms in vain until ${what}`);
    await delay(10);
  }
}

export async function untilNoProcess(dataDir: string): Promise<void> {
  await until(`no process of ${dataDir} is left`, async () => (await processesOf(dataDir)).length === 0);
}

export async function query(connection: PostgresConnection, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
