import { chmod, mkdir, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../src/runtime/is-running.ts';

const PREFIX = 'quittance-test-';
/** A file system in memory, which Linux has. Containers may give it 64 MB. */
const MEMORY = '/dev/shm';
/** Four times what a run was seen to take. */
const ROOM_BYTES = 6 * 1024 ** 3;

/**
 * Makes the directory for all files of a test run, and makes it the one for temporary files of this process and those that it starts.
 * It is in memory where there is plenty of that: each of some hundred databases is 470 files, which take a disk ten times as long.
 * Directories of runs that were killed go.
 */
export async function makeRunDirectory(): Promise<string> {
  const onDisk = tmpdir();
  for (const place of [onDisk, MEMORY]) await removeRemains(place);
  const path = await mkdtemp(join((await hasRoom()) ? MEMORY : onDisk, `${PREFIX}${process.pid}-`));
  // Root's PostgreSQL runs as another user, which mkdtemp's mode 0700 would shut out, and keeps its socket among temporary files.
  await chmod(path, 0o711);
  const temporary = join(path, 'tmp');
  await mkdir(temporary);
  await chmod(temporary, 0o1777);
  process.env['TMPDIR'] = temporary;
  return path;
}

async function hasRoom(): Promise<boolean> {
  const found = await statfs(MEMORY).catch(() => null);
  if (found === null || Math.min(found.bavail * found.bsize, freemem()) < ROOM_BYTES) return false;
  // The browser is unpacked there and run; in containers it is often mounted so that nothing can be.
  const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
  const options = mounts.flatMap(([, place, , shown = '']) => (place === MEMORY ? [shown.split(',')] : []));
  return options.length > 0 && options.every((each) => !each.includes('noexec'));
}

/** Their name holds the process id. */
async function removeRemains(place: string): Promise<void> {
  for (const name of await readdir(place).catch(() => [])) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (pid > 1 && !isRunning(pid)) await rm(join(place, name), { recursive: true, force: true }).catch(() => {});
  }
}
