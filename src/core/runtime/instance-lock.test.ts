import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bundle } from '../../../test/support/bundle.ts';
import { DataDirError, dataDirError, lockDataDir } from './instance-lock.ts';

let parent: string;
let dir: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'quittance-lock-'));
  dir = join(parent, 'data');
});
afterEach(() => rm(parent, { recursive: true, force: true }));

/** In the temporary directory, because another user runs it too and may not be able to read this checkout. */
let built: string;
beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), 'quittance-locker-'));
  await chmod(built, 0o755);
  const entryPoints = [fileURLToPath(new URL('./instance-lock.ts', import.meta.url))];
  await bundle({ entryPoints, outdir: built, outExtension: { '.js': '.mjs' } });
});
afterAll(() => rm(built, { recursive: true, force: true }));

/** Starts another process that locks the directory, prints the outcome as a line, and holds the lock until it is killed. */
function spawnLocker(options: { uid?: number } = {}) {
  const module = JSON.stringify(pathToFileURL(join(built, 'instance-lock.mjs')).href);
  const code = `
    const { lockDataDir } = await import(${module});
    try { await lockDataDir(${JSON.stringify(dir)}); console.log('locked'); setInterval(() => {}, 1e6); }
    catch (error) { console.log(error.code + ' ' + error.message); }`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
  const ended = once(child, 'close').then(([code]) => `ended with ${code} and without a word`);
  const told = once(child.stdout, 'data').then(([chunk]) => String(chunk).trim());
  const outcome = Promise.race([told, ended]);
  return { child, outcome };
}

describe('the lock of the data directory', () => {
  test('creates the directory, private, whatever the umask, and leaves nothing in it when released', async () => {
    const before = process.umask(0o077);
    try {
      const lock = await lockDataDir(join(dir, 'deeper'));
      expect(((await stat(dir)).mode & 0o777).toString(8)).toBe(process.getuid?.() === 0 ? '711' : '700');
      await lock.release();
      await lock.release();
    } finally {
      process.umask(before);
    }
    expect(await readdir(join(dir, 'deeper'))).toEqual([]);
  });

  test('keeps the mode of a directory that exists', async () => {
    await mkdir(dir);
    await chmod(dir, 0o750);
    await (await lockDataDir(dir)).release();
    expect(((await stat(dir)).mode & 0o777).toString(8)).toBe('750');
  });

  test('lets one holder in, in the same process and in another, and names the holder', async () => {
    const lock = await lockDataDir(dir);
    await expect(lockDataDir(dir)).rejects.toMatchObject({
      code: 'DATA_DIR_IN_USE',
      message: expect.stringContaining(`kill ${process.pid}`),
    });
    expect(await spawnLocker().outcome).toMatch(new RegExp(`^DATA_DIR_IN_USE .*${process.pid}`));
    await lock.release();
    await (await lockDataDir(dir)).release();
  });

  test('of many that start at once in one process, one gets in', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir(dir)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('is taken over from a killed holder by exactly one of the processes that start at once, again and again', async () => {
    const victim = spawnLocker();
    expect(await victim.outcome).toBe('locked');
    victim.child.kill('SIGKILL');
    await once(victim.child, 'exit');
    const starters = Array.from({ length: 6 }, () => spawnLocker());
    const outcomes = await Promise.all(starters.map(({ outcome }) => outcome));
    expect(outcomes.filter((outcome) => outcome === 'locked')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.startsWith('DATA_DIR_IN_USE'))).toHaveLength(5);
    expect(await readdir(dir)).toEqual(['instance.lock']);
    for (const { child } of starters) child.kill('SIGKILL');
  });

  test('is taken over by one of many within a process, at any interleaving of their steps', async () => {
    for (let round = 0; round < 30; round += 1) {
      await mkdir(dir, { recursive: true });
      await writeFile(
        join(dir, 'instance.lock'),
        JSON.stringify({ pid: 999_999_999, startedAt: '1', id: `dead-${round}` }),
      );
      const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataDir(dir)));
      const winners = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      expect(winners).toHaveLength(1);
      await winners[0]?.release();
      expect(await readdir(dir)).toEqual([]);
    }
  });

  test.each([
    ['the process id now belongs to another process', { pid: process.ppid, startedAt: '1', id: 'a' }],
    ['a predecessor had our own process id', { pid: process.pid, startedAt: '1', id: 'b' }],
    ['the file is damaged', 'not json'],
    ['the file is empty', ''],
  ])('is taken over when %s', async (_, content) => {
    await mkdir(dir);
    await writeFile(join(dir, 'instance.lock'), typeof content === 'string' ? content : JSON.stringify(content));
    const lock = await lockDataDir(dir);
    expect(JSON.parse(await readFile(join(dir, 'instance.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
    await lock.release();
  });

  test('is taken over from a holder killed in the middle of a takeover', async () => {
    await mkdir(dir);
    await writeFile(join(dir, 'instance.lock'), JSON.stringify({ pid: 999_999_999, startedAt: '1', id: 'first' }));
    await writeFile(
      join(dir, 'instance.lock.after-first'),
      JSON.stringify({ pid: 999_999_998, startedAt: '1', id: 'second' }),
    );
    await writeFile(join(dir, 'instance.lock.draft-999999998-x'), '');
    const lock = await lockDataDir(dir);
    expect(await readdir(dir)).toEqual(['instance.lock']);
    await lock.release();
  });
});

describe('a data directory that cannot be used', () => {
  test('a file in its place is named as not writable', async () => {
    await writeFile(dir, '');
    await expect(lockDataDir(dir)).rejects.toMatchObject({
      code: 'DATA_DIR_NOT_WRITABLE',
      message: expect.stringContaining(dir),
    });
    await expect(lockDataDir(join(dir, 'below'))).rejects.toMatchObject({ code: 'DATA_DIR_NOT_WRITABLE' });
  });

  test.skipIf(process.getuid?.() !== 0)(
    'a directory of another user is named, with our uid (needs root to become another user)',
    async () => {
      await mkdir(dir);
      await chmod(parent, 0o711);
      await chmod(dir, 0o755);
      const locker = spawnLocker({ uid: 65_534 });
      expect(await locker.outcome).toMatch(/^DATA_DIR_NOT_WRITABLE .*uid 65534 \(EACCES\).*chown -R 65534/);
      expect(existsSync(join(dir, 'instance.lock'))).toBe(false);
    },
  );

  test('a full disk is told from a forbidden one, and other errors pass unchanged', () => {
    const withCode = (code: string) => Object.assign(new Error(code), { code });
    expect(dataDirError('/data', withCode('ENOSPC'))).toMatchObject({ code: 'DATA_DIR_FULL' });
    expect(dataDirError('/data', withCode('EROFS'))).toBeInstanceOf(DataDirError);
    // The message suggests a command only if it can be pasted and changes nothing else.
    expect(dataDirError(`${parent}`, withCode('EACCES'))).toMatchObject({
      message: expect.stringMatching(/run "chown -R \d+ '/),
    });
    expect(dataDirError(join(parent, 'not', 'there'), withCode('EACCES'))).toMatchObject({
      message: expect.stringContaining(`Allow that user to write to ${parent},`),
    });
    const other = withCode('EMFILE');
    expect(dataDirError('/data', other)).toBe(other);
  });
});
