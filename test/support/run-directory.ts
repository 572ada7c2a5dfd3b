import { chmod, mkdir, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../src/core/runtime/processes.ts';

const PREFIX = 'quittance-test-';
/** Linux's in-memory file system. Containers may limit it to 64 MB. */
const MEMORY = '/dev/shm';
/** Four times the largest observed use of a run. */
const ROOM_BYTES = 6 * 1024 ** 3;

/**
 * Creates the directory for all files of a test run, and makes it the temporary directory of this process and its children. It's in memory
 * if there is plenty: each of about a hundred databases has 470 files, which take ten times as long on disk. Removes the directories of
 * killed runs.
 */
export async function makeRunDirectory(): Promise<string> {
  const onDisk = tmpdir();
  for (const place of [onDisk, MEMORY]) await removeRemains(place);
  const path = await mkdtemp(join((await hasRoom()) ? MEMORY : onDisk, `${PREFIX}${process.pid}-`));
  // When started by root, PostgreSQL runs as another user, who couldn't enter mkdtemp's directory with mode 0700. It also keeps its socket
  // among the temporary files.
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
  // The browser is unpacked and run there, but containers often mount it without execute permission.
  const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' '));
  const options = mounts.flatMap(([, place, , shown = '']) => (place === MEMORY ? [shown.split(',')] : []));
  return options.length > 0 && options.every((each) => !each.includes('noexec'));
}

/** The directory names contain the process id. */
async function removeRemains(place: string): Promise<void> {
  for (const name of await readdir(place).catch(() => [])) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (pid > 1 && !isRunning(pid)) await rm(join(place, name), { recursive: true, force: true }).catch(() => {});
  }
}
