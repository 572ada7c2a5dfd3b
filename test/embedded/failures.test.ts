import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { longTest } from '../support/some-cases.ts';
import { copyProject } from './project-copy.ts';
import {
  IS_LINUX,
  IS_ROOT,
  makeDirectory,
  processesOf,
  ready,
  spawnServer,
  stop,
  until,
  untilNoProcess,
} from './server.ts';

const log = createLogger({ level: 'silent' });

describe.skipIf(!IS_LINUX)('a first start that is killed', () => {
  longTest('in the middle of initdb leaves nothing that the next start trips over', async () => {
    const dataDir = await makeDirectory();
    const isDone = () => existsSync(join(dataDir, 'postgres'));
    const startAndKill = async (part: string) => {
      const killed = spawnServer(dataDir);
      await until(`${part} appears`, async () => {
        const names = await readdir(dataDir, { recursive: true }).catch(() => []);
        return isDone() || names.some((name) => name.includes('.draft-') && name.includes(part));
      });
      killed.child.kill('SIGKILL');
      await killed.ended;
    };
    for (const part of ['draft-', 'global', 'pg_wal']) {
      await startAndKill(part);
      // If the check comes too late, as on a busy machine, start over.
      for (let tries = 1; isDone() && tries < 5; tries += 1) {
        await untilNoProcess(dataDir);
        await rm(join(dataDir, 'postgres'), { recursive: true });
        await startAndKill(part);
      }
      expect(isDone()).toBe(false);
    }
    const server = spawnServer(dataDir);
    await ready(server);
    await stop(server);
    await stop(await restarted(dataDir));
    expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.password']);
  });

  async function restarted(dataDir: string) {
    await untilNoProcess(dataDir);
    const server = spawnServer(dataDir);
    await ready(server);
    return server;
  }
});

describe('a start that cannot succeed says why and what to do, and leaves no process', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await makeDirectory();
    await (await startEmbeddedPostgres({ dataDir, log })).stop();
  });

  async function expectFailure(code: string, message: RegExp): Promise<void> {
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    if (IS_LINUX) expect(await processesOf(dataDir)).toEqual([]);
    expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.password']);
  }

  test('a database of another major version', async () => {
    await writeFile(join(dataDir, 'postgres/data/PG_VERSION'), '17\n');
    await expectFailure('EMBEDDED_WRONG_VERSION', /PostgreSQL 17.*PostgreSQL 18.*DATABASE_URL/);
    await writeFile(join(dataDir, 'postgres/data/PG_VERSION'), '18\n');
  });

  test('a damaged database: the journal is gone', async () => {
    await rm(join(dataDir, 'postgres/data/pg_wal'), { recursive: true });
    await expectFailure('EMBEDDED_DAMAGED', /damaged.*Restore it from a backup/);
  });

  test('an incomplete database', async () => {
    await rm(join(dataDir, 'postgres/data/global/pg_control'));
    await expectFailure('EMBEDDED_DAMAGED', /pg_control is missing.*move .* elsewhere/);
    await rm(join(dataDir, 'postgres/data/PG_VERSION'));
    await expectFailure('EMBEDDED_DAMAGED', /PG_VERSION is missing/);
  });

  test('no binaries for this platform', async () => {
    const project = await makeDirectory(0o755);
    const script = await copyProject(project, { hasBinaries: false });
    const message = await spawnServer(join(project, 'data'), { script }).next();
    expect(message).toMatchObject({ kind: 'failed', code: 'EMBEDDED_MISSING' });
    expect(message).toMatchObject({
      message: expect.stringMatching(/No embedded PostgreSQL for \w+-\w+: set DATABASE_URL/),
    });
  });

  test.skipIf(!IS_ROOT)('a data directory that is not writable (needs root to become another user)', async () => {
    const closed = await makeDirectory(0o755);
    expect(await spawnServer(join(closed, 'data'), { uid: 65_534, gid: 65_534 }).next()).toMatchObject({
      kind: 'failed',
      code: 'DATA_DIR_NOT_WRITABLE',
      message: expect.stringContaining(`${closed}/data is not writable by uid 65534`),
    });
  });

  test('a user that has no name, as in containers with an arbitrary uid', async ({ skip }) => {
    if (!IS_ROOT) skip('needs root to become another user');
    const open = await makeDirectory();
    await chmod(open, 0o777);
    expect(await spawnServer(join(open, 'data'), { uid: 54_321, gid: 54_321 }).next()).toMatchObject({
      kind: 'failed',
      code: 'EMBEDDED_UNSUPPORTED',
      message: expect.stringMatching(/uid \d+ has no name in \/etc\/passwd/),
    });
  });

  longTest('a full disk, at the first start and at a later one', async ({ skip }) => {
    const disk = join(await makeDirectory(), 'disk');
    await mkdir(disk);
    try {
      execFileSync('/bin/mount', ['-t', 'tmpfs', '-o', 'size=10m,mode=711', 'none', disk], { stdio: 'ignore' });
    } catch {
      skip('needs the right to mount a file system');
    }
    try {
      const full = { code: 'DATA_DIR_FULL', message: expect.stringMatching(/is full.*Free some space/) };
      await expect(startEmbeddedPostgres({ dataDir: join(disk, 'data'), log })).rejects.toMatchObject(full);
      expect(await readdir(join(disk, 'data'))).toEqual(['postgres.password']);

      execFileSync('/bin/mount', ['-o', 'remount,size=200m', disk]);
      await (await startEmbeddedPostgres({ dataDir: join(disk, 'data'), log })).stop();
      fillUp(join(disk, 'filler'));
      await expect(startEmbeddedPostgres({ dataDir: join(disk, 'data'), log })).rejects.toMatchObject(full);
      await rm(join(disk, 'filler'));
      await (await startEmbeddedPostgres({ dataDir: join(disk, 'data'), log })).stop();
    } finally {
      // Fails if a remaining process still has a file open there.
      execFileSync('/bin/umount', [disk]);
      await rmdir(disk);
    }
  });
});

function fillUp(path: string): void {
  try {
    execFileSync('/bin/dd', ['if=/dev/zero', `of=${path}`, 'bs=64k'], { stdio: 'ignore' });
  } catch {
    // dd fails when the disk is full, which is the purpose.
  }
}
