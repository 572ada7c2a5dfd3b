import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a small file that appears whole, mode 0600, owned by the owner of its directory even when we are root, and is on the disk
 * before this returns. The caller holds a lock, so a draft that stands there was left by a killed process.
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const draft = `${path}.draft`;
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(content);
    if (process.getuid?.() === 0) {
      const { uid, gid } = await stat(dirname(path));
      // Through the handle, because the owner could put a link to any file in the place of the path.
      await handle.chown(uid, gid);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, path);
  await syncDirectory(dirname(path));
}

/** Makes what was created or renamed in a directory outlast a loss of power. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
