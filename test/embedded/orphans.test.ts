import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { longTest } from '../support/some-cases.ts';
import { REACHABLE_SCRIPT } from './project-copy.ts';
import {
  IS_LINUX,
  makeDirectory,
  processesOf,
  query,
  ready,
  type ServerProcess,
  spawnServer,
  stop,
  until,
  untilNoProcess,
} from './server.ts';

// Listing processes requires /proc.
describe.skipIf(!IS_LINUX)('no PostgreSQL outlives its Quittance', () => {
  let dataDir: string;
  let server: ServerProcess;
  beforeAll(async () => {
    dataDir = await makeDirectory();
  });
  afterEach(async () => {
    server.child.kill('SIGKILL');
    await untilNoProcess(dataDir);
  });

  async function findProcesses() {
    const processes = (await processesOf(dataDir)).filter(({ pid }) => pid !== server.pid);
    const postmaster = Number(
      (await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0],
    );
    // The guardian and its watcher, which is a copy of it.
    const shells = processes.filter(({ command }) => command.startsWith('/bin/sh')).map(({ pid }) => pid);
    return { postmaster, guardian: Math.min(...shells), shells };
  }

  longTest('when Node is killed, PostgreSQL shuts down cleanly and removes its socket', async () => {
    server = spawnServer(dataDir);
    const { host } = await ready(server);
    process.kill(server.pid, 'SIGKILL');
    await untilNoProcess(dataDir);
    expect(existsSync(host)).toBe(false);
    expect(await readFile(join(dataDir, 'postgres', 'postgres.log'), 'utf8')).toContain('database system is shut down');
  });

  test('Ctrl-C, sent to the whole process group, reaches Node only; PostgreSQL ends when Node says so', async () => {
    server = spawnServer(dataDir);
    const connection = await ready(server);
    process.kill(-server.pid, 'SIGWINCH'); // A signal that kills no process shows that the group exists.
    const { shells, postmaster } = await findProcesses();
    for (const pid of [...shells, postmaster]) expect(await processGroup(pid)).not.toBe(server.pid);
    expect(await query(connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    process.kill(-server.pid, 'SIGINT');
    await server.ended;
    await untilNoProcess(dataDir);
  });

  test('a parent that waits for the end of our output does not wait for PostgreSQL', async () => {
    server = spawnServer(dataDir);
    await ready(server);
    const { postmaster, shells } = await findProcesses();
    for (const pid of shells) process.kill(pid, 'SIGSTOP');
    process.kill(server.pid, 'SIGKILL');
    await server.ended; // 'close' means that every holder of the pipe is gone.
    process.kill(postmaster, 0);
    for (const pid of shells) process.kill(pid, 'SIGCONT');
  });

  test('when PostgreSQL dies by itself, Node learns it at once, with the end of the log', async () => {
    server = spawnServer(dataDir);
    const { host } = await ready(server);
    process.kill((await findProcesses()).postmaster, 'SIGQUIT');
    const message = await server.next();
    expect(message).toMatchObject({
      kind: 'exited',
      exit: { signal: null, logTail: expect.stringContaining('received immediate shutdown request') },
    });
    expect(await server.ended).toBe(3);
    await untilNoProcess(dataDir);
    expect(existsSync(host)).toBe(false);
  });

  longTest('when its guardian is killed, Node stops PostgreSQL and learns it', async () => {
    server = spawnServer(dataDir);
    const { host } = await ready(server);
    process.kill((await findProcesses()).guardian, 'SIGKILL');
    expect(await server.next()).toMatchObject({ kind: 'exited', exit: { code: null, signal: 'SIGKILL' } });
    await untilNoProcess(dataDir);
    expect(existsSync(host)).toBe(false);
  });

  test('when Node and the guardian are killed at once, the next start stops what is left and takes over', async () => {
    server = spawnServer(dataDir);
    const { host } = await ready(server);
    const { shells, postmaster } = await findProcesses();
    for (const pid of shells) process.kill(pid, 'SIGSTOP');
    process.kill(server.pid, 'SIGKILL');
    for (const pid of shells) process.kill(pid, 'SIGKILL');
    await server.ended;
    process.kill(postmaster, 0);
    server = spawnServer(dataDir);
    const connection = await ready(server);
    expect((await processesOf(dataDir)).map(({ pid }) => pid)).not.toContain(postmaster);
    expect(existsSync(host)).toBe(false);
    expect(await query(connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await stop(server);
  });

  longTest(
    'what was acknowledged before a kill in the middle of writing is there afterwards, even when PostgreSQL is killed too',
    async () => {
      for (const killsPostgres of [false, true]) {
        server = spawnServer(dataDir);
        const connection = await ready(server);
        await query(connection, 'create table if not exists written (value bigint primary key)');
        const [{ next } = { next: 1 }] = await query(
          connection,
          'select coalesce(max(value), 0)::integer + 1 as next from written',
        );
        const acknowledged = await writeUntilKilled(connection, Number(next), async () => {
          const { postmaster } = await findProcesses();
          process.kill(server.pid, 'SIGKILL');
          if (killsPostgres) process.kill(postmaster, 'SIGKILL');
        });
        await server.ended;
        server = spawnServer(dataDir);
        const [row] = await query(
          await ready(server),
          'select count(*)::integer as count, max(value)::integer as last from written',
        );
        // The last one may have been written without its acknowledgement arriving.
        expect([acknowledged, acknowledged + 1]).toContain(row?.['last']);
        expect(row?.['count']).toBe(row?.['last']);
        await stop(server);
      }
    },
  );

  test('a Node that ends without stopping it takes it along', async () => {
    const child = spawn(process.execPath, [REACHABLE_SCRIPT, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child, 'exit');
    await untilNoProcess(dataDir);
    expect(child.exitCode).toBe(0);
  });
});

/** The process group is field 5 of /proc/<pid>/stat, the third after the name in parentheses. */
async function processGroup(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
}

const WRITES_BEFORE_KILL = 50;

/** Inserts one value after the other until the connection breaks. Returns the last acknowledged value. */
async function writeUntilKilled(
  connection: pg.ClientConfig,
  first: number,
  kill: () => Promise<void>,
): Promise<number> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  let last = first - 1;
  let killing: Promise<void> | undefined;
  await until('the connection breaks', async () => {
    try {
      await client.query('insert into written (value) values ($1)', [last + 1]);
      last += 1;
    } catch {
      return true;
    }
    if (last - first === WRITES_BEFORE_KILL) killing = kill();
    return false;
  });
  await killing;
  await client.end().catch(() => {});
  return last;
}
